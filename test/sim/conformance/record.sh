#!/bin/sh
# record.sh PROGRAM OUT -- runs the conformance program on a Hopper GPU (`ninja -C build conformance_record` links it
# with NVIDIA's runtime) and writes into the folder OUT golden.txt and .gz (what it printed), machine.txt (GPU, driver,
# date) and images.gz.?? (the records themselves, in pieces of 15 MiB, for looking into a difference).
# The lines that differ from the record, but for free ones:
#     gzip -dc test/sim/conformance/golden.txt.gz | diff - NEW
# where NEW is what the program printed.
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
