#!/bin/sh
# sanitize.sh -- what compute-sanitizer says of every planted kernel and of its correct twin, one line each:
# name, twin, tool, verdict (clean, reported, hung, or failed without a report) and the first complaint. Needs
# nvcc (NVCC names it), compute-sanitizer (SANITIZER names it) and a Hopper GPU.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
nvcc=${NVCC:-nvcc}
sanitizer=${SANITIZER:-compute-sanitizer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
$nvcc -std=c++17 -O1 -lineinfo -I. -gencode=arch=compute_90a,code=sm_90a test/sim/conformance/planted.cu \
  -o "$work/planted" || exit 2
"$sanitizer" --version | tail -1
for name in $("$work/planted" --list); do
  for twin in planted correct; do
    option=$([ $twin = correct ] && echo --correct)
    for tool in memcheck racecheck synccheck; do
      timeout -k 1 15 "$sanitizer" --tool $tool --error-exitcode 9 "$work/planted" "$name" $option \
        > "$work/log" 2>&1
      status=$?
      case $status in
        0) verdict=clean ;;
        9) verdict=reported ;;
        124 | 137) verdict=hung ;;
        *) verdict="failed($status)" ;;
      esac
      complaint=$(grep -m1 -E '(Error|Warning|Barrier error|Invalid|Race)' "$work/log" | sed 's/=*//; s/  */ /g')
      echo "$name $twin $tool $verdict$complaint"
    done
  done
done
