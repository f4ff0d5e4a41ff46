// planted.cu -- small kernels with one planted synchronisation bug each, and the same kernels without it:
// `planted NAME [--correct]` runs one, `planted --list` names all. They exist to compare verdicts: what
// compute-sanitizer says of them on an H200, and what the simulator says. A kernel may give right results in
// spite of its bug; some hang, so callers need a time limit.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "test/sim/conformance/sync.cuh"

namespace {

using namespace conformance;

constexpr uint32_t kThreads = 128, kWords = 256, kRounds = 4;

struct Args {
  uint32_t* source;
  uint32_t* target;
  bool bug;
};

__device__ void start(uint64_t* barrier, uint32_t count) {
  if (threadIdx.x == 0) {
    mbarrier_init(smem_u32(barrier), count);
    fence_mbarrier_init_release_cluster();
  }
  fence_proxy_async();
  __syncthreads();
}

__device__ void arrive(uint64_t* barrier) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(smem_u32(barrier))
               : "memory");
}

// ---- ordinary barriers ----

__global__ void missing_syncthreads(Args a) {
  __shared__ uint32_t words[kThreads];
  words[threadIdx.x] = a.source[threadIdx.x];
  if (!a.bug) __syncthreads();
  a.target[threadIdx.x] = words[kThreads - 1 - threadIdx.x];
}

__global__ void missing_second_syncthreads(Args a) {
  __shared__ uint32_t words[kThreads];
  for (uint32_t round = 0; round < kRounds; ++round) {
    words[threadIdx.x] = a.source[threadIdx.x] + round;
    __syncthreads();
    a.target[round * kThreads / 4 + threadIdx.x / 4] = words[kThreads - 1 - threadIdx.x];
    if (!a.bug) __syncthreads();
  }
}

// ---- a copy engine, its barrier and its consumers ----

__global__ void missing_full_wait(Args a) {
  __shared__ __align__(128) uint32_t words[kWords];
  __shared__ uint64_t full;
  start(&full, 1);
  if (threadIdx.x == 0) {
    expect_tx(smem_u32(&full), sizeof words);
    bulk_load(smem_u32(words), a.source, sizeof words, smem_u32(&full));
  }
  __syncwarp();
  if (!a.bug) wait_parity(smem_u32(&full), 0);
  a.target[threadIdx.x] = words[threadIdx.x];
  __syncthreads();
  wait_parity(smem_u32(&full), 0);  // in both: nobody leaves before the copy landed
}

// Warp 0 fills one buffer again and again, warp 1 reads it.
__device__ void pipeline(const Args& a, bool skip_empty, bool wrong_parity, bool skip_arrive) {
  __shared__ __align__(128) uint32_t words[kWords];
  __shared__ uint64_t full, empty;
  start(&full, 1);
  start(&empty, 32);
  if (threadIdx.x / 32 == 0) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (round != 0 && !skip_empty)
        wait_parity(smem_u32(&empty), wrong_parity ? round & 1 : (round - 1) & 1);
      if (threadIdx.x == 0) {
        expect_tx(smem_u32(&full), sizeof words);
        bulk_load(smem_u32(words), a.source + round * 64, sizeof words, smem_u32(&full));
      }
      __syncwarp();
    }
  } else if (threadIdx.x / 32 == 1) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      wait_parity(smem_u32(&full), round & 1);
      uint32_t sum = 0;
      for (uint32_t i = threadIdx.x - 32; i < kWords; i += 32) sum += words[i];
      a.target[round * 32 + threadIdx.x - 32] = sum;
      if (!skip_arrive) arrive(&empty);
    }
  }
  __syncthreads();
}
__global__ void missing_empty_wait(Args a) { pipeline(a, a.bug, false, false); }
__global__ void wrong_parity(Args a) { pipeline(a, false, a.bug, false); }
__global__ void missing_empty_arrive(Args a) { pipeline(a, false, false, a.bug); }

__device__ void expect(const Args& a, int excess) {
  __shared__ __align__(128) uint32_t words[kWords];
  __shared__ uint64_t full;
  start(&full, 1);
  if (threadIdx.x == 0) {
    expect_tx(smem_u32(&full), uint32_t(int(sizeof words) + excess));
    bulk_load(smem_u32(words), a.source, 512, smem_u32(&full));
    bulk_load(smem_u32(words) + 512, a.source + 128, 512, smem_u32(&full));
  }
  __syncwarp();
  wait_parity(smem_u32(&full), 0);
  a.target[threadIdx.x] = words[threadIdx.x] + words[128 + threadIdx.x];
  __syncthreads();
}
__global__ void expect_too_small(Args a) { expect(a, a.bug ? -512 : 0); }
__global__ void expect_too_large(Args a) { expect(a, a.bug ? 16 : 0); }

// ---- proxies and bulk groups ----

__global__ void missing_proxy_fence(Args a) {
  __shared__ __align__(128) uint32_t words[kWords];
  for (uint32_t i = threadIdx.x; i < kWords; i += kThreads) words[i] = a.source[i] + 1;
  if (!a.bug) fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(a.target, smem_u32(words), sizeof words);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
}

__global__ void missing_read_wait(Args a) {
  __shared__ __align__(128) uint32_t words[kWords];
  for (uint32_t round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0 && !a.bug) bulk_wait_group_read<0>();
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kWords; i += kThreads) words[i] = a.source[i] + round;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(a.target + round * kWords, smem_u32(words), sizeof words);
      bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) bulk_wait_group<0>();
}

__global__ void missing_last_wait(Args a) {
  __shared__ __align__(128) uint32_t words[kWords];
  for (uint32_t i = threadIdx.x; i < kWords; i += kThreads) words[i] = a.source[i] + 5;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(a.target, smem_u32(words), sizeof words);
    bulk_commit_group();
    if (!a.bug) bulk_wait_group<0>();
  }
}

// ---- initialisation ----

__global__ void missing_init_sync(Args a) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == kThreads - 1) {
    mbarrier_init(smem_u32(&barrier), kThreads);
    fence_mbarrier_init_release_cluster();
  }
  if (!a.bug) __syncthreads();
  arrive(&barrier);
  a.target[threadIdx.x] = wait_parity(smem_u32(&barrier), 0);
}

__global__ void __cluster_dims__(2, 1, 1) missing_cluster_init_sync(Args a) {
  __shared__ uint64_t barrier;
  const uint32_t rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    mbarrier_init(smem_u32(&barrier), 1);
    fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (!a.bug) cluster_sync();
  if (threadIdx.x == 0) mbarrier_arrive_cluster(mapa(smem_u32(&barrier), rank ^ 1));
  __syncwarp();
  a.target[rank * kThreads + threadIdx.x] = wait_parity(smem_u32(&barrier), 0);
  cluster_sync();
}

// ---- clusters ----

__global__ void __cluster_dims__(2, 1, 1) missing_cluster_exit_sync(Args a) {
  __shared__ uint32_t words[kThreads];
  const uint32_t rank = cluster_ctarank();
  words[threadIdx.x] = a.source[threadIdx.x] + rank;
  cluster_sync();
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];"
               : "=r"(value)
               : "r"(mapa(smem_u32(words + threadIdx.x), rank ^ 1))
               : "memory");
  a.target[rank * kThreads + threadIdx.x] = value;
  if (!a.bug) cluster_sync();
}

__global__ void __cluster_dims__(2, 1, 1) arrive_at_own_barrier(Args a) {
  __shared__ uint64_t barrier;
  const uint32_t rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    mbarrier_init(smem_u32(&barrier), 2);
    fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    const uint32_t own = mapa(smem_u32(&barrier), rank), peer = mapa(smem_u32(&barrier), rank ^ 1);
    mbarrier_arrive_cluster(own);
    // With the bug rank 1 signals itself twice and its peer never.
    mbarrier_arrive_cluster(a.bug && rank == 1 ? own : peer);
  }
  __syncwarp();
  a.target[rank * kThreads + threadIdx.x] = wait_parity(smem_u32(&barrier), 0);
  cluster_sync();
}

struct Planted {
  const char* name;
  void (*kernel)(Args);
  uint32_t ctas;
};
constexpr Planted kPlanted[] = {
    {"missing_syncthreads", missing_syncthreads, 1},
    {"missing_second_syncthreads", missing_second_syncthreads, 1},
    {"missing_full_wait", missing_full_wait, 1},
    {"missing_empty_wait", missing_empty_wait, 1},
    {"missing_empty_arrive", missing_empty_arrive, 1},
    {"wrong_parity", wrong_parity, 1},
    {"expect_too_small", expect_too_small, 1},
    {"expect_too_large", expect_too_large, 1},
    {"missing_proxy_fence", missing_proxy_fence, 1},
    {"missing_read_wait", missing_read_wait, 1},
    {"missing_last_wait", missing_last_wait, 1},
    {"missing_init_sync", missing_init_sync, 1},
    {"missing_cluster_init_sync", missing_cluster_init_sync, 2},
    {"missing_cluster_exit_sync", missing_cluster_exit_sync, 2},
    {"arrive_at_own_barrier", arrive_at_own_barrier, 2},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--list";
  const bool correct = argc > 2 && std::strcmp(argv[2], "--correct") == 0;
  for (const Planted& planted : kPlanted) {
    if (name == "--list") std::puts(planted.name);
    if (name != planted.name) continue;
    Args args{nullptr, nullptr, !correct};
    cudaMalloc(&args.source, 16384);
    cudaMalloc(&args.target, 16384);
    cudaMemset(args.source, 3, 16384);
    cudaMemset(args.target, 0, 16384);
    planted.kernel<<<planted.ctas, kThreads>>>(args);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) std::printf("%s: %s\n", planted.name, cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 1;
  }
  return name == "--list" ? 0 : 2;
}
