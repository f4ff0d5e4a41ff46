// triton.cu -- a GEMM written in Triton (triton_gemm.py) as a contender: fp16 activations and NVFP4 weights,
// repacked for it. Like Triton's autotuner it times its tiles on each shape and keeps the fastest, as part of
// contender_create. Its kernels were compiled before: triton.sh makes triton_tiles.inc.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "bench/contender.h"
#include "bench/contenders/nvfp4.cuh"

namespace {

struct Tile {
  const unsigned char* image;
  const char* name;  // of the kernel in it
  int rows, columns, threads, stages, shared;
  bool split;  // whether several CTAs may share K
};

#include "triton_tiles.inc"

constexpr int kStep = 64;   // elements of K in a step of the kernel
constexpr int kWords = 16;  // of 16 bits that hold a step of a row
constexpr int kMostTiles = sizeof(kTiles) / sizeof(kTiles[0]);
constexpr int kTrials = 7;                 // of each tile; their median counts
constexpr size_t kMostPartial = 64 << 20;  // bytes of sums that an input set may have: there are many sets

struct Choice {
  int tile = -1, splits = 1;
};

struct Weights {
  contender_problem problem;
  uint16_t* words = nullptr;    // [K / 64, columns, 16]
  uint32_t* factors = nullptr;  // [K / 64, columns], a byte for each 16 of K
  float* partial = nullptr;     // sums of CTAs that share K
  int* arrived = nullptr;       // CTAs at each tile
  Choice choice;
};

// Brings a code to where unpack_weights of triton_gemm.py finds it in a word.
__device__ uint32_t place(int group, uint8_t code) {
  const uint32_t magnitude = code & 7, sign = code >> 3;
  switch (group) {
    case 0: return sign << 15 | magnitude << 9;
    case 1: return sign << 12 | magnitude << 6;
    case 2: return sign << 14 | magnitude << 3;
    default: return sign << 13 | magnitude;
  }
}

// A thread for each step of each row. Counts groups that are not of NVFP4.
__global__ void pack(const __half* b, int rows, int k, uint16_t* words, uint32_t* factors, int* others) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
            step = static_cast<int>(blockIdx.y);
  if (row >= rows) return;
  uint32_t word[kWords] = {}, factor = 0;
  for (int g = 0; g < kStep / nvfp4::kGroup; ++g) {
    nvfp4::Group group;
    if (!nvfp4::quantise(b + size_t{1} * row * k + step * kStep + g * nvfp4::kGroup, &group))
      atomicAdd(others, 1);
    factor |= static_cast<uint32_t>(group.factor) << 8 * g;
    for (int i = 0; i < kWords; ++i) word[i] |= place(g, group.codes[i]);
  }
  const size_t at = size_t{1} * step * rows + row;
  factors[at] = factor;
  for (int i = 0; i < kWords; ++i) words[at * kWords + i] = static_cast<uint16_t>(word[i]);
}

int columns_of(const contender_problem& p) { return p.products * p.n; }
int divided(int a, int b) { return (a + b - 1) / b; }

int tiles_of(const contender_problem& p, const Tile& tile) {
  return divided(p.m, tile.rows) * (columns_of(p) / tile.columns);
}

// The kernel of a tile, loaded once; NULL where it cannot be.
cudaKernel_t kernel_of(int tile) {
  static std::array<cudaKernel_t, kMostTiles> kernels{};
  cudaKernel_t& kernel = kernels[static_cast<size_t>(tile)];
  if (kernel != nullptr) return kernel;
  cudaLibrary_t library = nullptr;
  cudaKernel_t loaded = nullptr;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaLibraryLoadData(&library, kTiles[tile].image, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
          cudaSuccess ||
      cudaLibraryGetKernel(&loaded, library, kTiles[tile].name) != cudaSuccess ||
      cudaKernelSetAttributeForDevice(loaded, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      kTiles[tile].shared, device) != cudaSuccess)
    return nullptr;
  return kernel = loaded;
}

cudaError_t launch(const Weights& w, const Choice& choice, void* products, cudaStream_t stream) {
  const cudaKernel_t kernel = kernel_of(choice.tile);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const Tile& tile = kTiles[choice.tile];
  contender_problem p = w.problem;
  int n = columns_of(p);
  void* scratch = nullptr;  // Triton's two last parameters, of no use here
  const void *words = w.words, *factors = w.factors, *partial = w.partial, *arrived = w.arrived;
  void* arguments[] = {&p.a, &words, &factors, &products, &partial, &arrived,
                       &p.m, &n,     &p.k,     &scratch,  &scratch};
  const dim3 grid(static_cast<unsigned>(tiles_of(p, tile)), static_cast<unsigned>(choice.splits));
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, static_cast<unsigned>(tile.threads),
                          arguments, static_cast<size_t>(tile.shared), stream);
}

size_t bytes_of_partial(const contender_problem& p, const Choice& choice) {
  const Tile& tile = kTiles[choice.tile];
  return size_t{4} * tiles_of(p, tile) * tile.rows * tile.columns * choice.splits;
}

bool allocate_partial(Weights* w, const Choice& choice) {
  cudaFree(w->partial);
  cudaFree(w->arrived);
  w->partial = nullptr;
  w->arrived = nullptr;
  const Tile& tile = kTiles[choice.tile];
  if (!tile.split) return true;
  const size_t counters = static_cast<size_t>(tiles_of(w->problem, tile)) * sizeof(int);
  return cudaMalloc(&w->partial, bytes_of_partial(w->problem, choice)) == cudaSuccess &&
         cudaMalloc(&w->arrived, counters) == cudaSuccess &&
         cudaMemset(w->arrived, 0, counters) == cudaSuccess;
}

// What may be fastest: tiles of about the rows that there are, K shared where CTAs would be few.
std::vector<Choice> candidates(const contender_problem& p, int sms) {
  int rows = 16;  // of the smallest tile that has all, at most 256
  while (rows < p.m && rows < 256) rows *= 2;
  std::vector<Choice> out;
  for (int i = 0; i < kMostTiles; ++i) {
    const Tile& tile = kTiles[i];
    if (tile.rows > rows || tile.rows * 4 < rows) continue;
    const int tiles = tiles_of(p, tile);
    if (!tile.split) {
      out.push_back({i, 1});
      continue;
    }
    for (const int splits : {2, 3, 4, 6, 8, 12, 16})
      if (tiles * splits <= 8 * sms && p.k / kStep >= 4 * splits &&
          bytes_of_partial(p, {i, splits}) <= kMostPartial)
        out.push_back({i, splits});
  }
  return out;
}

// Times every candidate with an L2 that holds nothing of the operands, and returns the fastest.
Choice tune(Weights* w) {
  int device = 0, sms = 0, l2 = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
  const size_t flushed = 2 * static_cast<size_t>(l2);
  void *products = nullptr, *others = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  Choice best;
  float best_ms = 0;
  if (cudaMalloc(&products, size_t{2} * w->problem.m * columns_of(w->problem)) == cudaSuccess &&
      cudaMalloc(&others, flushed) == cudaSuccess && cudaEventCreate(&begin) == cudaSuccess &&
      cudaEventCreate(&end) == cudaSuccess) {
    for (const Choice& choice : candidates(w->problem, sms)) {
      if (!allocate_partial(w, choice)) continue;
      std::array<float, kTrials> ms{};
      bool ran = true;
      for (float& trial : ms) {
        ran = ran && cudaMemsetAsync(others, 0, flushed, nullptr) == cudaSuccess &&
              cudaEventRecord(begin, nullptr) == cudaSuccess &&
              launch(*w, choice, products, nullptr) == cudaSuccess &&
              cudaEventRecord(end, nullptr) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
              cudaEventElapsedTime(&trial, begin, end) == cudaSuccess;
      }
      std::nth_element(ms.begin(), ms.begin() + kTrials / 2, ms.end());
      if (!ran || (best.tile >= 0 && ms[kTrials / 2] >= best_ms)) continue;
      best = choice;
      best_ms = ms[kTrials / 2];
    }
  }
  cudaFree(products);
  cudaFree(others);
  if (begin != nullptr) cudaEventDestroy(begin);
  if (end != nullptr) cudaEventDestroy(end);
  return best;
}

bool pack_weights(Weights* w) {
  const int rows = columns_of(w->problem), steps = w->problem.k / kStep;
  const size_t of_rows = size_t{1} * rows * steps;
  int *others = nullptr, count = 1;
  if (cudaMalloc(&w->words, of_rows * kWords * sizeof(uint16_t)) == cudaSuccess &&
      cudaMalloc(&w->factors, of_rows * sizeof(uint32_t)) == cudaSuccess &&
      cudaMalloc(&others, sizeof(int)) == cudaSuccess && cudaMemset(others, 0, sizeof(int)) == cudaSuccess) {
    const dim3 grid(static_cast<unsigned>(divided(rows, 128)), static_cast<unsigned>(steps));
    pack<<<grid, 128>>>(static_cast<const __half*>(w->problem.b), rows, w->problem.k, w->words, w->factors,
                        others);
    if (cudaMemcpy(&count, others, sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) count = 1;
  }
  cudaFree(others);
  return count == 0;
}

}  // namespace

extern "C" {

const char* contender_name() { return "Triton 3.9 (NVFP4)"; }
int contender_is_exact() { return 1; }
int contender_takes_one_product() { return 1; }

void* contender_create(const contender_problem* problem) {
  const int64_t n = columns_of(*problem);
  // Whole tiles, and offsets of 32 bits, as Triton's are.
  if (n % 256 != 0 || problem->k % kStep != 0 ||
      int64_t{problem->m} * std::max<int64_t>(n, problem->k) > INT32_MAX)
    return nullptr;
  static std::map<std::array<int, 4>, Choice> tuned;
  auto* const w = new Weights{*problem};
  Choice& choice = tuned[{problem->m, problem->n, problem->k, problem->products}];
  if (pack_weights(w)) {
    if (choice.tile < 0) choice = tune(w);
    w->choice = choice;
    if (choice.tile >= 0 && allocate_partial(w, choice)) return w;
  }
  contender_destroy(w);
  return nullptr;
}

int contender_multiply(void* created, void* products, void* stream) {
  const Weights& w = *static_cast<const Weights*>(created);
  return launch(w, w.choice, products, static_cast<cudaStream_t>(stream));
}

void contender_destroy(void* created) {
  auto* const w = static_cast<Weights*>(created);
  for (void* memory : {static_cast<void*>(w->words), static_cast<void*>(w->factors),
                       static_cast<void*>(w->partial), static_cast<void*>(w->arrived)})
    cudaFree(memory);
  delete w;
}
}
