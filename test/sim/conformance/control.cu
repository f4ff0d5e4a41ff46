// control.cu -- divergent control flow with one legal outcome, and the barriers of a CTA: aligned and
// unaligned, named, reducing, producers and consumers.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

__device__ __noinline__ uint32_t collatz(uint32_t n) {
  uint32_t steps = 0;
  while (n != 1 && steps < 200) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}

__device__ __noinline__ uint32_t classify(uint32_t v) {
  switch (v % 9) {
    case 0: return v * 3;
    case 1: return v ^ 0x55;
    case 2: return collatz(v + 1);
    case 3: return v >> 2;
    case 4: return v + 1000;
    case 5: return ~v;
    case 6: return v * v;
    case 7: return v == 7 ? 1 : 2;
    default: return 77;
  }
}

__global__ void divergence(uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t v = i, trace = 0;
  for (uint32_t k = 0; k < (i % 13); ++k) {
    if (k == 5 && (i & 4)) break;
    if ((k ^ i) & 1) {
      v += classify(v & 63);
      if (v % 7 == 3) continue;
      trace = trace * 3 + 1;
    } else {
      v ^= trace;
      for (uint32_t j = 0; j < (v & 3); ++j) trace += collatz(j + k + 2);
    }
  }
  __syncwarp();
  out[i] = v * 31 + trace;
  if (i % 3 == 0) return;  // the rest goes on without these lanes
  out[i] += classify(i);
  if (i % 3 == 1) return;
  out[i] ^= collatz(i + 1) << 16;
}

const Register divergence_case("control/divergence", [](Recorder& out) {
  Buffer<uint32_t> words(8 * 256);
  launch({8, 256}, divergence, words.data());
  out.exact("control/divergence", words.host());
});

// Tries reductions over the CTA, with and without a thread count, in every operation.
__global__ void reductions(uint32_t* out) {
  const uint32_t t = threadIdx.x;
  uint32_t count, all, any;
#define REDUCE(d, what, value)                                       \
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; " what " }" \
               : "=r"(d)                                             \
               : "r"(uint32_t(value))                                \
               : "memory")
  for (uint32_t round = 0; round < 6; ++round) {
    const uint32_t v = ((t * 2654435761u) >> (round * 3)) & (round == 4 ? 0u : 1u) | (round == 5 ? 1u : 0u);
    REDUCE(count, "barrier.cta.red.popc.aligned.u32 %0, 1, p;", v);
    REDUCE(all, "barrier.cta.red.and.aligned.pred q, 2, p; selp.u32 %0, 1, 0, q;", v);
    REDUCE(any, "bar.red.or.pred q, 3, p; selp.u32 %0, 1, 0, q;", v);
    out[round * blockDim.x + t] = count | all << 16 | any << 17;
  }
  if (t >= 64) return;
  REDUCE(count, "bar.red.popc.u32 %0, 4, 64, p;", t & 1);
  out[6 * blockDim.x + t] = count;
}

const Register reduction_case("control/bar_red", [](Recorder& out) {
  Buffer<uint32_t> words(7 * 160);
  launch({1, 160}, reductions, words.data());
  out.exact("control/bar_red", words.host());
});

// Two producers and two consumers hand a buffer back and forth with bar.arrive and bar.sync.
__global__ void hand_over(uint32_t rounds, uint32_t* out) {
  __shared__ uint32_t words[64];
  const uint32_t warp = threadIdx.x / 32, t = threadIdx.x % 64;
  if (warp < 2) {
    for (uint32_t round = 0; round < rounds; ++round) {
      if (round != 0) asm volatile("barrier.cta.sync 5, 128;" ::: "memory");
      words[t] = round * 1000 + t;
      asm volatile("barrier.cta.arrive 6, 128;" ::: "memory");
    }
  } else {
    for (uint32_t round = 0; round < rounds; ++round) {
      asm volatile("bar.sync 6, 128;" ::: "memory");
      out[round * 64 + t] = words[63 - t];
      if (round + 1 < rounds) asm volatile("bar.arrive 5, 128;" ::: "memory");
    }
  }
}

const Register hand_over_case("control/hand_over", [](Recorder& out) {
  Buffer<uint32_t> words(10 * 64);
  launch({1, 128}, hand_over, 10u, words.data());
  out.exact("control/hand_over", words.host());
});

// Tries an unaligned barrier reached from two sides of a branch, and a scan that needs every __syncthreads.
__global__ void scan(uint32_t* out) {
  __shared__ uint32_t a[256];
  const uint32_t t = threadIdx.x;
  a[t] = t ^ 21;
  if (t & 1) {
    a[t] += 3;
    asm volatile("barrier.cta.sync 0;" ::: "memory");
  } else {
    asm volatile("barrier.cta.sync 0;" ::: "memory");
  }
  for (uint32_t step = 1; step < 256; step *= 2) {
    const uint32_t v = t >= step ? a[t - step] : 0;
    __syncthreads();
    a[t] += v;
    __syncthreads();
  }
  out[t] = a[t];
}

const Register scan_case("control/scan", [](Recorder& out) {
  Buffer<uint32_t> words(256);
  launch({1, 256}, scan, words.data());
  out.exact("control/scan", words.host());
});

// Tries atomics whose total does not depend on the order, and atomics of one lane, whose old values do not
// depend on it, either.
__global__ void atomics(uint32_t* global, uint64_t* wide, uint32_t* out) {
  __shared__ uint32_t shared[8];
  const uint32_t t = threadIdx.x;
  if (t < 8) shared[t] = t == 2 || t == 5 ? 0xFFFFFFFF : 0;
  __syncthreads();
  atomicAdd(&shared[0], t + 1);
  atomicMax(&shared[1], t * 3);
  atomicMin(&shared[2], t + 7);
  atomicOr(&shared[3], 1u << (t & 31));
  atomicXor(&shared[4], t * 0x01000193u);
  atomicAnd(&shared[5], ~(1u << (t & 15)));
  atomicInc(&shared[6], 100);
  atomicDec(&shared[7], 50);
  atomicAdd(&global[0], t);
  atomicMax(reinterpret_cast<int*>(&global[1]), int(t) - 300);
  atomicAdd(reinterpret_cast<unsigned long long*>(wide), 0x100000001ull * t);
  __syncthreads();
  if (t < 8) out[t] = shared[t];
  if (t == 0) {
    out[8] = atomicExch(&global[2], 5);
    out[9] = atomicCAS(&global[2], 5, 9);
    out[10] = atomicCAS(&global[2], 5, 11);
    out[11] = atomicInc(&global[2], 9);
    out[12] = atomicDec(&global[2], 9);
    out[13] = atomicSub(&global[2], 4);
    float* f = reinterpret_cast<float*>(&global[3]);
    out[14] = __float_as_uint(atomicAdd(f, 1.5f));
    out[15] = __float_as_uint(atomicAdd(f, 1e-8f));
    for (int i = 0; i < 4; ++i) out[16 + i] = global[i];
  }
}

const Register atomic_case("control/atomics", [](Recorder& out) {
  Buffer<uint32_t> global(8), words(20);
  Buffer<uint64_t> wide(1);
  launch({1, 256}, atomics, global.data(), wide.data(), words.data());
  out.exact("control/atomics", words.host());
  out.exact("control/atomics.wide", wide.host());
});

}  // namespace
}  // namespace conformance
