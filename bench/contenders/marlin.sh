#!/bin/sh
# marlin.sh CHECKOUT OUT.so -- Marlin as a contender of the benchmark, from a checkout of IST-DASLab's repository. The
# cache hint of its weight copies ends in an illegal instruction on Hopper, so it is left out.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -e '/createpolicy\.fractional\.L2::evict_first/d' \
    -e '/cp\.async\.cg/s/\.L2::cache_hint \(.*%2\), p;/ \1;/' \
    "$1/marlin/marlin_cuda_kernel.cu" >"$work/marlin_cuda_kernel.cu"
if grep -q 'L2::cache_hint' "$work/marlin_cuda_kernel.cu"; then
  echo "marlin.sh: this Marlin has cache hints elsewhere, too" >&2
  exit 1
fi
"${NVCC:-nvcc}" -std=c++17 -O3 --expt-relaxed-constexpr -w -gencode arch=compute_90,code=sm_90 \
  -shared -Xcompiler -fPIC -cudart shared -I "$here" -I "$work" "$here/bench/contenders/marlin.cu" -o "$2"
