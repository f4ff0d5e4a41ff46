// target_test.cpp -- which .target may hold which instruction, against what ptxas of CUDA 13.0 accepted and
// refused for each of these lines.
#include "sim/decode/targets.h"

#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace target_test {

constexpr const char* kTargets[] = {"sm_90",   "sm_90a", "sm_100",  "sm_100f",
                                    "sm_100a", "sm_103", "sm_103f", "sm_103a"};

struct Line {
  const char* text;
  const char* accepted;  // one letter per target: y or n
};
constexpr const char *kAll = "yyyyyyyy", *kBlackwell = "nnyyyyyy", *kFamily = "nnnyynyy",
                     *kHopper = "nynnnnnn";
constexpr Line kLines[] = {
    {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r1], 32;", kFamily},
    {"tcgen05.dealloc.cta_group::1.sync.aligned.b32 r1, 32;", kFamily},
    {"tcgen05.cp.cta_group::1.32x128b.warpx4 [r1], d1;", kFamily},
    {"tcgen05.mma.cta_group::1.kind::f16 [r1], d1, d2, r3, p;", kFamily},
    {"tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [r1], d1, d2, r3, [r4], [r5], p;", kFamily},
    {"tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [r1], d1, d2, r3, [r4], [r5], p;",
     "nnnnynny"},
    {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [r1], d1, d2, r3, [r4], [r5], p;",
     "nnnnynny"},
    {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [d1];", kFamily},
    {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r2];", kFamily},
    {"tcgen05.wait::ld.sync.aligned;", kFamily},
    {"setmaxnreg.inc.sync.aligned.u32 64;", "nynyynyy"},
    {"tensormap.replace.tile.global_address.shared::cta.b1024.b64 [r1], d1;", "nynyynyy"},
    {"tensormap.replace.tile.global_dim.global.b1024.b32 [d1], 1, r1;", "nynyynyy"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d1], [r1], 128;",
     kAll},
    {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r1], [r4];",
     kBlackwell},
    {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all"
     ".b128 [r1], [r4];",
     kFamily},
    {"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;", kBlackwell},
    {"wgmma.fence.sync.aligned;", kHopper},
    {"wgmma.commit_group.sync.aligned;", kHopper},
    {"wgmma.wait_group.sync.aligned 0;", kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f1,f2,f3,f4}, d1, d2, p, 1, 1, 0, 0;", kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f1,f2,f3,f4}, {r1,r2,r3,r4}, d2, p, 1, -1, 1;",
     kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {f1,f2,f3,f4}, d1, d2, p, 1, 1;", kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {f1,f2,f3,f4}, {r1,r2,r3,r4}, d2, p, 1, -1;",
     kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3 {f1,f2,f3,f4}, d1, d2, p, -1, 1;", kHopper},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 {f1,f2,f3,f4}, {r1,r2,r3,r4}, d2, p, 1, 1;",
     kHopper},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [r1], {r2};", kAll},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r1,r2,r3,r4}, [r1];", kAll},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d1,{r2}], [r4];",
     kAll},
    {"cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [r1], [d1,{r2}], [r4];", kAll},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "[r1], [d1,{r2}], [r4], h1;",
     kAll},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1 "
     "[r1], [d1,{r2}], [r4];",
     kFamily},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
     ".cta_group::2 [r1], [d1,{r2}], [r4], h1;",
     kFamily},
    {"ld.global.v8.b32 {r1,r2,r3,r4,r5,r1,r2,r3}, [d1];", kBlackwell},
    {"ld.global.nc.v4.u64 {d1,d2,d3,d4}, [d1];", kBlackwell},
    {"ld.global.v4.b32 {r1,r2,r3,r4}, [d1];", kAll},
    {"ld.global.v2.b64 {d1,d2}, [d1];", kAll},
    {"st.global.v8.f32 [d1], {f1,f2,f3,f4,f1,f2,f3,f4};", kBlackwell},
    {"st.global.v4.b64 [d1], {d1,d2,d3,d4};", kBlackwell},
    {"add.rn.ftz.f32x2 d1, d2, d3;", kBlackwell},
    {"fma.rn.f32x2 d1, d2, d3, d4;", kBlackwell},
    {"add.rn.f32.f16 f1, h1, f2;", kBlackwell},
    {"fma.rn.f32.bf16 f1, h1, h2, f2;", kBlackwell},
    {"fma.rn.f16 h1, h1, h2, h1;", kAll},
    {"min.f32 f1, f2, f3, f4;", kBlackwell},
    {"max.NaN.f32 f1, f2, f3;", kAll},
    {"cvt.rn.satfinite.tf32.f32 r1, f1;", kBlackwell},
    {"cvt.rna.satfinite.tf32.f32 r1, f1;", kAll},
    {"cvt.rn.tf32.f32 r1, f1;", kAll},
    {"cvt.rn.satfinite.e4m3x2.f32 h1, f1, f2;", kAll},
    {"cvt.rn.satfinite.e2m1x2.f32 b1, f1, f2;", kFamily},
    {"cvt.rn.f16x2.e2m1x2 r1, b1;", kFamily},
    {"cvt.rz.satfinite.ue8m0x2.f32 h1, f1, f2;", kFamily},
    {"elect.sync r1|p, -1;", kAll},
    {"fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", kAll},
};

static sim::ptx::Statement statement_of(const std::string& text) {
  return sim::ptx::parse(
             ".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() {\n"
             ".reg .pred p; .reg .b32 r1,r2,r3,r4,r5; .reg .b64 d1,d2,d3,d4; .reg .b16 h1,h2;\n"
             ".reg .f32 f1,f2,f3,f4; .reg .b8 b1; .reg .b128 q;\n" +
             text + "\n}\n")
      .functions[0]
      .body.at(0);
}

TEST_CASE("a target holds the instructions that the assembler accepts for it, and no others", "[target]") {
  for (const Line& line : kLines) {
    CAPTURE(line.text);
    const sim::ptx::Statement statement = statement_of(line.text);
    for (size_t i = 0; i < std::size(kTargets); ++i) {
      CAPTURE(kTargets[i]);
      const auto check = [&] { sim::check_target(sim::parse_target(kTargets[i]), statement); };
      if (line.accepted[i] == 'y') CHECK_NOTHROW(check());
      else CHECK_THROWS_AS(check(), sim::Fault);
    }
  }
}

TEST_CASE("the refusal names the instruction, the target it needs, the module's and the line", "[target]") {
  const sim::Fault fault = sim_test::fault_of(
      [] { sim::check_target(sim::parse_target("sm_90a"), statement_of("tcgen05.wait::ld.sync.aligned;")); });
  CHECK(fault.kind() == sim::FaultKind::kSyntax);
  CHECK(sim_test::says(fault, "tcgen05 in this form needs .target sm_100f, the module is for sm_90a"));
  CHECK(sim_test::says(fault, "PTX line 7: `tcgen05.wait::ld.sync.aligned"));
}

TEST_CASE("targets are read from what modules and compilers call them", "[target]") {
  CHECK(sim::parse_target("sm_100f") == sim::Target{100, 'f'});
  CHECK(sim::parse_target("compute_90a") == sim::Target{90, 'a'});
  CHECK(sim::parse_target("sm_80") == sim::Target{80, '\0'});
  CHECK(sim::parse_target("103a").text() == "103a");
  CHECK(sim::parse_target("").arch == 0);
}

}  // namespace target_test
