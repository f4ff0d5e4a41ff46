// copies_fixture.hpp -- programs around asynchronous copies: a prolog with two barriers and a buffer in
// shared memory, the usual waits, and tensors to load and store.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/tensor_map.h"
#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/schedule/schedule.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace sim_test {

using Words = std::vector<uint32_t>;

struct alignas(128) MapBytes {
  uint8_t bytes[128] = {};
};

// %r1 = tid, %r2 = bar, %r3 = buffer, %r4 = cluster rank, %rd9 = in, %rd1 = out + 4 * (thread of the grid),
// %rd5 = map, %p1 = not thread 0
inline const char* const kParams = ".param .u64 out, .param .u64 in, .param .align 128 .b8 map[128]";
inline const char* const kCopyProlog = R"(
  .reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
  ld.param.u64 %rd7, [out]; ld.param.u64 %rd9, [in];
  mov.b64 %rd4, map; cvta.param.u64 %rd5, %rd4;
  mov.u32 %r1, %tid.x; mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ntid.x; mad.lo.u32 %r42, %r40, %r41, %r1;
  mul.wide.u32 %rd8, %r42, 4; add.s64 %rd1, %rd7, %rd8;
  mov.u32 %r2, bar; mov.u32 %r3, buffer; mov.u32 %r4, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0; mov.u32 %r6, 0;
)";
inline const char* const kSharedVariables =
    ".shared .align 1024 .b8 buffer[2048]; .shared .align 8 .b8 bar[16];";
inline const char* const kInit = R"(
  @!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  @!%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
)";
inline const char* const kWait = R"(
  WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], %r6;
    @!%p2 bra WAIT;
)";
inline const char* const kLeave = R"(
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;)";
// out[thread] = the thread's word of the buffer
inline const char* const kReport = R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; ld.shared.u32 %r51, [%r50]; st.global.u32 [%rd1], %r51;
)";

struct Case {
  std::string body;
  uint32_t threads = 32, cluster = 1;
  MapBytes map = {};
  std::string mode = "default";   // of sim::make_policy
  sim::Policy* policy = nullptr;  // instead of a mode
  sim::Observer* observer = nullptr;
  std::string variables = kSharedVariables;
  size_t dynamic = 0;  // bytes of shared memory
  bool align_as_declared = true;
};

// Runs one cluster; `in` is read and written in place.
inline Words run(Machine& machine, uint32_t* in, const Case& c) {
  uint32_t* out = machine.make(Words(size_t(c.threads) * c.cluster, 0xEEEEEEEE));
  const std::unique_ptr<sim::Policy> policy = sim::make_policy(c.mode, 1);
  sim::LaunchOptions options;
  options.policy = c.policy != nullptr ? c.policy : policy.get();
  options.observer = c.observer;
  options.align_as_declared = c.align_as_declared;
  MapBytes map = c.map;
  machine.run(kernel_text(kParams, kCopyProlog + c.body, c.variables),
              shape(c.cluster, c.threads, c.cluster, c.dynamic), {&out, &in, &map}, options);
  return machine.fetch(out, size_t(c.threads) * c.cluster);
}

inline Words counting(size_t count, uint32_t first) {
  Words out(count);
  for (size_t i = 0; i < count; ++i) out[i] = first + uint32_t(i);
  return out;
}

// This is a tensor of 32-bit words inside a larger allocation, so that every byte a store must leave alone
// can be looked at.
struct Tensor {
  uint32_t rank;
  std::array<int64_t, 5> dims, box, at;  // elements; `at`: coordinates of the box
  std::array<int64_t, 5> strides;        // elements
  int64_t base, words;                   // first element and size of the allocation
  uint32_t swizzle = 0;
  bool nan_fill = false;  // the words are floats, and NaN fills what lies outside
};

inline MapBytes encode(const Tensor& t, uint32_t* allocation) {
  MapBytes map;
  uint64_t dims[5], strides[4];
  uint32_t box[5];
  const uint32_t ones[5] = {1, 1, 1, 1, 1};
  for (uint32_t i = 0; i < t.rank; ++i) {
    dims[i] = uint64_t(t.dims[i]);
    box[i] = uint32_t(t.box[i]);
    if (i > 0) strides[i - 1] = uint64_t(t.strides[i]) * 4;
  }
  std::string why;
  const uint32_t int32 = 3, float32 = 7;  // CUtensorMapDataType
  const int result = sim::encode_tiled(map.bytes, t.nan_fill ? float32 : int32, t.rank, allocation + t.base,
                                       dims, strides, box, ones, 0, t.swizzle, 0, t.nan_fill, &why);
  INFO(why);
  REQUIRE(result == 0);
  return map;
}

// Returns for each element of the box, in its order, the index in the allocation, or -1 outside the tensor.
inline std::vector<int64_t> elements(const Tensor& t) {
  int64_t count = 1;
  for (uint32_t i = 0; i < t.rank; ++i) count *= t.box[i];
  std::vector<int64_t> out;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, index = t.base;
    bool inside = true;
    for (uint32_t i = 0; i < t.rank; ++i) {
      const int64_t c = t.at[i] + rest % t.box[i];
      rest /= t.box[i];
      inside = inside && c >= 0 && c < t.dims[i];
      index += c * t.strides[i];
    }
    out.push_back(inside ? index : -1);
  }
  return out;
}

inline std::string coordinates(const Tensor& t, std::string* registers) {
  std::string code;
  for (uint32_t i = 0; i < t.rank; ++i) {
    code += "  mov.u32 %r" + std::to_string(20 + i) + ", " + std::to_string(t.at[i]) + ";\n";
    *registers += (i == 0 ? "{%r" : ", %r") + std::to_string(20 + i);
  }
  *registers += "}";
  return code;
}

// The box reaches over the high edge of dimensions 0 to 3 and over the low edge of dimension 4.
inline Tensor of_rank(uint32_t rank) {
  return {rank, {8, 3, 4, 2, 3}, {8, 2, 2, 2, 2}, {4, 2, 3, 1, -1}, {1, 12, 60, 300, 900}, 1840, 6000};
}

inline Tensor matrix(int64_t x, int64_t y, uint32_t swizzle) {
  return {2, {40, 10, 1, 1, 1}, {32, 8, 1, 1, 1}, {x, y, 0, 0, 0}, {1, 48, 0, 0, 0}, 52, 48 * 14, swizzle};
}

inline uint32_t shared_word(uint32_t word, uint32_t swizzle) {
  const uint32_t byte = word * 4;
  return (swizzle == 3 ? byte ^ ((byte >> 7 & 7) << 4) : byte) / 4;
}

}  // namespace sim_test
