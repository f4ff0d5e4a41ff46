// mbarriers.cu -- random command streams on one mbarrier object. The host draws a stream that the ISA allows
// (never more arrivals than pending, tx-count inside its range, states of this phase or the one before) with
// a small model; the device carries it out and records every result: pending counts of returned states and
// the outcomes of tests. The state word itself is opaque and never recorded.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

enum Command : uint32_t {
  kArrive,
  kArriveCount,
  kArriveNoComplete,
  kDrop,
  kDropCount,
  kDropNoComplete,
  kExpect,
  kComplete,
  kArriveExpect,
  kDropExpect,
  kTestParity,
  kTryParity,
  kTestState,
  kPendingCount,
  kCommands
};

struct Step {
  uint32_t command, argument;
};

constexpr uint32_t kStreams = 96, kSteps = 96;

class Stream {
 public:
  Stream(uint64_t seed) : random_(seed) {
    count = random_.below(4) == 0 ? 1 + random_.below(1000) : 1 + random_.below(6);
    expected_ = pending_ = int32_t(count);
    while (steps.size() < kSteps) {
      Step step{random_.below(kCommands), 0};
      if (allowed(step)) steps.push_back(step);
    }
  }

  uint32_t count;
  std::vector<Step> steps;

 private:
  bool allowed(Step& step) {
    const bool drops = step.command == kDrop || step.command == kDropCount ||
                       step.command == kDropNoComplete || step.command == kDropExpect;
    switch (step.command) {
      case kArrive:
      case kDrop: return arrive(1, drops);
      case kArriveCount:
      case kDropCount: {
        if (pending_ == 0) return false;
        step.argument = 1 + random_.below(uint32_t(pending_));
        return arrive(int32_t(step.argument), drops);
      }
      case kArriveNoComplete:
      case kDropNoComplete: {
        if (pending_ < 2) return false;
        step.argument = 1 + random_.below(uint32_t(pending_ - 1));
        return arrive(int32_t(step.argument), drops);
      }
      case kExpect: {
        step.argument = random_.below(5) == 0 ? 0 : random_.below(40000);
        return transact(int32_t(step.argument));
      }
      case kComplete: {
        const uint32_t limit = tx_ > 0 && random_.below(3) != 0 ? uint32_t(tx_) : 30000;
        step.argument = tx_ > 0 && random_.below(2) == 0 ? uint32_t(tx_) : random_.below(limit + 1);
        return transact(-int32_t(step.argument));
      }
      case kArriveExpect:
      case kDropExpect: {
        step.argument = random_.below(20000);
        if (pending_ < 1 || (drops && expected_ < 2) || tx_ + int32_t(step.argument) > kLimit) return false;
        tx_ += int32_t(step.argument);
        return arrive(1, drops);
      }
      case kTestParity:
      case kTryParity:
        step.argument = random_.below(2);
        return step.command == kTestParity || phase_parity_ != step.argument;
      case kTestState: return has_state_ && phase_ - state_phase_ <= 1;
      default: return has_state_;
    }
  }

  bool arrive(int32_t n, bool drop) {
    if (n > pending_ || (drop && expected_ - n < 1)) return false;
    has_state_ = true;
    state_phase_ = phase_;
    pending_ -= n;
    if (drop) expected_ -= n;
    settle();
    return true;
  }
  bool transact(int32_t bytes) {
    if (tx_ + bytes > kLimit || tx_ + bytes < -kLimit) return false;
    // Bytes may land before they are expected only while arrivals keep the phase open.
    if (tx_ + bytes < 0 && pending_ == 0) return false;
    tx_ += bytes;
    if (bytes != 0) settle();
    return true;
  }
  void settle() {
    if (pending_ != 0 || tx_ != 0) return;
    ++phase_;
    phase_parity_ ^= 1;
    pending_ = expected_;
  }

  static constexpr int32_t kLimit = (1 << 20) - 1;
  Random random_;
  int32_t expected_, pending_, tx_ = 0;
  uint64_t phase_ = 0, state_phase_ = 0;
  uint32_t phase_parity_ = 0;
  bool has_state_ = false;
};

#define STATE(text, ...) asm volatile(text : "=l"(state) : __VA_ARGS__ : "memory")

// Records two words per step: the outcome of a test (or 2) and the pending count of the last state.
__global__ void run_streams(const uint32_t* counts, const Step* steps, uint32_t* out) {
  __shared__ uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t mbar = smem_u32(&barrier);
  mbarrier_init(mbar, counts[blockIdx.x]);
  uint64_t state = 0;
  bool has_state = false;
  for (uint32_t i = 0; i < kSteps; ++i) {
    const Step step = steps[blockIdx.x * kSteps + i];
    const uint32_t n = step.argument;
    uint32_t outcome = 2, pending = 0xFFFFFFFF;
    bool returns = true;
    switch (step.command) {
      case kArrive: STATE("mbarrier.arrive.shared::cta.b64 %0, [%1];", "r"(mbar)); break;
      case kArriveCount: STATE("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n)); break;
      case kArriveNoComplete:
        STATE("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n));
        break;
      case kDrop: STATE("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];", "r"(mbar)); break;
      case kDropCount: STATE("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n)); break;
      case kDropNoComplete:
        STATE("mbarrier.arrive_drop.noComplete.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n));
        break;
      case kArriveExpect:
        STATE("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n));
        break;
      case kDropExpect:
        STATE("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %0, [%1], %2;", "r"(mbar), "r"(n));
        break;
      default: returns = false;
    }
    has_state = has_state || returns;
    switch (step.command) {
      case kExpect:
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbar), "r"(n)
                     : "memory");
        break;
      case kComplete:
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbar), "r"(n)
                     : "memory");
        break;
#define TEST(text, value)                                                      \
  asm volatile("{ .reg .pred p; " text " p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
               : "=r"(outcome)                                                 \
               : "r"(mbar), value                                              \
               : "memory")
      case kTestParity: TEST("mbarrier.test_wait.parity.shared::cta.b64", "r"(n)); break;
      case kTryParity: TEST("mbarrier.try_wait.parity.shared::cta.b64", "r"(n)); break;
      case kTestState: TEST("mbarrier.test_wait.shared::cta.b64", "l"(state)); break;
      default: break;
    }
    if (has_state) asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[(blockIdx.x * kSteps + i) * 2] = outcome;
    out[(blockIdx.x * kSteps + i) * 2 + 1] = pending;
  }
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(mbar) : "memory");
}

const Register streams("mbarriers/streams", [](Recorder& out) {
  std::vector<uint32_t> counts;
  std::vector<Step> steps;
  for (uint32_t i = 0; i < kStreams; ++i) {
    const Stream stream(i + 1);
    counts.push_back(stream.count);
    steps.insert(steps.end(), stream.steps.begin(), stream.steps.end());
  }
  const Buffer<uint32_t> count_buffer(counts);
  const Buffer<Step> step_buffer(steps);
  Buffer<uint32_t> results(kStreams * kSteps * 2);
  launch({kStreams, 32}, run_streams, count_buffer.data(), step_buffer.data(), results.data());
  const std::vector<uint32_t> words = results.host();
  for (uint32_t i = 0; i < kStreams; ++i)
    out.exact("mbarriers/stream." + std::to_string(i),
              std::vector<uint32_t>(words.begin() + i * kSteps * 2, words.begin() + (i + 1) * kSteps * 2));
});

// Many threads run `rounds` phases: everybody arrives `n` times (thread 0 with the bytes of the round),
// completes its share of the bytes, and waits. Afterwards both parities are tested. The result is
// deterministic though the order of arrivals is not.
__global__ void crowd(uint32_t n, uint32_t rounds, uint32_t* out) {
  __shared__ uint64_t barrier;
  __shared__ uint32_t sum[8];
  const uint32_t mbar = smem_u32(&barrier), threads = blockDim.x;
  if (threadIdx.x < 8) sum[threadIdx.x] = 0;
  if (threadIdx.x == 0) mbarrier_init(mbar, threads * n);
  __syncthreads();
  uint32_t passed = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbar), "r"(threads * 16)
                   : "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(mbar) : "memory");
    atomicAdd(&sum[round], threadIdx.x + round);
    for (uint32_t i = 0; i < n; ++i)
      asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(mbar) : "memory");
    passed += wait_parity(mbar, round & 1);
    out[(round * threads + threadIdx.x) * 2] = passed;
    out[(round * threads + threadIdx.x) * 2 + 1] = sum[round];
  }
}

const Register crowds("mbarriers/crowd", [](Recorder& out) {
  for (uint32_t threads : {32u, 96u, 256u})
    for (uint32_t n : {1u, 3u}) {
      Buffer<uint32_t> results(threads * 8 * 2);
      launch({1, threads}, crowd, n, 8u, results.data());
      out.exact("mbarriers/crowd." + std::to_string(threads) + "x" + std::to_string(n), results.host());
    }
});

}  // namespace
}  // namespace conformance
