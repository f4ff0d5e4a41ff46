// entry.cuh -- the host's side of the contest's file: tensor maps, the kernel's argument, a plain launch. It
// knows one problem whose extents are multiples of the contest's 128 rows and 256 elements of K, with compact
// tensors. generate.py puts it behind the kernel, and the table of shapes behind it.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "kernel/instance_name.h"
#include "kernel/sm100/dual_gemm.cuh"
#include "kernel/sm100/traits.cuh"

namespace contest {

using namespace dualgemm;

// This is a plain instance of the library for fp16, as a class with a name of its own: nvcc 13.0 does not
// compile a call of a function for Traits<Options{...}>.
template <class Self, sm100::Options kOptions>
struct Instance : sm100::Parts<Self> {
  static constexpr Plan kPlan = sm100::plan_of(kOptions);
  static_assert(sm100::possible<kOptions, kPlan>());
  using Output = Fp16;
  using Arithmetic = PlainSwiglu;
};

// Is this what the library calls the kernel?
template <class Traits>
constexpr bool named(const char* name) {
  const char* text = kInstanceName<Traits, typename Traits::Output>.text;
  while (*text && *text == *name) ++text, ++name;
  return *text == *name;
}

// The tensors of one problem: packed E2M1, factors in 128x4 atoms, and C in fp16.
struct Tensors {
  const void *a, *b1, *b2, *sfa, *sfb1, *sfb2;
  void* c;
};

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

// Returns the driver's function, which needs no -lcuda so, or null.
inline Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  return reinterpret_cast<Encode>(found);
}

// kernel/params.h has the table of what the maps look like.
inline bool encode(CUtensorMap& map, CUtensorMapDataType type, CUtensorMapSwizzle swizzle, const void* start,
                   cuuint32_t rank, const cuuint64_t* dims, const cuuint64_t* strides,
                   const cuuint32_t* box) {
  static const Encode function = encoder();
  const cuuint32_t steps[] = {1, 1, 1, 1};
  return function && function(&map, type, rank, const_cast<void*>(start), dims, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

inline bool encode_operand(CUtensorMap& map, const void* start, int rows, int k, int tile_k, int box_rows) {
  const cuuint64_t row = k / 2, height = rows;
  const cuuint64_t dims[] = {row, height, 1}, strides[] = {row, row * height};
  const cuuint32_t box[] = {cuuint32_t(tile_k / 2), cuuint32_t(box_rows), 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_SWIZZLE_128B, start, 3, dims, strides, box);
}

inline bool encode_factors(CUtensorMap& map, const void* start, int rows, int k, int atoms, int blocks) {
  constexpr cuuint64_t kWords = kSfAtomBytes / 8;
  const cuuint64_t across = k / kSfAtomElems, down = rows / kSfAtomRows, row = across * kSfAtomBytes;
  const cuuint64_t dims[] = {kWords, across, down, 1}, strides[] = {kSfAtomBytes, row, row * down};
  const cuuint32_t box[] = {kWords, cuuint32_t(atoms), cuuint32_t(blocks), 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_INT64, CU_TENSOR_MAP_SWIZZLE_NONE, start, 4, dims, strides, box);
}

// Returns why CUDA refused what came last, as far as it says so.
inline cudaError_t refused() {
  const cudaError_t error = cudaGetLastError();
  return error ? error : cudaErrorInvalidConfiguration;
}

// Lets the kernel have its shared memory, and counts the clusters of it that run at once, or returns 0.
template <class Traits>
int clusters_at_once() {
  constexpr Plan kPlan = Traits::kPlan;
  const auto kernel = sm100::dual_gemm_kernel<Traits>;
  constexpr int kBytes = sizeof(sm100::SharedStorage<Traits>);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes)) return 0;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kPlan.cluster_size());
  config.blockDim = dim3(kPlan.threads);
  config.dynamicSmemBytes = kBytes;
  int count = 0;
  return cudaOccupancyMaxActiveClusters(&count, kernel, &config) ? 0 : count;
}

template <class Traits>
cudaError_t launch(const Tensors& t, int m, int n, int k) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr TilePlan kTile = kPlan.tile;
  static const int at_once = clusters_at_once<Traits>();
  if (at_once == 0) return refused();

  Params p{};
  const int b_rows = kPlan.operands.b_box_rows, atoms = kPlan.scales.steps,
            b_blocks = kPlan.scales.sfb_blocks;
  if (!encode_operand(p.a, t.a, m, k, kTile.k, kPlan.operands.a_box_rows) ||
      !encode_operand(p.b1, t.b1, n, k, kTile.k, b_rows) ||
      !encode_operand(p.b2, t.b2, n, k, kTile.k, b_rows) || !encode_factors(p.sfa, t.sfa, m, k, atoms, 1) ||
      !encode_factors(p.sfb1, t.sfb1, n, k, atoms, b_blocks) ||
      !encode_factors(p.sfb2, t.sfb2, n, k, atoms, b_blocks))
    return refused();
  p.c = {t.c, n, 0};
  p.alpha1 = p.alpha2 = 1;
  p.m = m, p.n = n, p.k = k;
  p.m_tiles = (m + kTile.m - 1) / kTile.m;
  p.n_tiles = (n + kTile.n - 1) / kTile.n;
  p.k_tiles = (k + kTile.k - 1) / kTile.k;
  p.problems = 1;

  const int tiles = p.m_tiles * p.n_tiles;
  const int clusters = kTile.split_k > 1 || tiles < at_once ? tiles : at_once;
  sm100::dual_gemm_kernel<Traits>
      <<<clusters * kPlan.cluster_size(), kPlan.threads, sizeof(sm100::SharedStorage<Traits>)>>>(p);
  return cudaGetLastError();
}

}  // namespace contest
