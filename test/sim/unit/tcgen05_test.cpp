// tcgen05_test.cpp -- the tensor core path as a program takes it: allocate, copy scales, multiply, commit,
// wait, load. Operands are constant along K and vary by row, so a result says which row, which scale and
// which CTA it came from.
//
//   A row m: one code for the whole CTA     B row n: code n (even CTA) or 7 - n (odd CTA)
//   SFA: 1.0 for rows 0-63, 2.0 for rows 64-127            SFB: 1.0
#include <array>

#include "sim/unit/late_policy.hpp"
#include "sim/unit/recorder.hpp"
#include "sim/unit/tensor_fixture.hpp"
#include "support/catch.hpp"

namespace tcgen05_test {

using namespace sim_test;
using sim::FaultKind;

constexpr std::array<float, 8> kE2m1 = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

static std::vector<float> run(const Shape& shape, const std::string& wait, const std::string& release,
                              sim::Policy* policy = nullptr) {
  Machine machine;
  const uint32_t ctas = shape.group[0] == '2' ? 2 : 1;
  float* out = machine.make<float>(size_t(128) * ctas * size_t(shape.columns));
  sim::LaunchOptions options;
  options.policy = policy;
  machine.run(multiply(shape, wait, release), sim_test::shape(ctas, 128, ctas, 18432 + 64), {&out}, options);
  return machine.fetch(out, size_t(128) * ctas * size_t(shape.columns));
}

static void check_product(const Shape& shape, const std::vector<float>& d) {
  const int n_per_cta = 8;
  for (size_t i = 0; i < d.size(); ++i) {
    const int m = int(i) / shape.columns, n = int(i) % shape.columns;
    const float a = m < 128 ? 1.0f : 2.0f, sfa = m % 128 < 64 ? 1.0f : 2.0f;
    const float b = kE2m1[size_t(n < n_per_cta ? n : 7 - (n - n_per_cta))];
    if (d[i] != 2 * 64 * a * sfa * b) {  // two multiplications, the second accumulates
      CAPTURE(m, n);
      REQUIRE(d[i] == 2 * 64 * a * sfa * b);
    }
  }
}

TEST_CASE("one CTA multiplies block-scaled tiles and reads the accumulators of its lanes", "[tcgen05]") {
  check_product(kSingle, run(kSingle, kWaitForMma, kFree));
}

TEST_CASE("a pair of CTAs multiplies one tile from both shared memories, and the commit reaches both",
          "[tcgen05]") {
  check_product(kPair, run(kPair, kWaitForMma, kFree));
}

TEST_CASE("tcgen05.mma leaves the lanes alone that its vector names", "[tcgen05]") {
  // The second multiplication is one of f16, of the same bytes, all of whose results are others.
  const auto text = [](const std::string& lanes, const std::string& end = "") {
    const std::string text = multiply(kSingle, kWaitForMma, kFree);
    const size_t at = text.rfind("tcgen05.mma.");
    return text.substr(0, at) +
           "mov.u32 %r35, 0x08040010; mov.u32 %r36, 0; mov.u32 %r37, -1; setp.ne.u32 %p8, %r34, %r34;\n"
           "  tcgen05.mma.cta_group::1.kind::f16 [%r20], %rd2, %rd3, %r35" +
           lanes + ", %p8" + end + text.substr(text.find(';', at));
  };
  const auto multiplied = [&](const std::string& lanes, Recorder* seen) {
    Machine machine;
    float* out = machine.make<float>(128 * 8);
    sim::LaunchOptions options;
    options.observer = seen;
    machine.run(text(lanes), sim_test::shape(1, 128, 1, 18432 + 64), {&out}, options);
    return machine.fetch(out, 128 * 8);
  };
  const auto [lanes, kept] = GENERATE(table<std::string, uint32_t>({{"", 0},
                                                                    {", {%r36, %r36, %r36, %r36}", 0},
                                                                    {", {%r37, %r36, %r37, %r36}", 5},
                                                                    {", {%r37, %r37, %r37, %r37}", 15}}));
  Recorder seen;
  const std::vector<float> d = multiplied(lanes, &seen);
  int wrong = 0;
  for (size_t lane = 0; lane < 128; ++lane)
    for (size_t n = 1; n < 8; ++n) {
      const float first = 64 * (lane < 64 ? 1.0f : 2.0f) * kE2m1[n];
      wrong += (d[lane * 8 + n] == first) != ((kept >> lane / 32 & 1) != 0);
    }
  CHECK(wrong == 0);
  // What is kept is no part of what the operation is said to write.
  uint32_t written = 0;
  for (const sim::Region& region : seen.of(sim::AsyncIssue::Kind::kMma).back().writes)
    for (uint32_t lane = region.lane; lane < uint32_t(region.lane + region.lanes); lane += 32)
      written |= 1u << lane / 32;
  CHECK(written == (~kept & 15));

  const auto refused = [&](const std::string& program) {
    Machine machine;
    float* out = machine.make<float>(128 * 8);
    return fault_of([&] { machine.run(program, sim_test::shape(1, 128, 1, 18432 + 64), {&out}); }).kind();
  };
  CHECK(refused(text(", {%r36, %r36}")) == FaultKind::kUnsupported);
  CHECK(refused(text(", {%r36, %r36, %r36, %r36}", ", 1")) == FaultKind::kUnsupported);  // scale-input-d
  CHECK(refused(text(", {%r36, %r36, %r36, %r39}")) == FaultKind::kPoison);
}

TEST_CASE("the result does not depend on when tensor work completes", "[tcgen05]") {
  LatePolicy late;
  check_product(kSingle, run(kSingle, kWaitForMma, kFree, &late));
  check_product(kPair, run(kPair, kWaitForMma, kFree, &late));
}

TEST_CASE("accumulators read without waiting for the commit are poison when the tensor core is late",
          "[tcgen05]") {
  LatePolicy late;
  const auto fault = fault_of([&] { run(kSingle, "", kFree, &late); });
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "tcgen05.ld"));
}

TEST_CASE("tensor memory that is not freed is a leak", "[tcgen05]") {
  const auto fault = fault_of([&] { run(kSingle, kWaitForMma, ""); });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "32 tensor memory columns"));
}

TEST_CASE("allocating for a pair without a pair is refused", "[tcgen05]") {
  Machine machine;
  float* out = machine.make<float>(128 * 16);
  const auto fault = fault_of([&] {
    machine.run(multiply(kPair, kWaitForMma, kFree), sim_test::shape(1, 128, 1, 18432 + 64), {&out});
  });
  CHECK(fault.kind() == FaultKind::kProtocol);
}

TEST_CASE("a deadlock over tensor memory says what is held and who has not asked", "[tcgen05]") {
  Machine machine;
  Recorder seen;
  sim::LaunchOptions options;
  options.observer = &seen;
  const auto fault = fault_of([&] {
    machine.run(kernel_text("", R"(
      .reg .pred %p<4>; .reg .b32 %r<8>;
      mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, cell; mov.u32 %r3, bar;
      mbarrier.init.shared::cta.b64 [%r3], 64;
      setp.ne.u32 %p1, %r1, 0;
      @%p1 bra WAIT;
      tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 32;
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
      @!%p2 bra WAIT;
      ret;)",
                            ".shared .align 4 .b8 cell[4]; .shared .align 8 .b8 bar[8];"),
                sim_test::shape(2, 32, 2), {}, options);
  });
  const auto asked = seen.of(sim::SyncEvent::Kind::kTmemAsk);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].thread.cta == 0);
  CHECK(asked[0].amount == 32);
  CHECK(asked[0].partner.value().cta == 1);
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "its CTA holds 0 of 512 columns"));
  CHECK(says(fault, "asks to allocate 32, and CTA rank 1, its pair, has not asked"));
}

TEST_CASE("CTAs of a pair that ask for different columns are told apart", "[tcgen05]") {
  const auto fault_of_body = [](const std::string& body) {
    Machine machine;
    const auto fault = fault_of([&] {
      machine.run(kernel_text("", R"(
        .reg .pred %p<4>; .reg .b32 %r<8>;
        mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, cell;
        setp.ne.u32 %p1, %r1, 0;)" + body,
                              ".shared .align 4 .b8 cell[4];"),
                  sim_test::shape(2, 32, 2), {});
    });
    CHECK(fault.kind() == FaultKind::kProtocol);
    return std::string(fault.what());
  };
  const std::string other_base = fault_of_body(R"(
      tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 64;
      mul.lo.u32 %r3, %r1, 32;
      tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 32;
      ret;)");
  CHECK_THAT(other_base, dualgemm_test::contains("CTA rank 0 frees 32 columns from column 0") &&
                             dualgemm_test::contains("CTA rank 1 frees 32 columns from column 32"));
  const std::string other_size = fault_of_body(R"(
      @%p1 bra MORE;
      tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 64;
      ret;
    MORE:
      tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 128;
      ret;)");
  CHECK_THAT(other_size, dualgemm_test::contains("CTA rank 0 allocates 64 columns") &&
                             dualgemm_test::contains("CTA rank 1 allocates 128 columns"));
  const std::string other_act = fault_of_body(R"(
      @%p1 bra FREE;
      tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 64;
      ret;
    FREE:
      mov.u32 %r3, 0;
      tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64;
      ret;)");
  CHECK_THAT(other_act, dualgemm_test::contains("CTA rank 0 allocates 64 columns") &&
                            dualgemm_test::contains("CTA rank 1 frees 64 columns from column 0"));
}

TEST_CASE("a load past the allocated columns is a fault of the load, whenever it takes effect", "[tcgen05]") {
  class LateLoads : public LatePolicy {
   public:
    bool load_early() override { return false; }
  } late;
  const std::string body = R"(
      .reg .b32 %r<4>;
      mov.u32 %r1, cell;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
      tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [32];
      tcgen05.wait::ld.sync.aligned;
      ret;)";
  std::vector<std::string> texts;
  for (sim::Policy* policy : {static_cast<sim::Policy*>(nullptr), static_cast<sim::Policy*>(&late)}) {
    Machine machine;
    sim::LaunchOptions options;
    options.policy = policy;
    const auto fault = fault_of([&] {
      machine.run(kernel_text("", body, ".shared .align 4 .b8 cell[4];"), sim_test::shape(1, 32), {},
                  options);
    });
    CHECK(fault.kind() == FaultKind::kBounds);
    CHECK(says(fault, ": `tcgen05.ld."));
    texts.emplace_back(fault.what());
  }
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("a CTA that asks for tensor memory again keeps nobody from moving", "[tcgen05]") {
  // The first CTAs of two pairs move whenever they can, the second CTAs only while both first ones sleep.
  class FirstOfPairs : public sim::Policy {
   public:
    size_t next(const std::vector<sim::Agent>& agents) override {
      if (++choices_ > 1000) throw std::runtime_error("the CTAs that asked never sleep");
      for (const uint32_t rank : {0u, 2u, 1u})
        for (size_t i = 0; i < agents.size(); ++i)
          if (agents[i].rank == rank) return i;
      return 0;
    }

   private:
    int choices_ = 0;
  } policy;
  sim::LaunchOptions options;
  options.policy = &policy;
  Machine machine;
  machine.run(kernel_text("", R"(
    .reg .b32 %r<8>;
    mov.u32 %r2, cell;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 32;
    ld.shared.u32 %r3, [%r2];
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 32;
    ret;)",
                          ".shared .align 4 .b8 cell[4];"),
              sim_test::shape(4, 32, 4), {}, options);
}

TEST_CASE("what st writes, ld reads back, in every shape", "[tcgen05]") {
  const auto [shape, registers] = GENERATE(Catch::Generators::table<std::string, int>(
      {{"32x32b.x4", 4}, {"16x64b.x4", 4}, {"16x128b.x2", 4}, {"16x256b.x1", 4}}));
  INFO(shape);
  std::string regs = "%r10, %r11, %r12, %r13", back = "%r14, %r15, %r16, %r17";
  REQUIRE(registers == 4);
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(32 * 4);
  machine.run(kernel_text(".param .u64 out",
                          R"(
    .reg .b32 %r<32>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, cell;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
    ld.shared.u32 %r3, [%r2];
    mul.lo.u32 %r10, %r1, 4; add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;
    tcgen05.st.sync.aligned.)" +
                              shape + R"(.b32 [%r3], {)" + regs + R"(};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.)" +
                              shape + R"(.b32 {)" + back + R"(}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd2, %r1, 16; add.u64 %rd2, %rd1, %rd2;
    st.global.v4.u32 [%rd2], {)" +
                              back + R"(};
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    ret;)",
                          ".shared .align 4 .b8 cell[4];"),
              sim_test::shape(1, 32), {&out});
  const auto result = machine.fetch(out, 128);
  for (uint32_t i = 0; i < 128; ++i) CHECK(result[i] == i);
}

}  // namespace tcgen05_test
