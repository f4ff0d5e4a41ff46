#!/bin/sh
# record.sh OUT -- builds the conformance program for sm_90a and writes OUT/golden.txt (what it printed) and
# OUT/images.gz.?? (the records themselves, in pieces of 15 MiB, for looking into a difference). Needs nvcc
# (NVCC names it) and a Hopper GPU.
set -eu
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
nvcc=${NVCC:-nvcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
ls test/h200/*.cu | grep -v planted | xargs -P 16 -I{} sh -c \
  "$nvcc -std=c++17 -O3 -I. -gencode=arch=compute_90a,code=sm_90a -c {} -o $work/\$(basename {} .cu).o"
$nvcc "$work"/*.o -o "$work/conformance" -lcuda
status=0
timeout 60 "$work/conformance" --images "$work/images.bin" > "$out/golden.txt" || status=$?
gzip -6 -c "$work/images.bin" | split -b 15M - "$out/images.gz."
grep ' error ' "$out/golden.txt" || true
wc "$out/golden.txt"
exit $status
