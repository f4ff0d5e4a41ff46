// attention.cu -- attention of one head: 128 queries and four blocks of 16 keys, 32 deep, in bf16. The scores
// S = Q * K^T of a block go through a softmax over the blocks so far, O = P * V is added up, and a row of O
// is rescaled where a block has a new maximum of this row.
//
//   warps    who       does
//   0 to 3   softmax   a row a thread: S to P, O rescaled; at the end O and the sum of its weights to memory
//   4        load      TMA: Q once, K and V of each block into a stage of two
//   5        mma       S of the next block, then O of this one
//
//   barrier      count        arrives                waits     means
//   q_full       1 and bytes  load, and the copy     mma       Q is there
//   k_full[s]    1 and bytes  load, and the copy     mma       K of a block is there; likewise v_full[s]
//   k_empty[s]   1            commit                 load      K was read; likewise v_empty[s]
//   s_full[b]    1            commit                 softmax   the scores of a block are complete
//   p_full       128          every softmax thread   mma       its weights are in shared memory, its scores
//                                                              were read, its row of O is rescaled
//   o_full       1            commit                 softmax   O has this block, its weights were read
//
// Weights are powers of two, as scores are whole numbers: every sum is exact in whatever order it is made.
#include <algorithm>
#include <cmath>

#include "ptx/math.cuh"
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_attention {

constexpr int kQueries = 128, kKeys = 16, kDepth = 32, kBlocks = 4, kStages = 2;
constexpr int kRowBytes = 2 * kDepth;  // of Q and K, under the 64-byte swizzle
constexpr int kKeyBytes =
    2 * kKeys;  // of a row of P, and of a row of V, which lies transposed: 32-byte swizzle
constexpr uint32_t kQBytes = kQueries * kRowBytes, kKBytes = kKeys * kRowBytes, kVBytes = kDepth * kKeyBytes;

// Bits of the instruction descriptor: f32 accumulators, bf16 operands, N / 8, M / 16.
template <uint32_t columns>
constexpr uint32_t kShape = 1 << 4 | 1 << 7 | 1 << 10 | (columns / 8) << 17 | (kQueries / 16) << 24;
// Columns of tensor memory: O, then the scores of two blocks.
constexpr uint32_t kAllocated = 64, kScores = kDepth;

struct Shared {
  alignas(1024) uint8_t q[kQBytes];
  alignas(1024) uint8_t k[kStages][kKBytes];
  alignas(1024) uint8_t v[kStages][kVBytes];
  alignas(1024) uint8_t p[kQueries * kKeyBytes];
  uint64_t q_full, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
  uint64_t s_full[2], p_full, o_full;
  uint32_t tmem;
};

template <Attention d>
DUALGEMM_DEVICE void load(Shared& s, const CUtensorMap* q, const CUtensorMap* k, const CUtensorMap* v) {
  mbarrier_arrive_expect_tx(&s.q_full, kQBytes);
  tensor_load(s.q, q, 0, 0, &s.q_full);
#pragma unroll 1
  for (int block = 0; block < kBlocks; ++block) {
    const int i = block % kStages, parity = block / kStages % 2 ^ 1;
    if constexpr (d != Attention::kNoKeyEmptyWait) mbarrier_wait(&s.k_empty[i], parity);
    mbarrier_arrive_expect_tx(&s.k_full[i], kKBytes);
    tensor_load(s.k[i], k, 0, block * kKeys, &s.k_full[i]);
    mbarrier_wait(&s.v_empty[i], parity);
    mbarrier_arrive_expect_tx(&s.v_full[i], d == Attention::kFewBytes ? kVBytes / 2 : kVBytes);
    tensor_load(s.v[i], v, block * kKeyBytes, 0, &s.v_full[i]);
  }
#pragma unroll 1
  for (int block = kBlocks - kStages; block < kBlocks; ++block) {  // commits must not outlive the CTA
    mbarrier_wait(&s.k_empty[block % kStages], block / kStages % 2);
    if constexpr (d != Attention::kValuesNotDrained)
      mbarrier_wait(&s.v_empty[block % kStages], block / kStages % 2);
  }
}

template <Attention d>
DUALGEMM_DEVICE void multiply(Shared& s) {
  const uint32_t base = s.tmem;
  const auto scores = [&](int block) {
    const int i = block % kStages;
    const uint32_t to = base + kScores + (d == Attention::kScoresNotToggled ? 0 : block % 2) * kKeys;
    if constexpr (d != Attention::kNoKeyWait) mbarrier_wait(&s.k_full[i], block / kStages % 2);
    tcgen05_fence_after_thread_sync();
    if constexpr (d == Attention::kCommitBeforeScores) tcgen05_commit<1>(&s.s_full[block % 2]);
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step)
      tcgen05_mma_f16(to, matrix_descriptor(s.q + 32 * step, 8 * kRowBytes, 4),
                      matrix_descriptor(s.k[i] + 32 * step, 8 * kRowBytes, 4), kShape<kKeys>, step != 0);
    tcgen05_commit<1>(&s.k_empty[i]);
    if constexpr (d != Attention::kCommitBeforeScores) tcgen05_commit<1>(&s.s_full[block % 2]);
  };
  if constexpr (d != Attention::kNoQueryWait) mbarrier_wait(&s.q_full, 0);
  scores(0);
#pragma unroll 1
  for (int block = 0; block < kBlocks; ++block) {
    const int i = block % kStages;
    if (block + 1 < kBlocks) scores(block + 1);
    if constexpr (d != Attention::kNoWeightsWait)
      mbarrier_wait(&s.p_full, d == Attention::kWeightsParity ? 0 : block % 2);
    if constexpr (d == Attention::kIssuerFencesAfterWait) fence_proxy_async_shared();
    if constexpr (d != Attention::kNoValueWait) mbarrier_wait(&s.v_full[i], block / kStages % 2);
    if constexpr (d != Attention::kNoFenceAfterWeights) tcgen05_fence_after_thread_sync();
    tcgen05_mma_f16(base, matrix_descriptor(s.p, 8 * kKeyBytes, 6),
                    matrix_descriptor(s.v[i], 8 * kKeyBytes, 6), kShape<kDepth>,
                    d == Attention::kFirstAccumulates || block != 0);
    if constexpr (d == Attention::kArrivalReleasesValues) mbarrier_arrive(&s.v_empty[i]);
    else tcgen05_commit<1>(&s.v_empty[i]);
    tcgen05_commit<1>(&s.o_full);
  }
}

// The weights of the thread's row: chunk c of row r is at place c ^ r / 4 % 2.
DUALGEMM_DEVICE void store_weights(Shared& s, const float (&weights)[kKeys]) {
#pragma unroll
  for (int key = 0; key < kKeys; key += 2) {
    const uint32_t chunk = key / 8 ^ threadIdx.x / 4 % 2;
    *reinterpret_cast<volatile uint32_t*>(s.p + threadIdx.x * kKeyBytes + chunk * 16 + key % 8 * 2) =
        cvt_rn_bf16x2_f32(weights[key + 1], weights[key]);
  }
}

DUALGEMM_DEVICE void rescale(uint32_t o, float factor) {
#pragma unroll 1
  for (uint32_t half = 0; half < 2; ++half) {
    uint32_t row[kDepth / 2];
    tcgen05_ld_32x32b(row, o + half * kDepth / 2);
    tcgen05_wait_ld();
#pragma unroll
    for (uint32_t& value : row) value = __float_as_uint(__uint_as_float(value) * factor);
    tcgen05_st_32x32b(o + half * kDepth / 2, row);
  }
}

template <Attention d>
DUALGEMM_DEVICE void softmax(Shared& s, float* out) {
  const uint32_t o = s.tmem + (warp_index() * 32 << 16);
  float top = -INFINITY, sum = 0;
#pragma unroll 1
  for (int block = 0; block < kBlocks; ++block) {
    const auto wait_for_output = [&] {
      mbarrier_wait(&s.o_full, (block - 1) % 2);
      if constexpr (d != Attention::kNoFenceAfterOutput) tcgen05_fence_after_thread_sync();
      if constexpr (d != Attention::kNoOperandFence) fence_proxy_async_shared();
    };
    mbarrier_wait(&s.s_full[block % 2], block / 2 % 2);
    if constexpr (d != Attention::kNoFenceAfterScores) tcgen05_fence_after_thread_sync();
    uint32_t scores[kKeys];
    tcgen05_ld_32x32b(scores, o + kScores + (d == Attention::kScoresNotToggled ? 0 : block % 2) * kKeys);
    if constexpr (d != Attention::kNoWaitLd) tcgen05_wait_ld();
    const float before = top;
#pragma unroll
    for (const uint32_t score : scores) top = fmaxf(top, __uint_as_float(score));
    const float factor = ex2_approx_ftz(before - top);
    float weights[kKeys];
    sum = d == Attention::kSumNotRescaled ? sum : sum * factor;
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      weights[key] = ex2_approx_ftz(__uint_as_float(scores[key]) - top);
      sum += weights[key];
    }
    if constexpr (d == Attention::kWeightsBeforeWait) store_weights(s, weights);
    if (block != 0) {
      const bool early = d == Attention::kRescaledBeforeWait && block != 1;
      if (!early) wait_for_output();
      if constexpr (d != Attention::kNotRescaled) rescale(o, factor);
      if (early) wait_for_output();
      if constexpr (d != Attention::kNoWaitSt) tcgen05_wait_st();
    }
    if constexpr (d != Attention::kWeightsBeforeWait) store_weights(s, weights);
    constexpr bool kFence = d != Attention::kNoProxyFence && d != Attention::kIssuerFencesAfterWait;
    if constexpr (kFence) fence_proxy_async_shared();
    if constexpr (d != Attention::kNoBeforeFence) tcgen05_fence_before_thread_sync();
    if constexpr (d == Attention::kWarpArrivesEarly) {
      if (lane_index() == 0) mbarrier_arrive(&s.p_full);
    } else if constexpr (d == Attention::kWarpArrives) {
      __syncwarp();
      if (lane_index() == 0) mbarrier_arrive(&s.p_full);
    } else {
      mbarrier_arrive(&s.p_full);
    }
  }
  if constexpr (d != Attention::kLastNotAwaited) mbarrier_wait(&s.o_full, (kBlocks - 1) % 2);
  tcgen05_fence_after_thread_sync();
  uint32_t row[kDepth];
  tcgen05_ld_32x32b(row, o);
  tcgen05_wait_ld();
  float* const to = out + threadIdx.x * (kDepth + 1);
#pragma unroll
  for (int i = 0; i < kDepth; ++i) to[i] = __uint_as_float(row[i]);
  to[kDepth] = sum;
}

template <Attention d>
__global__ void __launch_bounds__(192)
    attention_kernel(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                     const __grid_constant__ CUtensorMap v, float* out) {
  __shared__ Shared s;
  const uint32_t warp = warp_index();
  if (warp == 0) {
    tcgen05_alloc<1>(&s.tmem, kAllocated);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (threadIdx.x == 160) {
    constexpr bool kByWarp = d == Attention::kWarpArrives || d == Attention::kWarpArrivesEarly;
    mbarrier_init(&s.q_full, 1);
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(&s.k_full[i], 1);
      mbarrier_init(&s.k_empty[i], 1);
      mbarrier_init(&s.v_full[i], 1);
      mbarrier_init(&s.v_empty[i], 1);
      mbarrier_init(&s.s_full[i], 1);
    }
    mbarrier_init(&s.p_full, kByWarp ? 4 : d == Attention::kWeightsCountLow ? 96 : 128);
    mbarrier_init(&s.o_full, 1);
    if constexpr (d != Attention::kNoInitFence) fence_mbarrier_init_release_cluster();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  if (threadIdx.x == 128) load<d>(s, &q, &k, &v);
  else if (threadIdx.x == 160) multiply<d>(s);
  else if (warp < 4) softmax<d>(s, out);
  __syncwarp();
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  if (warp == 0) tcgen05_dealloc<1>(s.tmem, kAllocated);
}

// Rows of Q have two elements, so that scores lie within 8 of each other.
int q_element(int query, int i) { return i % 16 == query % 16 ? (query + i) % 3 - 1 : 0; }
int k_element(int key, int i) { return (key * (key + 3) + i * key / 4 + 3 * i) % 5 - 2; }
int v_element(int key, int i) { return (2 * key + 5 * i) % 7 - 3; }

template <class Element>
std::vector<uint16_t> matrix(int rows, int columns, Element element) {
  std::vector<uint16_t> values;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) values.push_back(bf16(element(row, column)));
  return values;
}

// Returns column i of the output, or behind the last the sum of the weights, relative to the largest score.
double attended(int query, int i) {
  int scores[kBlocks * kKeys];
  for (int key = 0; key < kBlocks * kKeys; ++key) {
    scores[key] = 0;
    for (int j = 0; j < kDepth; ++j) scores[key] += q_element(query, j) * k_element(key, j);
  }
  const int top = *std::max_element(std::begin(scores), std::end(scores));
  double out = 0;
  for (int key = 0; key < kBlocks * kKeys; ++key)
    out += std::ldexp(i == kDepth ? 1 : v_element(key, i), scores[key] - top);
  return out;
}

template <Attention d>
Outcome run() {
  constexpr int kAllKeys = kBlocks * kKeys;
  DeviceArray<uint16_t> q(matrix(kQueries, kDepth, q_element)), k(matrix(kAllKeys, kDepth, k_element));
  DeviceArray<uint16_t> v(matrix(kDepth, kAllKeys, [](int i, int key) { return v_element(key, i); }));
  DeviceArray<float> out(size_t(kQueries) * (kDepth + 1), 0xFF);
  attention_kernel<d><<<1, 192>>>(
      byte_map(q.data(), kRowBytes, kQueries, kRowBytes, kQueries, CU_TENSOR_MAP_SWIZZLE_64B),
      byte_map(k.data(), kRowBytes, kAllKeys, kRowBytes, kKeys, CU_TENSOR_MAP_SWIZZLE_64B),
      byte_map(v.data(), 2 * kAllKeys, kDepth, kKeyBytes, kDepth, CU_TENSOR_MAP_SWIZZLE_32B), out.data());
  return outcome(out, [](size_t i) { return float(attended(int(i) / (kDepth + 1), int(i) % (kDepth + 1))); });
}

}  // namespace in_attention

DEFECTS_SUBJECT(Attention, attention, in_attention::run)

}  // namespace defects
