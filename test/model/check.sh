#!/usr/bin/env bash
# Checks a model exhaustively: every interleaving, every reachable state, no hashing that could lose one.
#   check.sh SPIN CC large|small holds|fails MODEL [SWITCH[=VALUE]...]
# `holds`: no assertion fails and nothing waits forever. `fails`: one of both happens. Anything else, a search that did
# not end included, is an error. `small`: optimising takes longer than the search of so few states.
set -euo pipefail
spin=$1 cc=$2 size=$3 expected=$4 model=$(realpath "$5")
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$spin" -a "${@/#/-D}" "$model" >spin.log || { cat spin.log; exit 2; }
[[ $size == large ]] && optimise=-Og || optimise=-O0
# NOCOMP stores each state whole, which is faster. The table of states starts with 2^20 entries and grows.
"$cc" $optimise -w -DSAFETY -DNOCOMP -DMEMLIM=1024 -o pan pan.c
./pan -m100000 -w20 >pan.log 2>&1 || { cat pan.log; exit 2; }
grep -E 'pan:|errors:|states, stored|elapsed' pan.log || true
if grep -qE 'max search depth too small|out of memory|MEMLIM bound|aborted' pan.log; then
  echo "the search did not end"; cat pan.log; exit 2
fi
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
if grep -qE '^pan:[0-9]+: (assertion violated|invalid end state)' pan.log; then verdict=fails
elif [[ $errors == 0 ]] && ! grep -q 'Search not completed' pan.log; then verdict=holds
else cat pan.log; exit 2
fi
[[ $verdict == "$expected" ]] || { echo "$(basename "$model") $*: $verdict, expected: $expected"; exit 1; }
