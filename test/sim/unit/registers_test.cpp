// registers_test.cpp -- setmaxnreg: what a thread holds at launch, the pool of a CTA, and who waits for it.
#include "sim/exec/occupancy.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace registers_test {

using namespace sim_test;
using sim::FaultKind;

// The first `releasing` warps execute .dec, the others .inc, and everybody writes its thread number.
static void run(const std::string& dec, const std::string& inc, uint32_t releasing, uint32_t threads,
                const std::string& directives) {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(threads);
  machine.run(kernel_text(".param .u64 out",
                          R"(
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, )" + std::to_string(32 * releasing) +
                              R"(; @%p1 bra RELEASE;
    )" + inc + R"( bra DONE;
    RELEASE: )" + dec + R"(
    DONE:
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r1; ret;)",
                          "", directives),
              shape(1, threads), {&out});
  const std::vector<uint32_t> result = machine.fetch(out, threads);
  for (uint32_t i = 0; i < threads; ++i) REQUIRE(result[i] == i);
}

static std::string less(int count) {
  return "setmaxnreg.dec.sync.aligned.u32 " + std::to_string(count) + ";";
}
static std::string more(int count) {
  return "setmaxnreg.inc.sync.aligned.u32 " + std::to_string(count) + ";";
}

TEST_CASE("setmaxnreg: registers at launch follow from the kernel's directives", "[setmaxnreg]") {
  struct Case {
    uint32_t max_registers, max_ntid, min_ctas;
    int registers;
  };
  const Case c = GENERATE(values<Case>({{0, 0, 0, 0},  // the PTX does not say
                                        {128, 0, 0, 128},
                                        {100, 0, 0, 104},  // in units of 8
                                        {0, 384, 0, 168},  // 65536 / 384 = 170.7
                                        {0, 384, 1, 168},
                                        {0, 128, 2, 256},
                                        {0, 128, 4, 128},
                                        {0, 128, 1, 256},  // no thread has more
                                        {96, 384, 1, 96},
                                        {200, 384, 1, 168}}));
  sim::KernelInfo kernel;
  kernel.max_registers = c.max_registers;
  kernel.max_ntid = {c.max_ntid, c.max_ntid == 0 ? 0u : 1u, c.max_ntid == 0 ? 0u : 1u};
  kernel.min_ctas = c.min_ctas;
  CAPTURE(c.max_registers, c.max_ntid, c.min_ctas);
  CHECK(sim::registers_at_launch(sim::kH200, kernel) == c.registers);
}

TEST_CASE("setmaxnreg: what one warpgroup releases two others take", "[setmaxnreg]") {
  // 384 threads of 168: 128 * (168 - 24) = 18432 = 256 * (240 - 168).
  CHECK_NOTHROW(run(less(24), more(240), 4, 384, ".maxntid 384\n.minnctapersm 1"));
  CHECK_NOTHROW(run(less(24), more(240), 4, 384, ".maxnreg 168"));
}

TEST_CASE(
    "setmaxnreg: a warp that asks for more than the pool will ever hold is in the report of the stuck grid",
    "[setmaxnreg]") {
  const sim::Fault fault = fault_of([] { run(less(32), more(240), 4, 384, ".maxntid 384"); });
  CHECK(fault.kind() == FaultKind::kDeadlock);
  // 17408 were released, of which seven warps took 2304 each.
  CHECK(says(fault,
             "waits for registers: its threads hold 168 each and need 2304 more together, but the pool of "
             "the CTA has 1280"));
}

TEST_CASE("setmaxnreg: counts, directions and kernels for which it is not", "[setmaxnreg]") {
  const auto refused = [](const std::string& dec, const std::string& inc, const std::string& directives,
                          const std::string& text) {
    const sim::Fault fault = fault_of([&] { run(dec, inc, 4, 256, directives); });
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, text));
  };
  refused(less(20), "", ".maxntid 256", "between 24 and 256");
  refused(less(42), "", ".maxntid 256", "a multiple of 8");
  refused(less(264), "", ".maxntid 256", "between 24 and 256");
  refused(less(40), "", "", "neither .maxnreg nor .maxntid");
  refused(less(128), "", ".maxnreg 96", ".dec by threads that hold 96 registers");
  refused("", more(64), ".maxnreg 96", ".inc by threads that hold 96 registers");
}

}  // namespace registers_test
