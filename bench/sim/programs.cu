// programs.cu -- see programs.h.
#include "bench/sim/programs.h"

#include <cstdint>
#include <stdexcept>

#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "support/device_memory.h"
#include "support/device_problem.h"

namespace bench {
namespace {

using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr int kThreads = 256;

// ---- bytes: code that was never made wide -----------------------------------------------------------------

constexpr int kRow = 31, kBlockBytes = kRow * kThreads, kPasses = 2;

DUALGEMM_HOST_DEVICE int place_of(int i) { return (i * 1021 + 77) % kBlockBytes; }

// Every CTA shuffles a block of bytes some times in shared memory, byte by byte.
__global__ void shuffle(const uint8_t* in, uint8_t* out) {
  __shared__ uint8_t block[2][kBlockBytes];
  const size_t first = size_t{blockIdx.x} * kBlockBytes;
  for (int i = threadIdx.x; i < kBlockBytes; i += kThreads) block[0][i] = in[first + i];
  for (int pass = 0; pass < kPasses; ++pass) {
    __syncthreads();  // all bytes of a pass are written before the next one reads them
    for (int i = threadIdx.x; i < kBlockBytes; i += kThreads)
      block[(pass + 1) % 2][i] = block[pass % 2][place_of(i)] ^ uint8_t(i);
  }
  __syncthreads();  // and before the rows below do
  // Each thread goes on with a row of its own, of which a byte depends on the one before it.
  uint8_t x = 0;
  for (int i = threadIdx.x * kRow; i < (threadIdx.x + 1) * kRow; ++i) {
    x ^= block[kPasses % 2][i];
    block[kPasses % 2][i] = x;
    out[first + i] = x;
  }
}

// ---- registers: arithmetic that hardly touches memory -----------------------------------------------------

constexpr int kRounds = 400;

DUALGEMM_HOST_DEVICE uint32_t next(uint32_t x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ x << 5;
}

__global__ void mix(uint32_t* out) {
  uint32_t x = blockIdx.x * kThreads + threadIdx.x + 1;
#pragma unroll 1
  for (int i = 0; i < kRounds; ++i) x = next(x);
  out[blockIdx.x * kThreads + threadIdx.x] = x;
}

// ---- barriers: sums by halves, which a barrier separates --------------------------------------------------

constexpr int kSums = 40;

__global__ void add_up(const uint32_t* in, uint32_t* sum) {
  __shared__ uint32_t part[kThreads];
#pragma unroll 1
  for (int i = 0; i < kSums; ++i) {
    part[threadIdx.x] = in[threadIdx.x] + i;
    __syncthreads();  // all parts are written before the first halves add the others to theirs
#pragma unroll 1
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
      __syncthreads();  // as above, for the next halves
    }
    if (threadIdx.x == 0) atomicAdd(sum, part[0]);
    __syncthreads();  // part[0] is read before it is written again
  }
}

// ---- copies: a warp that fills a ring of stages, and warps that empty it ----------------------------------

constexpr int kStages = 4, kStageBytes = 4096, kCopies = 40;
constexpr int kWords = kStageBytes / 4, kReaders = 128;

// cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [dst], [src], bytes, [mbar];
// PTX ISA 9.0, 9.7.9.25.4.1. Addresses and `bytes` are multiples of 16.
__device__ void copy_in(void* dst, const void* src, uint32_t bytes, uint64_t* mbar) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   dualgemm::ptx::smem_u32(dst)),
               "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(dualgemm::ptx::smem_u32(mbar))
               : "memory");
}

__device__ void wait(uint64_t* mbar, uint32_t parity) {
  while (!dualgemm::ptx::mbarrier_try_wait_parity(mbar, parity)) {
  }
}

// Adds up, in each CTA, kCopies stages of `in`: a thread the words i, i + kReaders, ... of all of them.
__global__ void drain_ring(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t stage[kStages][kWords];
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      dualgemm::ptx::mbarrier_init(&full[s], 1);
      dualgemm::ptx::mbarrier_init(&empty[s], kReaders);
    }
    dualgemm::ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();  // the barriers are initialised before anybody waits for one or a copy counts on one
  if (threadIdx.x < kReaders) {
    uint32_t sum = 0;
    for (int i = 0; i < kCopies; ++i) {
      const int s = i % kStages;
      wait(&full[s], i / kStages % 2);  // the copy has written the stage before it is read
      for (int word = threadIdx.x; word < kWords; word += kReaders) sum += stage[s][word];
      dualgemm::ptx::fence_proxy_async_shared_cta();  // the words are read before a copy overwrites them
      dualgemm::ptx::mbarrier_arrive(&empty[s]);
    }
    out[blockIdx.x * kReaders + threadIdx.x] = sum;
  } else if (threadIdx.x == kReaders) {
    const uint32_t* const first = in + size_t{blockIdx.x} * kCopies * kWords;
    for (int i = 0; i < kCopies; ++i) {
      const int s = i % kStages;
      // All have read the stage before the copy overwrites it. A new barrier counts as in a phase that has
      // completed.
      wait(&empty[s], i / kStages % 2 ^ 1);
      dualgemm::ptx::mbarrier_arrive_expect_tx(&full[s], kStageBytes);
      copy_in(stage[s], first + i * kWords, kStageBytes, &full[s]);
    }
    // The readers' last arrivals come before the CTA ends.
    for (int i = kCopies; i < kCopies + kStages; ++i) wait(&empty[i % kStages], i / kStages % 2 ^ 1);
  }
}

// ---- programs ---------------------------------------------------------------------------------------------

void check(bool right, const std::string& name) {
  if (!right) throw std::runtime_error(name + ": a wrong result");
}

void finish() {
  check_cuda(cudaGetLastError(), "launch");
  check_cuda(cudaDeviceSynchronize(), "kernel");
}

class Bytes : public Program {
 public:
  explicit Bytes(int scale) : ctas_(2 * scale), in_(bytes(ctas_)), out_(in_.size(), 0) {}
  std::string name() const override { return "bytes"; }
  void run() override {
    shuffle<<<ctas_, kThreads>>>(in_.data(), out_.data());
    finish();
    const std::vector<uint8_t> in = in_.host(), out = out_.host();
    uint8_t x = 0;
    for (int i = 0; i < kBlockBytes; ++i) {
      x = (i % kRow == 0 ? 0 : x) ^ shuffled(in, kPasses, i);
      check(out[i] == x, name());
    }
  }

 private:
  // Returns byte i of the first block after some passes.
  static uint8_t shuffled(const std::vector<uint8_t>& in, int passes, int i) {
    return passes == 0 ? in[i] : shuffled(in, passes - 1, place_of(i)) ^ uint8_t(i);
  }
  static std::vector<uint8_t> bytes(int ctas) {
    std::vector<uint8_t> out(size_t(ctas) * kBlockBytes);
    uint32_t x = 1;
    for (uint8_t& byte : out) byte = uint8_t(x = next(x));
    return out;
  }
  int ctas_;
  DeviceArray<uint8_t> in_, out_;
};

class Registers : public Program {
 public:
  explicit Registers(int scale) : ctas_(2 * scale), out_(size_t(ctas_) * kThreads, 0) {}
  std::string name() const override { return "registers"; }
  void run() override {
    mix<<<ctas_, kThreads>>>(out_.data());
    finish();
    uint32_t expected = uint32_t(ctas_) * kThreads;
    for (int i = 0; i < kRounds; ++i) expected = next(expected);
    check(out_.host().back() == expected, name());
  }

 private:
  int ctas_;
  DeviceArray<uint32_t> out_;
};

class Barriers : public Program {
 public:
  explicit Barriers(int scale) : ctas_(2 * scale), in_(kThreads, 0), sum_(1) {}
  std::string name() const override { return "barriers"; }
  void run() override {
    sum_.fill(0);
    add_up<<<ctas_, kThreads>>>(in_.data(), sum_.data());
    finish();
    check(sum_.host()[0] == uint32_t(ctas_) * kThreads * (kSums * (kSums - 1) / 2), name());
  }

 private:
  int ctas_;
  DeviceArray<uint32_t> in_, sum_;
};

class Copies : public Program {
 public:
  explicit Copies(int scale)
      : ctas_(2 * scale), in_(size_t(ctas_) * kCopies * kWords, 1), out_(size_t(ctas_) * kReaders, 0) {}
  std::string name() const override { return "copies"; }
  void run() override {
    drain_ring<<<ctas_, kReaders + 32>>>(in_.data(), out_.data());
    finish();
    for (const uint32_t sum : out_.host()) check(sum == 0x01010101u * (kCopies * kWords / kReaders), name());
  }

 private:
  int ctas_;
  DeviceArray<uint32_t> in_, out_;
};

// The library's own kernel. What it computes is checked by its tests.
class Tensor : public Program {
 public:
  explicit Tensor(int scale)
      : problem_(dualgemm_test::make_problem(dualgemm_test::Data::kFullRange, 128, 128 * scale, 512, 1)),
        device_(problem_, {}) {}
  std::string name() const override { return "tensor core"; }
  double multiply_adds() const override { return 2.0 * problem_.m * problem_.n * problem_.k; }
  void run() override {
    device_.launch(nullptr);
    finish();
  }

 private:
  dualgemm_test::Problem problem_;
  dualgemm_test::DeviceProblem device_;
};

}  // namespace

std::vector<std::unique_ptr<Program>> programs(int scale) {
  std::vector<std::unique_ptr<Program>> out;
  out.push_back(std::make_unique<Bytes>(scale));
  out.push_back(std::make_unique<Registers>(scale));
  out.push_back(std::make_unique<Barriers>(scale));
  out.push_back(std::make_unique<Copies>(scale));
  out.push_back(std::make_unique<Tensor>(scale));
  return out;
}

}  // namespace bench
