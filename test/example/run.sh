#!/usr/bin/env bash
# Lists the examples of a build and runs each, on the GPU when there is a Blackwell one, else on the simulated B200.
#   run.sh BUILD_DIR
set -euo pipefail
folder=$(dirname "$0")
failed=0
while IFS='|' read -r source command; do
  sed -n '/ -- /{s/^[^[:alnum:]]*//;s/ *\*\/$//;p;q}' "$source"
  IFS='|' read -ra command <<<"$command"
  "$folder/../run_anywhere.sh" "$1" "${command[@]}" </dev/null | sed 's/^/    /' || failed=1
done <"$1/examples.txt"
exit $failed
