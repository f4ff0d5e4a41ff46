// moe.cuh -- what stands around the launches of a layer of experts. No CTA waits for another, and nothing is
// added in an order that may vary: the same choices give the same bits.
#pragma once

#include "kernel/convert/elements.cuh"
#include "kernel/convert/moe_params.h"
#include "ptx/global.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::convert {

constexpr int kWarps = kConvertThreads / 32;

// Says which choices a warp looks at. They are neighbours. Each warp of the CTA has an equal part of all
// choices, in whole steps of 32.
struct WarpChoices {
  int32_t first, end;

  DUALGEMM_DEVICE WarpChoices(int32_t count, int warp) {
    const int32_t part = (count + kConvertThreads - 1) / kConvertThreads * 32;
    first = warp * part;
    end = min(first + part, count);
  }
};

// Writes the rows of one expert from `row` on: those of this warp's choices, in their order.
DUALGEMM_DEVICE void write_rows(const PermuteParams& p, const WarpChoices& choices, int32_t expert,
                                int32_t row) {
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  for (int32_t step = choices.first; step < choices.end; step += 32) {
    const int32_t i = step + lane;
    const bool exists = i < choices.end;
    const int32_t id = exists ? p.ids[i] : -1;
    const bool own = exists && id == expert;
    const uint32_t owners = __ballot_sync(0xffffffff, own);
    if (own) {
      const int32_t at = row + __popc(owners & ((1u << lane) - 1));
      p.token_row[i] = at;
      p.row_token[at] = i / p.top_k;
      if (p.row_weight) p.row_weight[at] = p.weights[i];
    }
    // The CTA of expert 0 gives row -1 to the choices that belong to no expert.
    if (expert == 0 && exists && (id < 0 || id >= p.experts)) p.token_row[i] = -1;
    row += __popc(owners);
  }
}

// A CTA takes one expert after the other. It counts the choices of all experts before this one, which gives
// the first row of this expert, and counts where the rows of each warp begin.
__global__ void __launch_bounds__(kConvertThreads, kPermuteCtas)
    permute_kernel(const __grid_constant__ PermuteParams p) {
  __shared__ int32_t before_of[kWarps], own_of[kWarps];
  // The preceding grid may use ids, weights and outputs.
  ptx::griddepcontrol_wait();
  // All grids before this one have ended, and the next one waits for this one by itself.
  ptx::griddepcontrol_launch_dependents();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const WarpChoices choices(p.count, warp);
  for (auto expert = static_cast<int32_t>(blockIdx.x); expert < p.experts;
       expert += static_cast<int32_t>(gridDim.x)) {
    int32_t before = 0, own = 0;
#pragma unroll 4
    for (int32_t i = choices.first + thread % 32; i < choices.end; i += 32) {
      const int32_t id = p.ids[i];
      before += id >= 0 && id < expert ? 1 : 0;
      own += id == expert ? 1 : 0;
    }
    before = __reduce_add_sync(0xffffffff, before);
    own = __reduce_add_sync(0xffffffff, own);
    if (thread % 32 == 0) before_of[warp] = before, own_of[warp] = own;
    __syncthreads();  // the counts of all warps are written before any is read
    int32_t first = 0, all = 0, of_warps_before = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      first += before_of[i];
      all += own_of[i];
      if (i < warp) of_warps_before += own_of[i];
    }
    __syncthreads();  // all have read them before the next expert's are written
    write_rows(p, choices, expert, first + of_warps_before);
    if (thread == 0) p.group_rows[expert] = first;
    if (expert != p.experts - 1) continue;
    if (thread == 0) p.group_rows[p.experts] = first + all;
    for (int32_t row = first + all + thread; row < p.count; row += kConvertThreads) {
      p.row_token[row] = -1;
      if (p.row_weight) p.row_weight[row] = 0;
    }
  }
}

// A tile is a piece of 32 rows. A thread loads its whole part of a row before it stores any of it.
__global__ void __launch_bounds__(kConvertThreads, kGatherCtas)
    gather_kernel(const __grid_constant__ GatherParams p) {
  // The preceding grid may write x and row_index, and read out.
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto pieces = static_cast<uint32_t>((int64_t{p.k} + kGatherPiece - 1) / kGatherPiece);
  const auto bands = static_cast<uint32_t>((int64_t{p.rows} + kGatherRows - 1) / kGatherRows);
  for (uint32_t tile = blockIdx.x; tile < pieces * bands; tile += gridDim.x) {
    const auto row = static_cast<int32_t>(tile / pieces * kGatherRows + threadIdx.x / kGatherThreads);
    const auto first =
        static_cast<int32_t>(tile % pieces * kGatherPiece + threadIdx.x % kGatherThreads * kGatherColumns);
    if (row >= p.rows) continue;
    const int32_t from = p.row_index[row];
    if (from < 0 || from >= p.x_rows) continue;
    const auto* const x = static_cast<const uint16_t*>(p.x) + from * p.x_pitch;
    auto* const out = static_cast<uint16_t*>(p.out) + row * p.out_pitch;
    uint32_t words[kGatherAtOnce][4];
#pragma unroll
    for (int i = 0; i < kGatherAtOnce; ++i)
      if (const int32_t column = first + i * kGatherThreads * kGatherColumns; column < p.k)
        load_words(x + column, words[i]);
#pragma unroll
    for (int i = 0; i < kGatherAtOnce; ++i)
      if (const int32_t column = first + i * kGatherThreads * kGatherColumns; column < p.k)
        ptx::st_global_v4_b32(out + column, words[i]);
  }
}

// Holds a thread's columns of one row.
template <class X>
struct Columns {
  uint32_t words[kCombineColumns * X::kBytes / 4];

  DUALGEMM_DEVICE void load(const void* rows, int64_t element) {
    load_words(static_cast<const char*>(rows) + element * X::kBytes, words);
  }
  // Rounds each sum once.
  DUALGEMM_DEVICE void add_to(float* sum, float weight) const {
#pragma unroll
    for (int i = 0; i < kCombineColumns; ++i) sum[i] = __fmaf_rn(weight, X::value(words, i), sum[i]);
  }
  DUALGEMM_DEVICE void store(void* rows, int64_t element, const float* sum) {
    X::convert(sum, words, kCombineColumns);
    char* const to = static_cast<char*>(rows) + element * X::kBytes;
#pragma unroll
    for (int i = 0; i < kCombineColumns * X::kBytes / 16; ++i)
      ptx::st_global_v4_b32(to + i * 16, words + i * 4);
  }
};

// Adds the weighted rows of a token in the order of its choices, four loads at a time. All threads of a CTA
// load the same weights.
template <class C>
DUALGEMM_DEVICE void sum_rows(const CombineParams& p, int32_t token, int32_t column, float* sum) {
  constexpr int kAtOnce = 4;
  const int64_t first = int64_t{token} * p.top_k;
  for (int32_t slot = 0; slot < p.top_k; slot += kAtOnce) {
    Columns<C> from[kAtOnce];
    float weight[kAtOnce];
    bool there[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int32_t row = i < p.top_k - slot ? p.token_row[first + slot + i] : -1;
      there[i] = row >= 0 && row < p.rows;
      weight[i] = there[i] && p.weights ? p.weights[first + slot + i] : 1;
      if (there[i]) from[i].load(p.c, row * p.c_pitch + column);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (there[i]) from[i].add_to(sum, weight[i]);
  }
}

template <class C, class Out>
__global__ void __launch_bounds__(kConvertThreads, kCombineCtas)
    combine_kernel(const __grid_constant__ CombineParams p) {
  // The preceding grid may write c, token_row and weights, and read out.
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const uint32_t pieces = (static_cast<uint32_t>(p.n) + kCombinePiece - 1) / kCombinePiece;
  for (uint32_t tile = blockIdx.x; tile < pieces * static_cast<uint32_t>(p.tokens); tile += gridDim.x) {
    const auto token = static_cast<int32_t>(tile / pieces);
    const auto column = static_cast<int32_t>(tile % pieces * kCombinePiece + threadIdx.x * kCombineColumns);
    if (column >= p.n) continue;
    float sum[kCombineColumns] = {};
    sum_rows<C>(p, token, column, sum);
    Columns<Out> out;
    if (p.add) {
      out.load(p.add, token * p.add_pitch + column);
      out.add_to(sum, 1);
    }
    out.store(p.out, token * p.out_pitch + column, sum);
  }
}

}  // namespace dualgemm::convert
