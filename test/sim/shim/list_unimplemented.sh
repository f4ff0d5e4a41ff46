#!/bin/sh
# Writes unimplemented.inc: every function the CUDA runtime header declares and this folder does not define.
#   list_unimplemented.sh <C++ compiler> <CUDA include folder> > unimplemented.inc
set -eu
here=$(dirname "$0")

declared() {
  # The header is read twice, because programs built with a per-thread default stream see the suffixed names.
  for mode in "" "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"; do
    printf '#include <cuda_runtime_api.h>\n' | "$1" -E -P -x c++ $mode -I"$2" - |
      grep -oE '\bcuda[A-Z][A-Za-z0-9]*(_ptsz|_ptds|_v[0-9]+)? *\(' | tr -d ' ('
  done | grep -E '^cuda[A-Z]' | sort -u
}

defined() {
  grep -hoE '^(extern "C" )?(const char\*|cudaError_t) +(cuda[A-Za-z0-9_]+)' "$here"/*.cpp |
    awk '{print $NF}'
  sed -nE -e 's/^SIM_PER_THREAD_STREAM\((.*)\);/\1_ptsz/p' \
    -e 's/^SIM_PER_THREAD_DEFAULT\((.*)\);/\1_ptds/p' "$here"/*.cpp
}

known=$(mktemp)
trap 'rm -f "$known"' EXIT
defined | sort -u > "$known"
all=$(declared "$1" "$2")
[ -n "$all" ] || { echo "list_unimplemented.sh: $2/cuda_runtime_api.h declares nothing" >&2; exit 1; }
echo "$all" | comm -23 - "$known" | sed 's/.*/SIM_UNIMPLEMENTED(&)/'
