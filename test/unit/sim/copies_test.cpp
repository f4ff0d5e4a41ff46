// copies_test.cpp -- asynchronous copies as programs write them: bulk, tensor, cp.async and st.async, their
// groups and barriers. Every copy runs in two legal orders, landing at once and landing only when nothing
// else can move, so that a missing wait shows as poison and a wait that never ends as a deadlock.
#include <array>

#include "sim/engine/tensor_map.h"
#include "sim/exec/policy.h"
#include "support/catch.hpp"
#include "unit/sim/machine_fixture.hpp"

using namespace sim_test;
using sim::FaultKind;

namespace {

using Words = std::vector<uint32_t>;

// Warps first; of the copies, the oldest.
class LateCopies : public sim::Policy {
 public:
  size_t next(const std::vector<sim::Agent>& agents) override {
    for (size_t i = 0; i < agents.size(); ++i)
      if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
    return 0;
  }
};

struct alignas(128) MapBytes {
  uint8_t bytes[128] = {};
};

// %r1 = tid, %r2 = bar, %r3 = buffer, %r4 = cluster rank, %rd9 = in, %rd1 = out + 4 * (thread of the grid),
// %rd5 = map, %p1 = not thread 0
const char* const kParams = ".param .u64 out, .param .u64 in, .param .align 128 .b8 map[128]";
const char* const kProlog = R"(
  .reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
  ld.param.u64 %rd7, [out]; ld.param.u64 %rd9, [in];
  mov.b64 %rd4, map; cvta.param.u64 %rd5, %rd4;
  mov.u32 %r1, %tid.x; mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ntid.x; mad.lo.u32 %r42, %r40, %r41, %r1;
  mul.wide.u32 %rd8, %r42, 4; add.s64 %rd1, %rd7, %rd8;
  mov.u32 %r2, bar; mov.u32 %r3, buffer; mov.u32 %r4, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0; mov.u32 %r6, 0;
)";
const char* const kSharedVariables = ".shared .align 1024 .b8 buffer[2048]; .shared .align 8 .b8 bar[16];";
const char* const kInit = R"(
  @!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  @!%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
)";
const char* const kWait = R"(
  WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], %r6;
    @!%p2 bra WAIT;
)";
const char* const kLeave = R"(
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;)";
// out[thread] = the thread's word of the buffer
const char* const kReport = R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; ld.shared.u32 %r51, [%r50]; st.global.u32 [%rd1], %r51;
)";

struct Case {
  std::string body;
  uint32_t threads = 32, cluster = 1;
  MapBytes map = {};
  bool late = false;
};

// Runs one cluster; `in` is read and written in place.
Words run(Machine& machine, uint32_t* in, const Case& c) {
  uint32_t* out = machine.make(Words(size_t(c.threads) * c.cluster, 0xEEEEEEEE));
  LateCopies late;
  sim::LaunchOptions options;
  if (c.late) options.policy = &late;
  MapBytes map = c.map;
  machine.run(kernel_text(kParams, kProlog + c.body, kSharedVariables),
              shape(c.cluster, c.threads, c.cluster), {&out, &in, &map}, options);
  return machine.fetch(out, size_t(c.threads) * c.cluster);
}

Words counting(size_t count, uint32_t first) {
  Words out(count);
  for (size_t i = 0; i < count; ++i) out[i] = first + uint32_t(i);
  return out;
}

// A tensor of 32-bit words inside a larger allocation, so that every byte a store must leave alone can be
// looked at.
struct Tensor {
  uint32_t rank;
  std::array<int64_t, 5> dims, box, at;  // elements; `at`: coordinates of the box
  std::array<int64_t, 5> strides;        // elements
  int64_t base, words;                   // first element and size of the allocation
  uint32_t swizzle = 0;
  bool nan_fill = false;  // the words are floats, and NaN fills what lies outside
};

MapBytes encode(const Tensor& t, uint32_t* allocation) {
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

// For each element of the box in its order, the index in the allocation, or -1 outside the tensor.
std::vector<int64_t> elements(const Tensor& t) {
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

std::string coordinates(const Tensor& t, std::string* registers) {
  std::string code;
  for (uint32_t i = 0; i < t.rank; ++i) {
    code += "  mov.u32 %r" + std::to_string(20 + i) + ", " + std::to_string(t.at[i]) + ";\n";
    *registers += (i == 0 ? "{%r" : ", %r") + std::to_string(20 + i);
  }
  *registers += "}";
  return code;
}

// The box reaches over an edge in every dimension but the first at its low end.
Tensor of_rank(uint32_t rank) {
  return {rank, {8, 3, 4, 2, 3}, {4, 2, 2, 2, 2}, {6, 2, 3, 1, -1}, {1, 12, 60, 300, 900}, 1840, 6000};
}

Tensor matrix(int64_t x, int64_t y, uint32_t swizzle) {
  return {2, {40, 10, 1, 1, 1}, {32, 8, 1, 1, 1}, {x, y, 0, 0, 0}, {1, 48, 0, 0, 0}, 52, 48 * 14, swizzle};
}

uint32_t shared_word(uint32_t word, uint32_t swizzle) {
  const uint32_t byte = word * 4;
  return (swizzle == 3 ? byte ^ ((byte >> 7 & 7) << 4) : byte) / 4;
}

}  // namespace

TEST_CASE("tensor loads of one to five dimensions bring the box, the fill outside, and count the whole box") {
  const uint32_t rank = GENERATE(1u, 2u, 3u, 4u, 5u);
  const bool late = GENERATE(false, true);
  const bool nan_fill = GENERATE(false, true);
  CAPTURE(rank, late, nan_fill);
  Tensor tensor = of_rank(rank);
  tensor.nan_fill = nan_fill;
  const std::vector<int64_t> from = elements(tensor);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  std::string list;
  const std::string set = coordinates(tensor, &list);
  const std::string load =
      "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " + std::to_string(from.size() * 4) +
      ";\n@!%p1 cp.async.bulk.tensor." + std::to_string(rank) +
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, " + list + "], [%r2];\n";
  const Words out = run(
      machine, in,
      {set + kInit + load + kWait + kReport + kLeave, uint32_t(from.size()), 1, encode(tensor, in), late});
  for (size_t i = 0; i < from.size(); ++i) {
    CAPTURE(i);
    CHECK(out[i] == (from[i] >= 0 ? uint32_t(from[i]) + 1 : nan_fill ? 0x7FFFFFFFu : 0u));
  }
}

TEST_CASE(
    "tensor stores of one to five dimensions write the part of the box inside the tensor and nothing else") {
  const uint32_t rank = GENERATE(1u, 2u, 3u, 4u, 5u);
  const bool late = GENERATE(false, true);
  CAPTURE(rank, late);
  const Tensor tensor = of_rank(rank);
  const std::vector<int64_t> to = elements(tensor);
  Machine machine;
  Words expected = counting(size_t(tensor.words), 100000);
  uint32_t* in = machine.make(expected);
  std::string list;
  const std::string body = coordinates(tensor, &list) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; add.u32 %r51, %r1, 1; st.shared.u32 [%r50], %r51;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra DONE;
    cp.async.bulk.tensor.)" +
                           std::to_string(rank) + "d.global.shared::cta.tile.bulk_group [%rd5, " + list +
                           R"(], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  DONE:
    ret;)";
  run(machine, in, {body, uint32_t(to.size()), 1, encode(tensor, in), late});
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] >= 0) expected[size_t(to[i])] = uint32_t(i) + 1;
  CHECK(machine.fetch(in, expected.size()) == expected);
}

TEST_CASE("a swizzled tensor store undoes the swizzle, at every edge of the tensor") {
  struct At {
    int64_t x, y;
  };
  const At at =
      GENERATE(At{0, 0}, At{16, 6}, At{-8, -3}, At{-32, 0}, At{40, 0}, At{0, -8}, At{0, 10}, At{-4, 9});
  const uint32_t swizzle = GENERATE(0u, 3u);
  CAPTURE(at.x, at.y, swizzle);
  const Tensor tensor = matrix(at.x, at.y, swizzle);
  const std::vector<int64_t> to = elements(tensor);
  Machine machine;
  Words expected = counting(size_t(tensor.words), 100000);
  uint32_t* in = machine.make(expected);
  std::string list;
  const std::string body = coordinates(tensor, &list) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; st.shared.u32 [%r50], %r1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra DONE;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd5, )" +
                           list + R"(], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
  DONE:
    ret;)";
  run(machine, in, {body, 256, 1, encode(tensor, in), true});
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] >= 0) expected[size_t(to[i])] = shared_word(uint32_t(i), swizzle);
  CHECK(machine.fetch(in, expected.size()) == expected);
}

TEST_CASE("a wait for bulk groups covers all but the youngest groups, and only committed ones") {
  // One thread stores words 40, 41, ... in two copies; what it may read behind the wait says what the wait
  // covered.
  const auto result = [](const std::string& wait, int offset) {
    std::string fill;
    for (int i = 0; i < 32; ++i)
      fill += "mov.u32 %r51, " + std::to_string(i + 40) + "; st.shared.u32 [%r3+" + std::to_string(4 * i) +
              "], %r51;\n";
    const std::string body = fill + R"(
      fence.proxy.async.shared::cta;
      cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 64;
      cp.async.bulk.commit_group;
      cp.async.bulk.global.shared::cta.bulk_group [%rd9+64], [%r3+64], 64;
      )" + wait + "\n ld.global.u32 %r51, [%rd9+" +
                             std::to_string(offset) + R"(];
      st.global.u32 [%rd1], %r51;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
      ret;)";
    Machine machine;
    return run(machine, machine.make(Words(32, 7)), {body, 1, 1, {}, true})[0];
  };
  const auto kind = [&](const char* wait, int offset) {
    return fault_of([&] { result(wait, offset); }).kind();
  };
  CHECK(result("cp.async.bulk.wait_group 0;", 0) == 40);
  CHECK(kind("cp.async.bulk.wait_group 0;", 64) == FaultKind::kPoison);  // not committed
  CHECK(result("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 64) == 56);
  CHECK(result("cp.async.bulk.commit_group; cp.async.bulk.wait_group 1;", 0) == 40);
  CHECK(kind("cp.async.bulk.commit_group; cp.async.bulk.wait_group 1;", 64) == FaultKind::kPoison);
  CHECK(kind("cp.async.bulk.commit_group; cp.async.bulk.wait_group 2;", 0) == FaultKind::kPoison);
}

TEST_CASE("a bulk load lands in this CTA with either spelling of its destination, and with a cache policy") {
  const char* const form =
      GENERATE("shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];",
               "shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];",
               "shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%r3], [%rd9], 128, [%r2], %rd3;");
  const bool late = GENERATE(false, true);
  CAPTURE(form, late);
  Machine machine;
  uint32_t* in = machine.make(counting(32, 500));
  const std::string body = std::string(kInit) + R"(
    createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
    @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    cp.async.bulk.)" + form +
                           kWait + kReport + kLeave;
  CHECK(run(machine, in, {body, 32, 1, {}, late}) == counting(32, 500));
}

namespace {

// Rank 0 sends its buffer (100, 101, ...) to rank 1's second kilobyte. @BARRIER is the address of the
// barrier.
std::string send_to_peer(const std::string& barrier) {
  return std::string(kInit) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; add.u32 %r51, %r1, 100; st.shared.u32 [%r50], %r51;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r7, 1; mapa.shared::cluster.u32 %r8, %r3, %r7; mapa.shared::cluster.u32 %r9, %r2, %r7;
    setp.eq.u32 %p3, %r4, 0;
    @%p3 bra SEND;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;)" +
         kWait + R"(
    ld.shared.u32 %r51, [%r50+1024]; st.global.u32 [%rd1], %r51;
    bra.uni END;
  SEND:
    @!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+1024], [%r3], 128, [)" +
         barrier + R"(];
  END:)" +
         kLeave;
}

}  // namespace

TEST_CASE("a bulk copy between CTAs lands in the peer and signals the peer's barrier") {
  const bool late = GENERATE(false, true);
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {send_to_peer("%r9"), 32, 2, {}, late});
  for (uint32_t i = 0; i < 32; ++i) {
    CHECK(out[i] == 0xEEEEEEEE);
    CHECK(out[32 + i] == 100 + i);
  }
}

TEST_CASE("a bulk copy between CTAs whose barrier is not where it lands is a protocol fault") {
  Machine machine;
  const auto fault = fault_of([&] { run(machine, machine.make(Words{0}), {send_to_peer("%r2"), 32, 2}); });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "the mbarrier is in CTA rank 0, the destination in CTA rank 1"));
}

TEST_CASE("st.async stores scalars and vectors to the peer and counts their bytes") {
  struct Form {
    const char* text;
    uint32_t bytes;
  };
  const Form form = GENERATE(Form{"b32 [%r8], %r10, [%r9];", 4}, Form{"b64 [%r8], %rd10, [%r9];", 8},
                             Form{"v2.b32 [%r8], {%r10, %r11}, [%r9];", 8},
                             Form{"v4.b32 [%r8], {%r10, %r11, %r12, %r13}, [%r9];", 16},
                             Form{"v2.b64 [%r8], {%rd10, %rd11}, [%r9];", 16});
  const bool late = GENERATE(false, true);
  CAPTURE(form.text, late);
  // Every lane of rank r sends words 10 * r + 1000 * lane + {0, 1, 2, 3}.
  const std::string size = std::to_string(form.bytes);
  const std::string body = std::string(kInit) + R"(
    xor.b32 %r7, %r4, 1; mul.lo.u32 %r50, %r1, )" +
                           size + R"(; add.u32 %r50, %r50, %r3;
    mapa.shared::cluster.u32 %r8, %r50, %r7; mapa.shared::cluster.u32 %r9, %r2, %r7;
    mul.lo.u32 %r10, %r1, 1000; mad.lo.u32 %r10, %r4, 10, %r10;
    add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;
    mov.b64 %rd10, {%r10, %r11}; mov.b64 %rd11, {%r12, %r13};
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], )" +
                           std::to_string(32 * form.bytes) + R"(;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.)" +
                           form.text + kWait + R"(
    add.u32 %r50, %r50, )" +
                           std::to_string(form.bytes - 4) + R"(; ld.shared.u32 %r51, [%r50];
    st.global.u32 [%rd1], %r51;)" +
                           kLeave;
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {body, 32, 2, {}, late});
  for (uint32_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    CHECK(out[i] == 10 * (i / 32 ^ 1) + 1000 * (i % 32) + form.bytes / 4 - 1);
  }
}

TEST_CASE("cp.async copies 4, 8 or 16 bytes a lane; a shorter or ignored source leaves zeros") {
  struct Form {
    const char* text;
    uint32_t bytes, taken;
  };
  const Form form = GENERATE(Form{"ca.shared.global [%r50], [%rd10], 4;", 4, 4},
                             Form{"ca.shared.global [%r50], [%rd10], 8;", 8, 8},
                             Form{"cg.shared::cta.global.L2::128B [%r50], [%rd10], 16;", 16, 16},
                             Form{"cg.shared.global [%r50], [%rd10], 16, %r11;", 16, 4},
                             Form{"ca.shared.global [%r50], [%rd10], 8, 0;", 8, 0},
                             Form{"ca.shared.global [%r50], [%rd10], 8, %p4;", 8, 0},
                             Form{"ca.shared.global [%r50], [%rd10], 8, %p5;", 8, 8});
  const char* const wait = GENERATE("cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;");
  const bool late = GENERATE(false, true);
  CAPTURE(form.text, wait, late);
  const std::string body = std::string(R"(
    mul.lo.u32 %r50, %r1, )") +
                           std::to_string(form.bytes) +
                           R"(; cvt.u64.u32 %rd10, %r50; add.s64 %rd10, %rd10, %rd9;
    add.u32 %r50, %r50, %r3; mov.u32 %r11, 4; setp.eq.u32 %p4, %r11, 4; setp.ne.u32 %p5, %r11, 4;
    cp.async.)" + form.text +
                           wait + R"(
    mov.u32 %r51, 0; mov.u32 %r53, 0;
  SUM:
    ld.shared.u32 %r52, [%r50]; add.u32 %r51, %r51, %r52; add.u32 %r50, %r50, 4; add.u32 %r53, %r53, 4;
    setp.lt.u32 %p6, %r53, )" +
                           std::to_string(form.bytes) + R"(;
    @%p6 bra SUM;
    st.global.u32 [%rd1], %r51; ret;)";
  Machine machine;
  const Words out = run(machine, machine.make(counting(128, 1)), {body, 32, 1, {}, late});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < form.taken / 4; ++i) sum += lane * form.bytes / 4 + i + 1;
    CHECK(out[lane] == sum);
  }
}

TEST_CASE("cp.async groups complete oldest first, and reading before the wait is poison") {
  const auto read = [](const char* wait, int offset) {
    Machine machine;
    const std::string body = std::string(R"(
      cp.async.ca.shared.global [%r3], [%rd9], 4; cp.async.commit_group;
      cp.async.ca.shared.global [%r3+4], [%rd9+4], 4; cp.async.commit_group;
      )") + wait + " ld.shared.u32 %r51, [%r3+" +
                             std::to_string(offset) + R"(];
      st.global.u32 [%rd1], %r51; cp.async.wait_all; ret;)";
    return run(machine, machine.make(counting(2, 1)), {body, 1, 1, {}, true})[0];
  };
  CHECK(read("cp.async.wait_group 1;", 0) == 1);
  CHECK(read("cp.async.wait_group 0;", 4) == 2);
  CHECK(fault_of([&] { read("cp.async.wait_group 1;", 4); }).kind() == FaultKind::kPoison);
  CHECK(fault_of([&] { read("cp.async.wait_group 2;", 0); }).kind() == FaultKind::kPoison);
}

TEST_CASE("a multicast tensor load fills every CTA of the mask, no other, and signals in each") {
  const bool late = GENERATE(false, true);
  const Tensor tensor = matrix(0, 2, 3);
  const std::vector<int64_t> from = elements(tensor);
  // Rank 2 sends to ranks 1 and 3.
  const std::string body = std::string(kInit) +
                           R"(
    mov.u32 %r20, 0; mov.u32 %r21, 2; mov.b16 %h1, 10;
    and.b32 %r7, %r4, 1; setp.eq.u32 %p3, %r7, 1; setp.ne.u32 %p4, %r4, 2; or.pred %p4, %p4, %p1;
    setp.eq.u32 %p5, %r1, 0; and.pred %p5, %p5, %p3;
    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    @!%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster )"
                           "[%r3], [%rd5, {%r20, %r21}], [%r2], %h1;\n"
                           "@!%p3 bra END;" +
                           kWait + kReport + "END:" + kLeave;
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Words out = run(machine, in, {body, 256, 4, encode(tensor, in), late});
  for (uint32_t rank = 0; rank < 4; ++rank)
    for (uint32_t i = 0; i < 256; ++i) {
      CAPTURE(rank, i);
      const uint32_t at = 256 * rank + shared_word(i, 3);
      REQUIRE(out[at] == (rank % 2 == 0 ? 0xEEEEEEEE : uint32_t(from[i]) + 1));
    }
}

TEST_CASE("a cta_group::2 load of the odd CTA signals the even CTA's barrier through bit 24 of its address") {
  const bool late = GENERATE(false, true);
  const bool paired = GENERATE(true, false);
  CAPTURE(late, paired);
  const Tensor tensor = matrix(0, 0, 0);
  const std::vector<int64_t> from = elements(tensor);
  // Both CTAs load; the even one expects both boxes, waits, and then lets the odd one go on.
  const std::string body =
      std::string(kInit) + R"(
    mov.u32 %r20, 0; mov.u32 %r21, %r4; and.b32 %r9, %r2, 0xFEFFFFFF; setp.ne.u32 %p3, %r4, 0;
    setp.eq.u32 %p5, %r1, 0; setp.eq.and.u32 %p5, %r4, 0, %p5;
    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
    @!%p1 cp.async.bulk.tensor.2d)" +
      std::string(paired ? ".cta_group::2" : "") +
      ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, {%r20, %r21}], [%r9];\n"
      "@%p3 bra END;" +
      kWait + "END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" + kReport + "ret;";
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Case program = {body, 256, 2, encode(tensor, in), late};
  if (!paired) {
    const auto fault = fault_of([&] { run(machine, in, program); });
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "the mbarrier is in CTA rank 0, the destination in CTA rank 1"));
    return;
  }
  const Words out = run(machine, in, program);
  for (uint32_t i = 0; i < 512; ++i) REQUIRE(out[i] == uint32_t(from[i % 256]) + 1 + 48 * (i / 256));
}

TEST_CASE("a multicast commit arrives at the barrier of every CTA in its mask and of no other") {
  const bool late = GENERATE(false, true);
  const std::string group = GENERATE("1", "2");
  CAPTURE(late, group);
  // Rank 0 commits to ranks 0 and 2; test_wait says afterwards which phases completed.
  const std::string body = std::string(kInit) + R"(
    setp.eq.u32 %p5, %r42, 0; mov.b16 %h1, 5; and.b32 %r7, %r4, 1; setp.eq.u32 %p3, %r7, 1;
    @%p5 tcgen05.commit.cta_group::)" +
                           group +
                           R"(.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r2], %h1;
    @%p3 bra END;)" + kWait +
                           R"(
  END:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mbarrier.test_wait.parity.shared::cta.b64 %p6, [%r2], 0; selp.u32 %r51, 1, 0, %p6;
    st.global.u32 [%rd1], %r51;)" +
                           kLeave;
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {body, 32, 4, {}, late});
  for (uint32_t i = 0; i < 128; ++i) CHECK(out[i] == (i / 32 % 2 == 0 ? 1u : 0u));
}

TEST_CASE("prefetches load in every form and change nothing") {
  const std::string form =
      GENERATE("prefetch.global.L2 [%rd9];", "prefetch.global.L1 [%rd9];", "prefetch.L2 [%rd9];",
               "prefetch.global.L2::evict_last [%rd9];", "prefetch.global.L2::evict_normal [%rd9];",
               "prefetchu.L1 [%rd9];", "prefetch.tensormap [%rd5];", "prefetch.param.tensormap [map];",
               "cp.async.bulk.prefetch.L2.global [%rd9], 64;",
               "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd5, {%r6, %r6}];",
               "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r6, %r6}];");
  INFO(form);
  const Tensor tensor = matrix(0, 0, 0);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Words out =
      run(machine, in,
          {form + "ld.global.u32 %r51, [%rd9]; st.global.u32 [%rd1], %r51; ret;", 32, 1, encode(tensor, in)});
  CHECK(out == Words(32, 1));
  CHECK(machine.fetch(in, size_t(tensor.words)) == counting(size_t(tensor.words), 1));
}
