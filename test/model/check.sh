#!/usr/bin/env bash
# Checks a model exhaustively: every interleaving, every reachable state, no hashing that could lose one.
#   check.sh SPIN CC holds|fails MODEL [SWITCH[=VALUE]...]
# `holds`: no assertion fails and nothing waits forever. `fails`: one of both happens. Anything else, a search that did
# not end included, is an error.
set -euo pipefail
spin=$1 cc=$2 expected=$3 model=$(realpath "$4")
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$spin" -a "${@/#/-D}" "$model" >spin.log || { cat spin.log; exit 2; }
[[ $expected == holds ]] && optimise=-O1 || optimise=-O0  # a bug is found soon
"$cc" $optimise -w -DSAFETY -DMEMLIM=1024 -o pan pan.c
./pan -m100000 >pan.log 2>&1 || { cat pan.log; exit 2; }
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
