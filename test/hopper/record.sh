#!/bin/sh
# record.sh PROGRAM OUT -- runs the conformance program on a Hopper GPU (`ninja -C build hopper_record` links it with
# NVIDIA's runtime) and writes OUT/golden.txt and .gz (what it printed), OUT/machine.txt (GPU, driver, date) and
# OUT/images.gz.?? (the records themselves, in pieces of 15 MiB, for looking into a difference).
# A line that differs from the record, but for free ones: gzip -dc test/hopper/golden.txt.gz | diff - OUT/golden.txt
set -eu
program=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$out/machine.txt"
date -u +%Y-%m-%d >> "$out/machine.txt"
status=0
timeout 60 "$program" --images "$work/images.bin" > "$out/golden.txt" || status=$?
gzip -9nk "$out/golden.txt"
gzip -6 -c "$work/images.bin" | split -b 15M - "$out/images.gz."
grep ' error ' "$out/golden.txt" || true
wc "$out/golden.txt"
exit $status
