// plan.h -- the options of a kernel for compute capability 10.x, and the plan that follows from them. What
// the mma and tensor memory take is derived here, the bytes of stages in kernel/plan.h; nothing is derived
// twice. This is plain C++ without CUDA types.
#pragma once

#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm::sm100 {

// These options distinguish one instance from another. One CTA, or a pair of CTAs, computes a tile of C:
//   tile_m = 256   a pair of CTAs with one 2-SM mma; each has 128 rows of A and brings half of B1 and B2
//   tile_m = 128   one CTA; lanes of tensor memory are rows of A, accumulator columns are rows of B1 and B2
//   tile_m = 64    one CTA and swap A/B, for few rows of A: lanes are rows of B1 and B2, columns rows of A
struct Options {
  int32_t tile_m, tile_n;
  int32_t split_k = 1;        // CTAs or pairs of a cluster that share a tile
  int32_t stages;             // of the operand ring
  int32_t scale_stages;       // of the ring of scale factors
  int32_t scale_k_tiles = 1;  // k-tiles in one scale stage
  int32_t acc_stages = 1;     // pairs of accumulators, 1 or 2
  bool grouped = false;       // several problems, whose rows are known on the device only
  // Where a step has two mma, the first leaves its A in the collector of the tensor core, and the second
  // takes it from there. This is right only if the two execute in the order of issue, with no other mma
  // between them. The PTX ISA promises that order for mma on one accumulator. These two mma have different
  // accumulators, so the promise does not cover them. Public kernels that give right results on a B200 rely
  // on the order all the same.
  bool keep_a = false;
  int32_t products = 2;  // of a tile: A * B1^T and A * B2^T, or the first alone
};

// Says how the products of a tile are computed. The kernels of the library compute all of them from each
// k-tile; bench/ablation has some that do not.
struct Products {
  int32_t accumulators;  // products of a tile
  int32_t together;      // of them, those that are computed from one k-tile
  int32_t per_step;      // mma of one step
};

inline constexpr int32_t kTmemLanes = 128;
inline constexpr int32_t kTmemColumns = limits_of(Arch::kSm100).tmem_columns;
inline constexpr int32_t kMmaK = 64;      // of one tcgen05.mma kind::mxf4nvf4
inline constexpr int32_t kSfColumns = 4;  // of tensor memory: the scale factors of 128 rows and one step

// A CTA has this many warps besides the epilogue's (roles.cuh).
inline constexpr int32_t kOtherWarps = 4;

constexpr bool swap_ab(const Options& o) { return o.tile_m < kTmemLanes; }
constexpr int32_t acc_columns_of_product(const Options& o) { return swap_ab(o) ? o.tile_m : o.tile_n; }

// With 128 columns one mma of N = 256 computes both products, with B1 and B2 as one operand of 256 rows. With
// another number of columns a step takes two mma: with 64 columns the scale factors of B cannot be packed
// without overlapping copies, and 2 * 192 columns are more than an mma has. One product always takes one mma.
constexpr Products products_of(const Options& o) {
  const bool one_mma = o.products == 1 || acc_columns_of_product(o) == 128;
  return {o.products, o.products, one_mma ? 1 : 2};
}

constexpr MmaPlan mma_plan(const Options& o, Products products) {
  MmaPlan x{};
  x.cta_group = o.tile_m == 2 * kTmemLanes ? 2 : 1;
  x.swap_ab = swap_ab(o);
  x.columns = acc_columns_of_product(o);
  x.products = products.together;
  x.accumulators = products.accumulators;
  x.per_step = products.per_step;
  x.m = kTmemLanes * x.cta_group;
  x.n = products.together / products.per_step * x.columns;
  x.steps = kTileK / kMmaK;
  x.keep_a = o.keep_a;
  return x;
}

constexpr TmemPlan tmem_plan(const Options& o, const MmaPlan& mma, const ScalePlan& scales) {
  TmemPlan x{};
  x.acc_stages = o.acc_stages;
  x.acc_columns = mma.accumulators * mma.columns;
  // Two pairs of 2 * 128 columns, or two accumulators of 256, would fill tensor memory and leave no room for
  // scale factors. So they share 64 columns (tmem_map.cuh).
  const bool overlapped = o.acc_stages == 2 && 2 * x.acc_columns == kTmemColumns;
  x.shared_columns = overlapped ? 64 : 0;
  x.acc_barriers = overlapped ? 1 : o.acc_stages;
  x.scales = o.acc_stages * x.acc_columns - x.shared_columns;
  x.step_columns = (1 + mma.products * scales.sfb_blocks) * kSfColumns;
  x.resident_scales = x.scales + scales.stages * scales.steps * x.step_columns <= kTmemColumns;
  x.window_steps = x.resident_scales ? scales.steps : mma.steps / 2;
  x.window_columns = x.window_steps * x.step_columns;
  x.windows = x.resident_scales ? scales.stages : (kTmemColumns - x.scales) / x.window_columns;
  x.used = x.scales + x.windows * x.window_columns;
  x.allocated = x.used <= 128 ? 128 : x.used <= 256 ? 256 : 512;  // tcgen05.alloc takes powers of two
  return x;
}

constexpr Plan plan_of(const Options& o, Products products) {
  Plan plan{};
  plan.arch = Arch::kSm100;
  plan.tile = {o.tile_m, o.tile_n, kTileK, o.split_k, o.grouped};
  plan.mma = mma_plan(o, products);
  plan.operands = operand_plan(plan.tile, plan.mma, o.stages);
  plan.scales = scale_plan(plan.tile, plan.mma, o.scale_stages, o.scale_k_tiles);
  plan.tmem = tmem_plan(o, plan.mma, plan.scales);
  // An epilogue needs at least four warps, but four would spend their time waiting for ex2 and rcp; eight
  // halve that time. The 64 accumulators per lane of a chunk are enough independent work to hide that latency
  // without spilling.
  plan.epilogue = {8, 32};
  plan.threads = 32 * (plan.epilogue.warps + kOtherWarps);
  return plan;
}
constexpr Plan plan_of(const Options& o) { return plan_of(o, products_of(o)); }

// Refuses plans that a kernel cannot have, each with its reason. kPlan has to be the plan of kOptions, or a
// variation of it.
template <Options kOptions, Plan kPlan>
constexpr bool possible() {
  constexpr Options o = kOptions;
  static_assert(
      o.tile_m == 64 || o.tile_m == 128 || o.tile_m == 256,
      "tile_m: the 128 lanes of tensor memory are rows of A of one CTA (128), of each CTA of a pair "
      "(256), or rows of B1 and B2 beside 64 rows of A");
  static_assert(
      kPlan.mma.columns % (2 * kPlan.epilogue.chunk_columns) == 0,
      "tile_n: two warps of the epilogue share the columns of a lane in chunks of 32, so they come in 64s");
  static_assert(o.products == 1 || o.products == 2, "products: one or two");
  static_assert(!kPlan.mma.swap_ab || o.tile_n == kTmemLanes,
                "tile_n: with swap A/B the rows of B1 and B2 are the 128 lanes of tensor memory");
  static_assert(kPlan.mma.n <= 256, "tile_n: an mma has at most 256 columns");
  static_assert(o.tile_n > 0 && o.stages > 0 && o.scale_stages > 0 && o.scale_k_tiles > 0,
                "tile_n, stages, scale_stages, scale_k_tiles: at least 1");
  static_assert(kPlan.cluster_size() == 1 || kPlan.cluster_size() == 2 || kPlan.cluster_size() == 4,
                "split_k: host/ counts how many clusters of 2 and of 4 CTAs a device runs at once");
  static_assert(!o.grouped || o.split_k == 1,
                "grouped: split-K has one tile per cluster, groups have any number of tiles");
  static_assert(o.acc_stages == 1 || (o.acc_stages == 2 && o.split_k == 1),
                "acc_stages: one or two, and split-K has one tile per cluster");
  static_assert(kPlan.tmem.scales < kTmemColumns,
                "acc_stages: the accumulators leave no room for scale factors");
  static_assert(kPlan.tmem.windows >= 2 || o.scale_stages == 1,
                "scale_stages: one window of scale factors is filled while the other is read");
  static_assert(kPlan.tmem.used <= kTmemColumns, "accumulators and scale factors fit in tensor memory");
  static_assert(kPlan.tmem.scales % kSfColumns == 0, "tcgen05.cp writes to multiples of four columns");
  static_assert(kPlan.operands.a_bytes % 1024 == 0 && kPlan.operands.b_box_bytes % 1024 == 0,
                "operands start at a pattern of the 128-byte swizzle, which repeats every 1024 bytes");
  static_assert(kPlan.epilogue.warps == 8,
                "epilogue: two warps read each quarter of the lanes, each half of the columns (roles.cuh)");
  static_assert(!o.keep_a || kPlan.mma.per_step == 2, "keep_a: there is no second mma in a step");
  static_assert(!o.keep_a || !kPlan.mma.swap_ab,
                "keep_a: with swap A/B the two mma of a step have no A in common");
  return true;
}

}  // namespace dualgemm::sm100
