// published.h -- public NVFP4 dual-GEMM kernels for B200, described as instances by their plans, and the
// times that their author published. They are not part of this library: they show how far off
// host/model/cost_model.h is, and what a public kernel would take under the same model.
#pragma once

#include <cstdint>

#include "host/model/cost_model.h"
#include "kernel/sm100/plan.h"

namespace bench {

inline dualgemm::Instance described(const char* name, const dualgemm::sm100::Options& options,
                                    dualgemm::sm100::Products products, dualgemm::EpiloguePlan epilogue_plan,
                                    const dualgemm::EpilogueKind& epilogue) {
  dualgemm::Instance instance{};
  instance.name = name;
  instance.plan = dualgemm::sm100::plan_of(options, products);
  instance.plan.epilogue = epilogue_plan;
  instance.epilogue = epilogue;
  return instance;
}

// Describes the best public entry of the contest (gau-nernst, gpu-mode-kernels), first with one CTA per tile,
// then with pairs. Each has a narrow and a wide tile. Scale factors share the stages of the operands; there
// are two mma per 64 elements of K and one pair of accumulators. The second mma asks for the A that the
// tensor core still has. Four warps of the epilogue load 8 columns at a time, by tcgen05.ld.16x256b, whose
// lanes have two elements each: four of them write 16 bytes of a row.
inline dualgemm::Instance contest_entry(const char* name, int32_t tile_m, int32_t tile_n, int32_t stages) {
  using namespace dualgemm;
  return described(
      name, {.tile_m = tile_m, .tile_n = tile_n, .stages = stages, .scale_stages = stages, .keep_a = true},
      {.accumulators = 2, .together = 2, .per_step = 2}, {.warps = 4, .chunk_columns = 8},
      {false, 1, {{CType::kFp16, "fp16", 16, 16}}});
}
inline const dualgemm::Instance kV1Narrow = contest_entry("v1g, 128 x 64", 128, 64, 5);
inline const dualgemm::Instance kV1Wide = contest_entry("v1g, 128 x 128", 128, 128, 4);
inline const dualgemm::Instance kV2Narrow = contest_entry("v2, 256 x 64", 256, 64, 7);
inline const dualgemm::Instance kV2Wide = contest_entry("v2, 256 x 128", 256, 128, 5);

// Times were reported as a mean over launches on a stream, in steps of 2.048 us that are rounded up:
// [low_us, high_us] are the periods from launch to launch that give the reported figure.
struct Published {
  const dualgemm::Instance& instance;
  dualgemm::Shape shape;
  double reported_us, low_us, high_us;
};

inline const Published kPublished[] = {
    {kV1Narrow, {256, 4096, 7168}, 14.4, 12.4, 14.25}, {kV1Wide, {512, 4096, 7168}, 16.6, 16.15, 16.4},
    {kV1Narrow, {256, 3072, 4096}, 10.3, 8.3, 10.15},  {kV1Wide, {512, 3072, 7168}, 16.4, 15.8, 16.2},
    {kV2Narrow, {256, 4096, 7168}, 12.4, 10.35, 12.2}, {kV2Wide, {512, 4096, 7168}, 16.4, 14.4, 16.2},
    {kV2Narrow, {256, 3072, 4096}, 9.43, 8.1, 8.3},    {kV2Wide, {512, 3072, 7168}, 16.3, 14.4, 16.15},
};

// This is a large product, 8192 x 8192 x 8192, by a public kernel of one GEMM whose pairs compute 256 x 256
// with one mma and accumulators that overlap: the work of a dual GEMM with N = 4096 in tiles of 256 x 128,
// which writes two elements of 16 bits for each of ours, without a special function (as ReGLU). The time is
// that of the kernel alone, without the gap between two launches on a stream.
inline const dualgemm::Instance kLarge = described(
    "fast.cu, 256 x 128", {.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 6, .acc_stages = 2},
    {.accumulators = 2, .together = 2, .per_step = 1}, {.warps = 4, .chunk_columns = 32},
    {false, 1, {{dualgemm::CType::kFp16, "two fp16", 32, 32}}});

struct PublishedLarge {
  const dualgemm::Instance& instance;
  dualgemm::Shape shape;
  double kernel_us;
};
inline const PublishedLarge kPublishedLarge{
    kLarge, {.m = 8192, .n = 4096, .k = 8192, .activation = dualgemm::ActivationKind::kReglu}, 173.2};
inline constexpr double kLaunchGap = 1.6;  // us, part of what the model predicts: fit, with the rest of it

// Returns constants fitted to six published times of plain GEMM kernels alone (of the same author: K = 16384
// and N = 7168, 7168 and 4096, 2048 and 7168, each with M = 128), in which none of the times above took part.
// They show what the model is worth for kernels that it was not fitted to.
inline dualgemm::CostConstants held_out() {
  dualgemm::CostConstants c = dualgemm::kB200Costs;
  c.fill_per_sm = 169e3;
  c.fill_all_sms = 17.0e6;
  c.per_copy = 0.0132;
  c.dram = 6.5e6;
  c.latency = 0.92;
  c.per_byte = 0.016e-6;
  c.wake = 61;
  c.fixed = 3.0;
  return c;
}

// Returns how far a modelled period is outside what the published figure allows; 0 inside.
inline double outside_us(const Published& p, double us) {
  return us < p.low_us ? us - p.low_us : us > p.high_us ? us - p.high_us : 0;
}

}  // namespace bench
