// problem.h -- problems for programs on the stub: their tensors lie where nobody looks.
#pragma once

#include <cstdint>

#include "host/include/dualgemm.h"

inline void* address(uint64_t gigabyte) { return reinterpret_cast<void*>(gigabyte << 30); }

// Returns a problem whose every tensor has gigabytes of its own.
inline dualgemm_args_t problem(int32_t m, int32_t n, int32_t k) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.a = address(64), args.b1 = address(128), args.b2 = address(192);
  args.sfa = address(256), args.sfb1 = address(320), args.sfb2 = address(384);
  args.c = address(448);
  return args;
}
