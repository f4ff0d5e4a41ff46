// plan.h -- the options of a kernel for compute capability 9.0, and the plan that follows from them. What the
// warps, registers and the exchange of sums take is derived here, the bytes of stages in kernel/plan.h;
// nothing is derived twice. This is plain C++ without CUDA types.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm::sm90 {

// These options distinguish one instance from another. A CTA computes a tile of tile_m rows and tile_n
// columns of C. A warpgroup takes 32 of these columns: 32 rows of B1 and the same 32 rows of B2 are the 64
// rows of its wgmma, whose columns are all tile_m rows of A. In an instance of one product a warpgroup takes
// 64 columns, from 64 rows of B1.
struct Options {
  int32_t tile_m, tile_n;
  int32_t split_k = 1;        // CTAs of a cluster that share a tile
  int32_t k_groups = 1;       // warpgroups that share the same columns, each with half of every k-tile
  int32_t stages;             // of the operand ring
  int32_t panel_stages = 0;   // of a ring of A, a panel each; 0: A lies in the stages of the operands
  int32_t prepare_warps = 2;  // 0: a pass before the kernel prepares A (prepare_pass.cuh), or A is FP8
  int32_t ctas_per_sm = 1;
  bool grouped = false;   // several problems, whose rows are known on the device only
  bool stream_k = false;  // CTAs share tiles along K (common/stream_k.cuh)
  CType a_type = CType::kNvfp4;
  int32_t products = 2;  // of a tile: A * B1^T and A * B2^T, or the first alone
  // Of a general instance, where shared memory has no room for as many as consumer_plan says (0).
  int32_t exchanged_rows = 0;
};

// Says how the products of a tile are computed. The kernels of the library compute all of them from each
// k-tile; bench/ablation has some that do not.
struct Products {
  int32_t accumulators;  // products of a tile
  int32_t together;      // how many of these are computed from one k-tile
};
constexpr Products products_of(const Options& o) { return {o.products, o.products}; }

inline constexpr int32_t kHalfK = kTileK / 2;
inline constexpr int32_t kWgmmaM = 64;       // rows of the fragment of a warpgroup
inline constexpr int32_t kWgmmaKBytes = 32;  // of one row of A that a wgmma multiplies: 16 elements, FP8 32
inline constexpr int32_t kWarpgroup = 128;   // threads
inline constexpr int32_t kWarpgroupWarps = kWarpgroup / 32;
inline constexpr int32_t kLoadWarps = 2;  // one for the weights, one for the activations

// The registers of an SM, of which a thread has at most kMaxRegisters and each thread of a CTA a multiple of
// eight; and the shared memory of an SM, of which each CTA takes 1 KiB for the system (CUDA C++ Programming
// Guide, "Technical Specifications per Compute Capability" and "Shared Memory" of 9.0).
inline constexpr int32_t kRegistersOfSm = 65536, kMaxRegisters = 240;
inline constexpr int32_t kLoadRegisters = 40, kPrepareRegisters = 48;  // that these roles need
inline constexpr int32_t kSmemOfSm = 228 * 1024, kSmemOfSystem = 1024;

// A row of the sums that lanes exchange is this many words longer than its columns, so that a warp accesses
// every bank once (exchange.cuh).
inline constexpr int32_t kExchangePadding = 4;
inline constexpr int32_t kExchangedColumns = 8;  // of a lane

constexpr MmaPlan mma_plan(const Options& o, Products products) {
  MmaPlan x{};
  x.cta_group = 1;
  x.swap_ab = true;
  x.m = kWgmmaM;
  x.n = o.tile_m;
  x.steps = kTileK / (o.a_type == CType::kFp8 ? kBoxRowBytes : kPanelK);  // one group of wgmma each
  x.products = products.together;
  x.accumulators = products.accumulators;
  x.per_step = 1;
  x.columns = o.tile_m;
  return x;
}

// Takes A and its factors out of a ring. Only an A that the kernel expands comes through the rings of
// operands and factors.
constexpr OperandPlan without_a(OperandPlan x) {
  x.stage_bytes -= x.a_bytes;
  x.a_bytes = 0;
  return x;
}
constexpr ScalePlan without_a(ScalePlan x) {
  x.stage_bytes -= x.sfa_bytes;
  x.sfa_bytes = 0;
  return x;
}

constexpr A16Plan a16_plan(const Options& o) {
  const bool fp8 = o.a_type == CType::kFp8;
  return {.warps = o.prepare_warps,
          .from_pass = o.prepare_warps == 0 && !fp8,
          .bytes = o.panel_stages == 0 ? o.tile_m * kTileK * (fp8 ? 1 : 2) : 0,
          .stages = o.panel_stages,
          .stage_bytes = o.panel_stages == 0 ? 0 : o.tile_m * kBoxRowBytes};
}

// Returns the rows of a share of a tile, a multiple of eight: all rows of the tile, or with split-K the
// largest number, but at least eight, that leaves a share for each CTA.
constexpr int32_t share_rows(int32_t tile_m, int32_t split_k) {
  int32_t rows = tile_m;
  while (rows > 8 && rows * split_k > tile_m) rows /= 2;
  return rows;
}

// Where a k-tile has both products, gate and up of the same columns of C are rows of one fragment. With one
// product all rows of a fragment are columns of C. The lanes of a warpgroup exchange the sums of as many rows
// as give each lane eight columns of one row.
constexpr ConsumerPlan consumer_plan(const Options& o, Products products) {
  const int32_t columns = kWgmmaM / products.together;
  return {
      .column_groups = o.tile_n / columns,
      .k_groups = o.k_groups,
      .columns = columns,
      .share_rows = share_rows(o.tile_m, o.split_k),
      .exchanged_rows = o.exchanged_rows > 0 ? o.exchanged_rows : kWarpgroup * kExchangedColumns / columns};
}

// The load roles and the warps that prepare A need few registers. The warps that multiply get the registers
// that these give back.
constexpr RegisterPlan register_plan(const Plan& plan) {
  const auto in_eights = [](int32_t registers) { return registers / 8 * 8; };
  const int32_t consumers = kWarpgroup * plan.consumers.warpgroups(), others = plan.threads - consumers;
  RegisterPlan x{};
  x.launch = std::min(in_eights(kRegistersOfSm / plan.ctas_per_sm / plan.threads), kMaxRegisters);
  x.feed = plan.a16.warps == 0 ? kLoadRegisters : kPrepareRegisters;
  x.consume = std::min(in_eights((x.launch * plan.threads - x.feed * others) / consumers), kMaxRegisters);
  return x;
}

constexpr Plan plan_of(const Options& o, Products products) {
  Plan plan{};
  plan.arch = Arch::kSm90;
  plan.a_type = o.a_type;
  plan.tile = {o.tile_m, o.tile_n, kTileK, o.split_k, o.grouped, o.stream_k};
  plan.mma = mma_plan(o, products);
  plan.operands = operand_plan(plan.tile, plan.mma, o.stages);
  plan.scales = scale_plan(plan.tile, plan.mma, o.stages, /*k_tiles=*/1);
  plan.scales.with_operands = true;
  if (o.prepare_warps == 0 || !plan.packed_a()) {
    plan.operands = without_a(plan.operands);
    plan.scales = without_a(plan.scales);
  }
  plan.a16 = a16_plan(o);
  plan.consumers = consumer_plan(o, products);
  plan.epilogue = {.warps = kWarpgroupWarps * plan.consumers.column_groups, .chunk_columns = 8};
  // Whole warpgroups execute setmaxnreg. So beside the warps that prepare A and load there may be two warps
  // that have nothing to do.
  const int32_t feeding_warpgroups = (plan.a16.warps + kLoadWarps + kWarpgroupWarps - 1) / kWarpgroupWarps;
  plan.threads = kWarpgroup * (plan.consumers.warpgroups() + feeding_warpgroups);
  plan.ctas_per_sm = o.ctas_per_sm;
  plan.registers = register_plan(plan);
  return plan;
}
constexpr Plan plan_of(const Options& o) { return plan_of(o, products_of(o)); }

// Returns the shared memory that a CTA may have.
DUALGEMM_HOST_DEVICE constexpr int32_t smem_limit(const Plan& plan) {
  const int32_t share = kSmemOfSm / plan.ctas_per_sm - kSmemOfSystem,
                most = limits_of(Arch::kSm90).max_smem_bytes;
  return share < most ? share : most;
}

// Refuses plans that a kernel cannot have, each with its reason.
template <Options kOptions, Plan kPlan>
constexpr bool possible() {
  constexpr Options o = kOptions;
  static_assert(o.tile_m == 8 || o.tile_m == 16 || o.tile_m == 32 || o.tile_m == 64 || o.tile_m == 128 ||
                    o.tile_m == 192 || o.tile_m == 256,
                "tile_m: the rows of A are the columns of a wgmma, and ptx/wgmma.cuh has these");
  static_assert(
      o.tile_n % kPlan.consumers.columns == 0 && o.tile_n > 0 && kSfAtomRows % o.tile_n == 0,
      "tile_n: a warpgroup has 32 columns of C, or 64 of one product, and a tile lies in one block of 128 "
      "rows of factors");
  static_assert(o.products == 1 || o.products == 2, "products: one or two");
  static_assert(o.stages > 0 && o.panel_stages >= 0, "stages: at least 1");
  static_assert(o.k_groups == 1 || (o.k_groups == 2 && o.split_k > 1),
                "k_groups: a k-tile has two halves, whose sums are added up as those of split-K are");
  static_assert(o.split_k >= 1 && o.split_k <= 8, "split_k: a cluster has at most 8 CTAs");
  static_assert(!o.grouped || o.split_k == 1,
                "grouped: split-K has one tile per cluster, groups have any number of tiles");
  static_assert(
      !o.stream_k || (o.split_k == 1 && !o.grouped && kPlan.prepared_a()),
      "stream_k: it is another way to share K than split-K; only the device knows the tiles of groups; a "
      "pass before the launch sets its counters to 0");
  static_assert(o.tile_m <= kSfAtomRows || o.prepare_warps == 0,
                "tile_m: expanders need factors of A of one block of 128 rows");
  static_assert(o.a_type == CType::kNvfp4 || o.a_type == CType::kBf16 || o.a_type == CType::kFp16 ||
                    (o.a_type == CType::kFp8 && o.prepare_warps == 0),
                "a_type: wgmma multiplies fp16 and bf16, to which NVFP4 is expanded, and FP8, which nobody "
                "prepares");
  static_assert(o.prepare_warps == 0 || (o.prepare_warps % 2 == 0 && o.tile_m % (4 * o.prepare_warps) == 0),
                "prepare_warps: one expands eight rows of a half of a k-tile at a time, or puts four rows in "
                "order, and all have as many of these");
  static_assert(o.panel_stages == 0 || (o.prepare_warps == 0 && o.k_groups == 1),
                "panel_stages: nobody prepares these panels, and those that multiply read all of them");
  static_assert(kPlan.threads <= 1024, "a CTA has at most 1024 threads");
  static_assert(
      kPlan.registers.feed <= kPlan.registers.launch && kPlan.registers.consume >= kPlan.registers.launch,
      "registers: loads and the warps that prepare A give some back, for those that multiply");
  static_assert(kPlan.operands.a_bytes % 1024 == 0 && kPlan.operands.b_box_bytes % 1024 == 0 &&
                    kPlan.a16.bytes % 1024 == 0 && kPlan.a16.stage_bytes % 1024 == 0,
                "operands start at a pattern of the 128-byte swizzle, which repeats every 1024 bytes");
  return true;
}

}  // namespace dualgemm::sm90
