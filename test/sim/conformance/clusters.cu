// clusters.cu -- what CTAs of a cluster do to each other: multicast copies, distributed shared memory, remote
// arrivals, st.async, copies from shared memory to a peer's, and the cluster barrier.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

constexpr uint32_t kSlice = 512;

// CTA r copies slice r of the source to the CTAs that masks[r] names; every CTA expects the slices whose
// masks name it. `out` gets whether each CTA's barrier completed, then its shared memory.
__global__ void multicast(const uint8_t* source, const uint16_t* masks, uint8_t* out) {
  __shared__ __align__(128) uint8_t data[8 * kSlice];
  __shared__ uint64_t barrier;
  const uint32_t rank = cluster_ctarank(), ranks = gridDim.x, mbar = smem_u32(&barrier);
  for (uint32_t i = threadIdx.x; i < sizeof data; i += blockDim.x) data[i] = 0xEE;
  if (threadIdx.x == 0) {
    mbarrier_init(mbar, 1);
    fence_mbarrier_init_release_cluster();
    uint32_t bytes = 0;
    for (uint32_t r = 0; r < ranks; ++r) bytes += (masks[r] >> rank & 1) * kSlice;
    expect_tx(mbar, bytes);
  }
  fence_proxy_async();
  __syncthreads();
  cluster_sync();
  if (threadIdx.x == 0 && masks[rank] != 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(smem_u32(data) + rank * kSlice),
        "l"(source + rank * kSlice), "r"(kSlice), "r"(mbar), "h"(masks[rank])
        : "memory");
  __syncwarp();
  const uint32_t done = wait_parity(mbar, 0);
  __syncthreads();
  uint8_t* row = out + rank * (sizeof data + 1);
  if (threadIdx.x == 0) row[0] = uint8_t(done);
  for (uint32_t i = threadIdx.x; i < sizeof data; i += blockDim.x) row[1 + i] = data[i];
  cluster_sync();
}

const Register multicast_case("clusters/multicast", [](Recorder& out) {
  Random random(8);
  std::vector<uint8_t> bytes(8 * kSlice);
  for (uint8_t& byte : bytes) byte = uint8_t(random.bits() >> 32);
  const Buffer<uint8_t> source(bytes);
  for (uint32_t ranks : {1u, 2u, 4u, 8u})
    for (int i = 0; i < 6; ++i) {
      std::vector<uint16_t> masks;
      for (uint32_t r = 0; r < ranks; ++r)
        masks.push_back(uint16_t(i == 0 ? (1u << ranks) - 1 : i == 1 ? 1u << r : random.below(1u << ranks)));
      const Buffer<uint16_t> mask_buffer(masks);
      Buffer<uint8_t> image(ranks * (8 * kSlice + 1));
      launch({ranks, 64, 0, {ranks, 1, 1}}, multicast, source.data(), mask_buffer.data(), image.data());
      out.exact("clusters/multicast." + std::to_string(ranks) + "." + std::to_string(i), image.host());
    }
});

// Tries loads, stores and atomics on the shared memory of peers, a phase each.
__global__ void distributed(uint32_t* out) {
  __shared__ __align__(128) uint32_t words[128];
  const uint32_t rank = cluster_ctarank(), ranks = gridDim.x, t = threadIdx.x;
  const uint32_t next = (rank + 1) % ranks, own = smem_u32(words);
  words[t] = rank * 1000 + t;
  words[64 + t] = 0;
  cluster_sync();
  uint32_t loaded;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(loaded) : "r"(mapa(own + t * 4, next)) : "memory");
  uint32_t v[4];
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(mapa(own + (t & 15) * 16, (rank + 2) % ranks))
               : "memory");
  uint64_t generic;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(words + t), "r"(next));
  const uint32_t through_generic = *reinterpret_cast<volatile uint32_t*>(generic);
  cluster_sync();
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa(own + t * 4, next)), "r"(rank * 7 + t)
               : "memory");
  asm volatile(
      "red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(mapa(own + (64 + (t & 7)) * 4, 0)),
      "r"(rank * 64 + t)
      : "memory");
  uint32_t old;
  asm volatile("atom.relaxed.cluster.shared::cluster.max.u32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(mapa(own + (80 + t % 48) * 4, next)), "r"(t / 48 == 0 ? t + 100 : 0)
               : "memory");
  cluster_sync();
  uint32_t* row = out + rank * 64 * 9;
  const uint32_t values[9] = {
      loaded, v[0], v[1], v[2], v[3], through_generic, words[t], words[64 + t], t < 48 ? old : 0};
  for (uint32_t i = 0; i < 9; ++i) row[i * 64 + t] = values[i];
  cluster_sync();
}

const Register distributed_case("clusters/distributed", [](Recorder& out) {
  for (uint32_t ranks : {2u, 4u, 8u}) {
    Buffer<uint32_t> words(ranks * 64 * 9);
    launch({ranks, 64, 0, {ranks, 1, 1}}, distributed, words.data());
    out.exact("clusters/distributed." + std::to_string(ranks), words.host());
  }
});

// Every CTA arrives on the barrier of every other CTA, adds bytes to it, and sends these bytes with st.async
// and a copy from its own shared memory.
__global__ void remote(uint32_t* out) {
  __shared__ __align__(128) uint32_t source[64], landed[8][64];
  __shared__ uint64_t barrier, stores;
  const uint32_t rank = cluster_ctarank(), ranks = gridDim.x, t = threadIdx.x;
  const uint32_t mbar = smem_u32(&barrier), store_bar = smem_u32(&stores);
  for (uint32_t i = t; i < 8 * 64; i += blockDim.x) landed[i / 64][i % 64] = 0xEEEEEEEE;
  source[t] = rank << 16 | t;
  if (t == 0) {
    mbarrier_init(mbar, ranks);
    mbarrier_init(store_bar, 1);
    fence_mbarrier_init_release_cluster();
    expect_tx(store_bar, ranks * (64 * 4));
  }
  fence_proxy_async();
  cluster_sync();
  if (t == 0) {
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint32_t there = mapa(mbar, r);
      asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 256;" ::"r"(there)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::
              "r"(mapa(smem_u32(&landed[rank][0]), r)),
          "r"(smem_u32(source)), "r"(there)
          : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::
              "r"(mapa(smem_u32(&landed[rank][32]), r)),
          "r"(smem_u32(source) + 128), "r"(there)
          : "memory");
    }
  }
  __syncwarp();
  uint32_t done = wait_parity(mbar, 0);
  __syncthreads();
  uint32_t* row = out + rank * 18 * 64;
  for (uint32_t r = 0; r < 8; ++r) row[r * 64 + t] = landed[r][t];
  cluster_sync();  // everybody has read; st.async overwrites
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t there = mapa(smem_u32(&landed[rank][0]), r), bar = mapa(store_bar, r);
    if (t < 16)
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                       there + t * 4),
                   "r"(rank * 100 + t), "r"(bar)
                   : "memory");
    else if (t < 24)
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(
              there + 64 + (t - 16) * 8),
          "r"(t), "r"(rank), "r"(bar)
          : "memory");
    else if (t < 28)
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::
              "r"(there + 128 + (t - 24) * 16),
          "r"(t), "r"(rank), "r"(t * rank), "r"(7), "r"(bar)
          : "memory");
    else if (t >= 32 && t < 40)
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(
                       there + 192 + (t - 32) * 8),
                   "l"(0x1234500000000ull + t * rank), "r"(bar)
                   : "memory");
  }
  __syncwarp();
  done |= wait_parity(store_bar, 0) << 1;
  __syncthreads();
  for (uint32_t r = 0; r < 8; ++r) row[(8 + r) * 64 + t] = landed[r][t];
  row[16 * 64 + t] = done;
  cluster_sync();
  // A plain remote arrival completes phase 1 of everybody's barrier.
  if (t < ranks)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(mbar, t))
                 : "memory");
  __syncwarp();
  row[17 * 64 + t] = wait_parity(mbar, 1);
  cluster_sync();
}

const Register remote_case("clusters/remote", [](Recorder& out) {
  for (uint32_t ranks : {2u, 4u, 8u}) {
    Buffer<uint32_t> words(ranks * 18 * 64);
    launch({ranks, 64, 0, {ranks, 1, 1}}, remote, words.data());
    out.exact("clusters/remote." + std::to_string(ranks), words.host());
  }
});

// Tries split arrive and wait, relaxed and releasing, over many rounds: each round reads what the left
// neighbour wrote before its arrival.
__global__ void rounds(uint32_t* out) {
  __shared__ uint32_t word[2];
  const uint32_t rank = cluster_ctarank(), ranks = gridDim.x;
  uint32_t value = rank + 1;
  for (uint32_t round = 0; round < 16; ++round) {
    if (threadIdx.x == 0) word[round & 1] = value;
    __syncthreads();
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    uint32_t seen;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(seen)
                 : "r"(mapa(smem_u32(&word[round & 1]), (rank + 1) % ranks))
                 : "memory");
    value = value * 3 + seen;
  }
  out[rank * 32 + threadIdx.x] = value;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

const Register rounds_case("clusters/rounds", [](Recorder& out) {
  for (uint32_t ranks : {1u, 2u, 3u, 8u}) {
    Buffer<uint32_t> words(ranks * 32);
    launch({ranks, 32, 0, {ranks, 1, 1}}, rounds, words.data());
    out.exact("clusters/rounds." + std::to_string(ranks), words.host());
  }
});

}  // namespace
}  // namespace conformance
