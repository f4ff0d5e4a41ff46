#!/bin/sh
# record.sh OUT -- builds the conformance program for sm_90a, with the library's host side, and writes
# OUT/golden.txt and .gz (what it printed), OUT/machine.txt (GPU, driver, date) and OUT/images.gz.?? (the records
# themselves, in pieces of 15 MiB, for looking into a difference). Needs nvcc (NVCC names it) and a Hopper GPU.
# A line that differs from the record, but for free ones: gzip -dc test/hopper/golden.txt.gz | diff - OUT/golden.txt
set -eu
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
nvcc=${NVCC:-nvcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
# The library's own kernels are not for this GPU, but host/ refers to their table.
ls test/hopper/*.cu host/*.cpp kernel/instances.cpp kernel/sm100/instances/*.cu | grep -v planted |
  xargs -P 16 -I{} sh -c \
  "case {} in kernel/*) target=compute_100f,code=compute_100f ;; *) target=compute_90a,code=sm_90a ;; esac
  $nvcc -std=c++20 -O3 -I. -Itest -gencode=arch=\$target -c {} -o $work/\$(basename {}).o"
$nvcc "$work"/*.o -o "$work/conformance" -lcuda
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$out/machine.txt"
date -u +%Y-%m-%d >> "$out/machine.txt"
status=0
timeout 60 "$work/conformance" --images "$work/images.bin" > "$out/golden.txt" || status=$?
gzip -9nk "$out/golden.txt"
gzip -6 -c "$work/images.bin" | split -b 15M - "$out/images.gz."
grep ' error ' "$out/golden.txt" || true
wc "$out/golden.txt"
exit $status
