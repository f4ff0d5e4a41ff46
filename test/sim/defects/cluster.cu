// cluster.cu -- two CTAs that use each other's shared memory:
// plain stores, remote arrivals, st.async and multicast copies.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_cluster {

DUALGEMM_DEVICE uint32_t load_cluster(uint32_t from) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
  return value;
}

// Each CTA writes into the inbox of the other CTA and reads its own inbox; then one CTA reads the other's
// inbox.
template <Exchange d>
__global__ void __cluster_dims__(2, 1, 1) exchange_kernel(uint32_t* out) {
  __shared__ uint32_t inbox[32];
  const uint32_t rank = cluster_ctarank(), lane = lane_index();
  const uint32_t theirs = shared_of(&inbox[lane], rank ^ 1);
  inbox[lane] = 0;
  if constexpr (d != Exchange::kPeerMayNotHaveStarted) cluster_sync();
  store_cluster(theirs, 1000 + rank * 32 + lane);
  if constexpr (d == Exchange::kRelaxedArrive) cluster_arrive_relaxed();
  else if constexpr (d != Exchange::kNoBarrier) cluster_arrive_release();
  if constexpr (d != Exchange::kNoBarrier) cluster_wait_acquire();
  out[rank * 32 + lane] = *static_cast<volatile uint32_t*>(&inbox[lane]);
  if (rank == 0) out[64 + lane] = load_cluster(theirs);
  if constexpr (d != Exchange::kPeerMayHaveExited) cluster_sync();
}

template <Exchange d>
Outcome run_exchange() {
  DeviceArray<uint32_t> out(96);
  exchange_kernel<d><<<2, 32>>>(out.data());
  return outcome(out, [](size_t i) {
    const size_t writer = i < 32 ? 1 : 0;
    return uint32_t(1000 + writer * 32 + i % 32);
  });
}

// CTA 1 leaves a word in CTA 0 and arrives on CTA 0's barrier.
template <RemoteArrive d>
__global__ void __cluster_dims__(2, 1, 1) remote_arrive_kernel(uint32_t* out) {
  __shared__ uint32_t word;
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    if constexpr (d != RemoteArrive::kNoInitFence) fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  if constexpr (d != RemoteArrive::kNoBarrier) {
    cluster_arrive_relaxed();
    cluster_wait_acquire();
  }
  if (threadIdx.x != 0) return;
  if (cluster_ctarank() == 1) {
    store_cluster(shared_of(&word, 0), 1000);
    const uint32_t theirs = shared_of(&full, 0);
    if constexpr (d == RemoteArrive::kDefaultScope) mbarrier_arrive_cluster_default(theirs);
    else if constexpr (d == RemoteArrive::kRelaxedArrival)
      asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(theirs) : "memory");
    else if constexpr (d == RemoteArrive::kLocalForm)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(theirs) : "memory");
    else mbarrier_arrive_cluster(theirs);
    return;
  }
  if constexpr (d == RemoteArrive::kWaitDefaultScope) mbarrier_wait(&full, 0);
  else mbarrier_wait_cluster(&full, 0);
  *out = *static_cast<volatile uint32_t*>(&word);
}

template <RemoteArrive d>
Outcome run_remote_arrive() {
  DeviceArray<uint32_t> out(1);
  remote_arrive_kernel<d><<<2, 32>>>(out.data());
  return outcome(out, [](size_t) { return 1000u; });
}

// CTA 1 sends 32 words by st.async, which count as bytes on CTA 0's barrier.
template <AsyncStore d>
__global__ void __cluster_dims__(2, 1, 1) async_store_kernel(uint32_t* out) {
  __shared__ uint32_t words[32];
  __shared__ uint64_t full;
  const uint32_t lane = lane_index();
  if (lane == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
    if (cluster_ctarank() == 0) mbarrier_arrive_expect_tx(&full, d == AsyncStore::kFewBytes ? 64 : 128);
  }
  __syncwarp();
  cluster_sync();
  if (cluster_ctarank() == 1) {
    st_async(shared_of(&words[lane], 0), 1000 + lane, shared_of(&full, 0));
    return;
  }
  if constexpr (d == AsyncStore::kWaitDefaultScope) mbarrier_wait(&full, 0);
  else if constexpr (d != AsyncStore::kNoWait) mbarrier_wait_cluster(&full, 0);
  out[lane] = *static_cast<volatile uint32_t*>(&words[lane]);
}

template <AsyncStore d>
Outcome run_async_store() {
  DeviceArray<uint32_t> out(32);
  async_store_kernel<d><<<2, 32>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

// CTA 0 copies one block after the other into both CTAs. Warp 0 of each reads,
// lane 0 of warp 1 of CTA 0 copies.
//   full (each CTA)   1 and 128 bytes   the reader re-arms it   its readers wait
//   empty (CTA 0)     2                 lane 0 of both readers  the copying thread waits
constexpr int kBlocks = 3;

template <Multicast d>
__global__ void __cluster_dims__(2, 1, 1) multicast_kernel(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t block[32];
  __shared__ uint64_t full, empty;
  const uint32_t rank = cluster_ctarank(), lane = lane_index();
  const bool expects = d != Multicast::kPeerExpectsNothing || rank == 0;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, d == Multicast::kPeerNotAwaited ? 1 : 2);
    fence_mbarrier_init_release_cluster();
    if (expects) mbarrier_arrive_expect_tx(&full, sizeof block);
  }
  __syncthreads();
  cluster_sync();
  if (warp_index() == 1) {
    if (rank == 0 && lane == 0)
#pragma unroll 1
      for (int i = 0; i < kBlocks; ++i) {
        mbarrier_wait_cluster(&empty, i % 2 ^ 1);
        bulk_load_multicast(block, in + i * 32, sizeof block, &full,
                            d == Multicast::kMaskWithoutPeer ? 0b01 : 0b11);
      }
    __syncwarp();
  } else {
    const bool arrives = d != Multicast::kPeerNotAwaited || rank == 0;
#pragma unroll 1
    for (int i = 0; i < kBlocks; ++i) {
      mbarrier_wait_cluster(&full, i % 2);
      out[(rank * kBlocks + i) * 32 + lane] = *static_cast<volatile uint32_t*>(&block[lane]);
      fence_proxy_async();
      __syncwarp();
      if (lane == 0 && i + 1 < kBlocks) {
        if (expects) mbarrier_arrive_expect_tx(&full, sizeof block);
        if (arrives) mbarrier_arrive_cluster(shared_of(&empty, 0));
      }
    }
    __syncwarp();
  }
  cluster_sync();
}

template <Multicast d>
Outcome run_multicast() {
  DeviceArray<uint32_t> in(counting(kBlocks * 32)), out(2 * kBlocks * 32);
  multicast_kernel<d><<<2, 64>>>(in.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i % (kBlocks * 32)); });
}

}  // namespace in_cluster

DEFECTS_SUBJECT(Exchange, cluster_exchange, in_cluster::run_exchange)
DEFECTS_SUBJECT(RemoteArrive, remote_arrive, in_cluster::run_remote_arrive)
DEFECTS_SUBJECT(AsyncStore, async_store, in_cluster::run_async_store)
DEFECTS_SUBJECT(Multicast, multicast, in_cluster::run_multicast)

}  // namespace defects
