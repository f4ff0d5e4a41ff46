#!/usr/bin/env bash
# Runs a program on the GPU when there is one that the library is compiled for, else on the simulated B200: the program
# itself is the same, only the libcudart.so.13 it finds differs.
#   run_anywhere.sh BUILD_DIR PROGRAM ARGUMENTS...
set -euo pipefail
build=$1
shift
libraries=$build/sim
if "$(dirname "$0")/has_gpu.sh" >/dev/null; then
  cuda=$(dirname "$(dirname "$(sed -n 's/^NVCC := //p' "$build/cuda.mk")")")
  libraries=$cuda/lib64:$cuda/lib
fi
if [[ $libraries == "$build/sim" && ! -e $build/sim/libcudart.so.13 ]]; then
  echo "run_anywhere.sh: no GPU that the library is for, and no simulator in $build/sim: make run builds one" >&2
  exit 1
fi
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
