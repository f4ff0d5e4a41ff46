#!/bin/sh
# triton.sh OUT.so -- a kernel in Triton as a contender of the benchmark. Needs triton 3.9.0 for python3 (PYTHON=...),
# but no GPU, and on the machine that runs it no Triton.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TRITON_DISABLE_LINE_INFO=1 TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" \
  "${PYTHON:-python3}" "$here/bench/contenders/triton_gemm.py" "$work/triton_tiles.inc"
"${NVCC:-nvcc}" -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -shared -Xcompiler -fPIC -cudart shared \
  -I "$here" -I "$work" "$here/bench/contenders/triton.cu" -o "$1"
