// global.cu -- what went wrong long before tensor cores: shared tiles without barriers, flags without release
// and acquire, the last block's sum, two blocks that write one word, structures of which a part has no value.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_global {

constexpr int kThreads = 64, kRounds = 2;

// Two warps turn a tile around, once by plain copies and once by cp.async.
template <Tile d>
__global__ void tile_kernel(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[kThreads];
  const uint32_t thread = threadIdx.x;
  tile[thread] = 0;
  __syncthreads();
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    tile[thread] = in[round * kThreads + thread];
    if constexpr (d != Tile::kNoSyncthreads) __syncthreads();
    out[round * kThreads + thread] = static_cast<volatile uint32_t*>(tile)[kThreads - 1 - thread];
    if constexpr (d != Tile::kNoSyncBeforeReuse) __syncthreads();
  }
  cp_async_4(&tile[thread], &in[thread]);
  if constexpr (d != Tile::kNoCopyWait) cp_async_wait_all();
  if constexpr (d != Tile::kNoSyncAfterCopy) __syncthreads();
  out[kRounds * kThreads + thread] = static_cast<volatile uint32_t*>(tile)[kThreads - 1 - thread];
  if constexpr (d == Tile::kCopyAtExit) {
    __syncthreads();
    cp_async_4(&tile[thread], &in[thread]);
  }
}

template <Tile d>
Outcome run_tile() {
  DeviceArray<uint32_t> in(counting(kRounds * kThreads)), out((kRounds + 1) * kThreads);
  tile_kernel<d><<<1, kThreads>>>(in.data(), out.data());
  return outcome(out, [](size_t i) {
    const size_t round = i / kThreads % kRounds;
    return uint32_t(1000 + round * kThreads + kThreads - 1 - i % kThreads);
  });
}

// A block writes global memory, and one of its threads copies that to shared memory.
template <Written d>
__global__ void written_kernel(uint32_t* words, uint32_t* out) {
  __shared__ alignas(128) uint32_t copy[kThreads];
  __shared__ uint64_t full;
  words[threadIdx.x] = 1000 + threadIdx.x;
  if constexpr (d != Written::kNoProxyFence) fence_proxy_async_global();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&full, sizeof copy);
    bulk_load(copy, words, sizeof copy, &full);
  }
  mbarrier_wait(&full, 0);
  out[threadIdx.x] = static_cast<volatile uint32_t*>(copy)[threadIdx.x];
}

template <Written d>
Outcome run_written() {
  DeviceArray<uint32_t> words(kThreads), out(kThreads);
  written_kernel<d><<<1, kThreads>>>(words.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

// A single thread copies four words and uses one of them.
template <Single d>
__global__ void single_kernel(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t copy[4];
  __shared__ uint64_t full;
  mbarrier_init(&full, 1);
  if constexpr (d == Single::kProxyFence) fence_proxy_async_shared();
  else if constexpr (d != Single::kNoInitFence) fence_mbarrier_init_release_cluster();
  if constexpr (d == Single::kPrefetchPastEnd) bulk_prefetch(in, 2 * sizeof copy);
  if constexpr (d == Single::kPrefetch) bulk_prefetch(in, sizeof copy);
  if constexpr (d == Single::kPlainPrefetchPastEnd) prefetch_l2(in + 2 * sizeof copy);
  mbarrier_arrive_expect_tx(&full, sizeof copy);
  bulk_load(copy, in, sizeof copy, &full);
  mbarrier_wait(&full, d == Single::kFreshParity ? 1 : 0);
  *out = *static_cast<volatile uint32_t*>(copy);
}

template <Single d>
Outcome run_single() {
  DeviceArray<uint32_t> in(counting(4)), out(1);
  single_kernel<d><<<1, 1>>>(in.data(), out.data());
  return outcome(out, [](size_t) { return 1000u; });
}

// Block 0 writes a word and raises a flag, block 1 waits for the flag and reads the word.
template <Flag d>
__global__ void flag_kernel(uint32_t* word, uint32_t* flag, uint32_t* out) {
  if (blockIdx.x == 0) {
    *word = 1000;
    if constexpr (d == Flag::kRelaxedStore) store_relaxed_gpu(flag, 1);
    else if constexpr (d == Flag::kCtaScope) store_release_cta(flag, 1);
    else store_release_gpu(flag, 1);
    return;
  }
  if constexpr (d == Flag::kRelaxedLoad)
    while (load_relaxed_gpu(flag) == 0) {
    }
  else if constexpr (d != Flag::kNoFlag)
    while (load_acquire_gpu(flag) == 0) {
    }
  *out = d == Flag::kNonCoherentLoad ? load_non_coherent(word) : *static_cast<volatile uint32_t*>(word);
}

template <Flag d>
Outcome run_flag() {
  DeviceArray<uint32_t> word(1), flag(1), out(1);
  flag_kernel<d><<<2, 1>>>(word.data(), flag.data(), out.data());
  return outcome(out, [](size_t) { return 1000u; });
}

// A block doubles the words of an array where they lie.
template <InPlace d>
__global__ void in_place_kernel(uint32_t* words, const uint32_t* ones) {
  uint32_t word;
  if constexpr (d == InPlace::kNonCoherentInPlace) word = load_non_coherent(words + threadIdx.x);
  else word = static_cast<volatile uint32_t*>(words)[threadIdx.x];
  if constexpr (d == InPlace::kNonCoherentOther) word *= load_non_coherent(ones + threadIdx.x);
  words[threadIdx.x] = 2 * word;
}

template <InPlace d>
Outcome run_in_place() {
  DeviceArray<uint32_t> words(counting(64)), ones(std::vector<uint32_t>(64, 1));
  in_place_kernel<d><<<1, 64>>>(words.data(), ones.data());
  return outcome(words, [](size_t i) { return 2 * uint32_t(1000 + i); });
}

// Every block leaves a part and counts itself; the block that counts last adds the parts up. This sum depends
// on their order, like one of floats.
template <Count d>
__global__ void count_kernel(uint32_t* parts, uint32_t* counter, uint32_t* out) {
  parts[blockIdx.x] = 1000 + blockIdx.x;
  if constexpr (d != Count::kNoFenceBeforeCount) __threadfence();
  uint32_t before;
  if constexpr (d == Count::kPlainIncrement) {
    before = *static_cast<volatile uint32_t*>(counter);
    *counter = before + 1;
  } else {
    before = atomicAdd(counter, 1);
  }
  if (before + 1 != gridDim.x) return;
  __threadfence();
  uint32_t sum = 0;
  for (uint32_t i = 0; i < gridDim.x; ++i) {
    const uint32_t block = d == Count::kOrderOfArrival ? (blockIdx.x + i) % gridDim.x : i;
    sum = 2 * sum + static_cast<volatile uint32_t*>(parts)[block];
  }
  *out = sum;
}

template <Count d>
Outcome run_count() {
  DeviceArray<uint32_t> parts(2), counter(1), out(1);
  count_kernel<d><<<2, 1>>>(parts.data(), counter.data(), out.data());
  return outcome(out, [](size_t) { return 3001u; });
}

// Two blocks write 32 words each.
template <Overlap d>
__global__ void overlap_kernel(const uint32_t* in, uint32_t* out) {
  const uint32_t start = d == Overlap::kSameAddress   ? blockIdx.x * 31
                         : d == Overlap::kOutOfBounds ? blockIdx.x * 33
                                                      : blockIdx.x * 32;
  out[start + threadIdx.x] = in[start + threadIdx.x];
}

template <Overlap d>
Outcome run_overlap() {
  DeviceArray<uint32_t> in(counting(65)), out(64);
  const dualgemm_test::DeviceArray<uint32_t> never_written(64);
  overlap_kernel<d><<<2, 32>>>(d == Overlap::kUninitialised ? never_written.data() : in.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

// Seven bytes of it are padding; `spare` is never set.
struct Padded {
  uint32_t word, spare;
  double number;
  uint8_t tag;
};

// A warp turns its structures around in shared memory.
template <Structures d>
__global__ void structures_kernel(Padded* padded, uint32_t* out) {
  __shared__ Padded turned[32];
  const uint32_t lane = threadIdx.x;
  turned[lane].word = 1000 + lane;
  turned[lane].number = 2;
  turned[lane].tag = 3;
  __syncwarp();
  padded[lane] = turned[31 - lane];
  out[lane] = padded[lane].word;
  const volatile uint32_t* const spare = &turned[lane].spare;
  const uint32_t unset = *spare, sum = __reduce_add_sync(0xFFFFFFFF, unset);
  if (d == Structures::kUnsetDecides && unset == 7) out[lane] = 0;
  if constexpr (d == Structures::kUnsetStored) out[lane] = unset;
  if constexpr (d == Structures::kUnsetLaneVotes) out[lane] = sum;
}

template <Structures d>
Outcome run_structures() {
  const dualgemm_test::DeviceArray<Padded> padded(32);
  DeviceArray<uint32_t> out(32);
  structures_kernel<d><<<1, 32>>>(padded.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + 31 - i); });
}

}  // namespace in_global

DEFECTS_SUBJECT(Tile, block_tile, in_global::run_tile)
DEFECTS_SUBJECT(Written, written_then_copied, in_global::run_written)
DEFECTS_SUBJECT(InPlace, in_place, in_global::run_in_place)
DEFECTS_SUBJECT(Single, single_copy, in_global::run_single)
DEFECTS_SUBJECT(Flag, global_flag, in_global::run_flag)
DEFECTS_SUBJECT(Count, last_block, in_global::run_count)
DEFECTS_SUBJECT(Overlap, overlapping_output, in_global::run_overlap)
DEFECTS_SUBJECT(Structures, structures, in_global::run_structures)

}  // namespace defects
