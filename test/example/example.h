// example.h -- what the examples have beside the library: error checks, memory, and data.
#pragma once
#include <cuda_runtime_api.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "dualgemm.h"

inline void must(bool success, const char* name, const char* why) {
  if (success) return;
  std::fprintf(stderr, "%s: %s\n", name, why);
  std::exit(EXIT_FAILURE);
}
inline void must(cudaError_t e) { must(e == cudaSuccess, cudaGetErrorName(e), cudaGetErrorString(e)); }
inline void must(dualgemm_status_t s) { must(s == 0, dualgemm_status_name(s), dualgemm_last_error()); }

// A vector in managed memory, which has one address on host and device, so that a page needs no copies. An
// engine's memory comes from cudaMalloc; to the library that is the same.
template <class T>
struct Managed {
  using value_type = T;
  T* allocate(size_t count) {
    void* memory;
    must(cudaMallocManaged(&memory, count * sizeof(T), cudaMemAttachGlobal));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { must(cudaFree(memory)); }
};
template <class T>
using Buffer = std::vector<T, Managed<T>>;

// bf16 is the upper half of a float. These normal numbers have a lower half of zeros, so that bf16 holds
// them.
inline uint16_t bf16(float x) { return uint16_t(std::bit_cast<uint32_t>(x) >> 16); }
inline float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
inline std::vector<float> normal(size_t count, float spread, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0, spread);
  std::vector<float> out(count);
  for (float& x : out) x = from_bf16(bf16(distribution(generator)));
  return out;
}

// x, matrices [rows, k], quantised on the host: codes and factors as a launch takes them, the global scale
// (encode) of each matrix, `given` or from its largest element, and what the elements are worth.
struct Nvfp4 {
  Buffer<uint8_t> codes, factors;
  std::vector<float> scale, values;
  Nvfp4(const std::vector<float>& x, int rows, int k, float given = 0)
      : codes(x.size() / 2), values(x.size()) {
    const size_t size = size_t(rows) * k, sf_size = dualgemm_sf_size(rows, k);
    factors.resize(x.size() / size * sf_size);
    scale.assign(x.size() / size, given);
    for (size_t i = 0; i < scale.size(); ++i) {
      uint8_t *q = &codes[i * size / 2], *sf = &factors[i * sf_size];
      if (given == 0) must(dualgemm_global_scale_host(&x[i * size], rows, k, 0, &scale[i]));
      must(dualgemm_quantize_host(&x[i * size], rows, k, 0, scale[i], q, 0, sf));
      must(dualgemm_dequantize_host(q, 0, sf, rows, k, scale[i], &values[i * size], 0));
    }
  }
};
