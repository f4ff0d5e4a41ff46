#!/bin/sh
# record.sh -- builds zeros_run with the library's host side and runs it on this machine's Hopper GPU. Needs nvcc (NVCC
# names it).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
nvcc=${NVCC:-nvcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
# The library's own kernels are for another architecture; the table names them all the same.
ls test/sm90/*.cu test/sm90/*.cpp host/*/*.cpp kernel/sm100/instances/*.cu | xargs -P 16 -I{} sh -c \
  "case {} in kernel/*) target=compute_100f,code=compute_100f ;; *) target=compute_90a,code=sm_90a ;; esac
  $nvcc -std=c++20 -O3 -I. -gencode=arch=\$target -c {} -o $work/\$(basename {}).o"
$nvcc "$work"/*.o -o "$work/zeros_run" -lcuda
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
"$work/zeros_run"
