// marlin.cu -- IST-DASLab's Marlin as a contender: fp16 activations, INT4 weights with an fp16 scale for each
// 128 of K. Its kernel is not here; marlin.sh compiles this with a checkout of it. Its weights are random,
// since its format does not hold those of NVFP4.
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "bench/contender.h"
#include "marlin_cuda_kernel.cu"

namespace {

constexpr int kGroup = 128;        // elements of K that share a scale
constexpr int kMostParallel = 16;  // marlin_cuda's max_par, which its locks are counted by

struct Weights {
  contender_problem problem;
  void *codes, *scales, *locks;
};

// Fills words with bits that look random (the finalizer of MurmurHash3, fmix32).
__global__ void fill_codes(uint32_t* words, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  auto x = static_cast<uint32_t>(i);
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  words[i] = x ^ x >> 16;
}
// Scales vary like those of real weights, and keep products far below the largest fp16.
__global__ void fill_scales(__half* scales, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) scales[i] = __float2half(0.002f * static_cast<float>(1 + i * 7 % 16));
}
unsigned blocks(size_t count) { return static_cast<unsigned>((count + 255) / 256); }

}  // namespace

extern "C" {

const char* contender_name() { return "Marlin (INT4, 128)"; }
int contender_is_exact() { return 0; }

void* contender_create(const contender_problem* problem) {
  const size_t n = 2 * static_cast<size_t>(problem->n), k = static_cast<size_t>(problem->k);
  if (n % 256 != 0 || k % 128 != 0) return nullptr;  // as marlin_cuda demands for all its tiles
  auto* const w = new Weights{*problem, nullptr, nullptr, nullptr};
  const size_t words = n * k / 8, scales = n * (k / kGroup), locks = n / 128 * kMostParallel * sizeof(int);
  if (cudaMalloc(&w->codes, words * 4) != cudaSuccess || cudaMalloc(&w->scales, scales * 2) != cudaSuccess ||
      cudaMalloc(&w->locks, locks) != cudaSuccess || cudaMemset(w->locks, 0, locks) != cudaSuccess) {
    contender_destroy(w);
    return nullptr;
  }
  fill_codes<<<blocks(words), 256>>>(static_cast<uint32_t*>(w->codes), words);
  fill_scales<<<blocks(scales), 256>>>(static_cast<__half*>(w->scales), scales);
  return w;
}

int contender_multiply(void* created, void* products, void* stream) {
  const Weights& w = *static_cast<const Weights*>(created);
  int device = 0;
  cudaGetDevice(&device);
  return marlin_cuda(w.problem.a, w.codes, products, w.scales, w.problem.m, 2 * w.problem.n, w.problem.k,
                     w.locks, kGroup, device, static_cast<cudaStream_t>(stream));
}

void contender_destroy(void* created) {
  auto* const w = static_cast<Weights*>(created);
  for (void* memory : {w->codes, w->scales, w->locks}) cudaFree(memory);
  delete w;
}
}
