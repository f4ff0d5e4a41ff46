#!/usr/bin/env bash
# Runs a program with NVIDIA's runtime on the GPU of this machine. Where there is none that the library is compiled for,
# it says so and succeeds.
#   on_gpu.sh BUILD_DIR PROGRAM ARGUMENTS...
set -euo pipefail
build=$1
shift
if ! "$(dirname "$0")/has_gpu.sh"; then
  echo "$(basename "$1"): skipped: there is no GPU of compute capability 9.0 or 10.x"
  exit
fi
cuda=$(dirname "$(dirname "$(sed -n 's/^NVCC := //p' "$build/cuda.mk")")")
LD_LIBRARY_PATH=$cuda/lib64:$cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
