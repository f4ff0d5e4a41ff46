#!/usr/bin/env bash
# Fuzzes in several processes, with other inputs in each; in every run they are the same. What an input found, and the
# input, stay in the folder fuzz beside the program.
#   run.sh PROGRAM PROCESSES OPTIONS OF LIBFUZZER...
set -euo pipefail
program=$1 processes=$2
shift 2
found=$(dirname "$program")/fuzz
log=$found/$(basename "$program")
mkdir -p "$found"
echo "fuzz: $processes processes, logs in $log.*.log"
pids=()
for ((i = 1; i <= processes; ++i)); do
  "$program" -seed="$i" -max_len=1024 -len_control=0 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found/" "$@" >"$log.$i.log" 2>&1 &
  pids+=($!)
done
failed=0
for ((i = 1; i <= processes; ++i)); do
  if wait "${pids[i - 1]}"; then
    grep -E '^stat::(number_of_executed_units|average_exec_per_sec)' "$log.$i.log"
  else
    failed=1
    tail -n 60 "$log.$i.log"
  fi
done
exit $failed
