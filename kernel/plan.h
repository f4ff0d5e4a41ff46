// plan.h -- the plan of a kernel: all that is known about it when it is compiled, as one constant value. The
// kernel, host/, the cost model, the bench and the tests read the same plan. Each architecture has a function
// that derives it from a few options, in the plan.h of its folder. It is plain C++ without CUDA types.
#pragma once

#include <cstdint>

#include "kernel/architecture.h"
#include "kernel/epilogue/kinds.h"
#include "ptx/host_device.h"

namespace dualgemm {

// A scale factor belongs to 16 elements of a row. Factors come in atoms of 512 bytes: those of 128 rows x 64
// elements of K (host/FORMATS.md draws one).
inline constexpr int32_t kSfAtomBytes = 512;
inline constexpr int32_t kSfAtomRows = 128;
inline constexpr int32_t kSfAtomElems = 64;
inline constexpr int32_t kSfBlock = 16;                            // elements that share a factor
inline constexpr int32_t kSfAtomBlocks = kSfAtomElems / kSfBlock;  // factors of a row in an atom
static_assert(kSfAtomBytes == kSfAtomRows * kSfAtomBlocks);
inline constexpr int32_t kMxBlock = 32;  // elements that share a factor in MXFP4

// Returns where the factor of a row and a block lies in its atom.
DUALGEMM_HOST_DEVICE constexpr int32_t sf_offset_in_atom(int32_t row, int32_t block) {
  const int32_t in_atom = row % kSfAtomRows;
  return in_atom % 32 * 16 + in_atom / 32 * 4 + block % kSfAtomBlocks;
}

// Says whether each tile of so many rows lies in one block of 128 rows, or is made of whole ones.
constexpr bool in_blocks(int32_t tile_rows) {
  return kSfAtomRows % tile_rows == 0 || tile_rows % kSfAtomRows == 0;
}

// A box of an operand has rows of this many bytes, as long as those of the 128-byte swizzle: a k-tile of
// e2m1, or a panel of A as wgmma reads it, in 16 bits or in FP8.
inline constexpr int32_t kBoxRowBytes = 128;
inline constexpr int32_t kTileK = kBoxRowBytes * 2;
inline constexpr int32_t kPanelK = kBoxRowBytes / 2;  // of 16-bit elements

// A launch has at most this many groups, because their table lies in shared memory.
inline constexpr int32_t kMaxGroups = 1024;

// A band has at most this many tiles of M. Their rows of A are meant to stay in L2 together
// (common/scheduler.cuh), so an architecture also limits the rows of a band.
inline constexpr uint32_t kBandTiles = 16;

// A CTA, or the two CTAs of a 2-SM mma, compute a tile of C from m rows of A, n rows of B1 and n rows of B2.
// With split_k > 1 that many CTAs, or pairs of CTAs, of one cluster share the tile: each takes a part of K,
// and they add up their accumulators.
struct TilePlan {
  int32_t m, n;
  int32_t k;  // elements of K in a k-tile
  int32_t split_k;
  bool grouped;           // for groups, whose rows are known only on the device
  bool stream_k = false;  // CTAs share tiles along K, in even spans (common/stream_k.cuh)

  bool operator==(const TilePlan&) const = default;
};

// Describes the ring of operands in shared memory. A stage holds one k-tile: a box of A, unless A comes in 16
// bits, and one or two boxes of B1 and B2.
struct OperandPlan {
  int32_t stages;
  int32_t a_box_rows, b_box_rows;  // rows of one TMA box
  int32_t b_boxes;                 // 2: of B1 and of B2; 1: this CTA brings one of them
  int32_t a_bytes, b_box_bytes;    // of one box
  int32_t stage_bytes;             // of these boxes; on 9.0 a stage has a16.bytes and the factors, too

  bool operator==(const OperandPlan&) const = default;
};

// Describes the ring of scale factors in shared memory. A stage holds the factors of k_tiles k-tiles. With
// `with_operands` there is no such ring: each stage of the operands holds the factors of its k-tile.
struct ScalePlan {
  int32_t stages;
  int32_t k_tiles;               // several make fewer and larger copies
  int32_t steps;                 // mma steps of a stage
  int32_t sfb_blocks;            // blocks of 128 rows of SFB1, and of SFB2
  int32_t sfa_bytes, sfb_bytes;  // sfb_bytes: of each of SFB1 and SFB2
  int32_t stage_bytes;
  bool with_operands;

  bool operator==(const ScalePlan&) const = default;
};

// Describes the multiplication of one k-tile. A step has as many elements of K as an atom of scale factors of
// B: 64 in NVFP4, 128 in MXFP4. It takes one or two tcgen05.mma (per_step), or four wgmma.
struct MmaPlan {
  int32_t cta_group;     // CTAs that one mma works for: 2 is the 2-SM form
  bool swap_ab;          // the rows of B1 and B2 are on the M side of the mma, those of A on the N side
  int32_t m, n;          // of one mma
  int32_t steps;         // of a k-tile
  int32_t products;      // computed from one k-tile: 2, A * B1^T and A * B2^T, or 1
  int32_t accumulators;  // products of a tile; equal to `products` in all kernels of the library
  int32_t per_step;      // mma of one step: 1 where one mma computes all products, else one each
  int32_t columns;       // accumulator columns of one product
  bool keep_a;           // the second mma of a step asks for the A that the tensor core read for the first

  // Returns how often a tile runs through K: once in all kernels of the library.
  DUALGEMM_HOST_DEVICE constexpr int32_t main_loops() const { return accumulators / products; }

  bool operator==(const MmaPlan&) const = default;
};

// Divides the columns of tensor memory, if there is one; tmem_map.cuh draws them.
struct TmemPlan {
  int32_t acc_stages;      // pairs of accumulators; with one product, accumulators
  int32_t acc_columns;     // of one pair
  int32_t shared_columns;  // that two overlapping pairs have in common, 0 where they do not overlap
  int32_t acc_barriers;    // 1 where the pairs overlap: its phases belong to the pairs in turn
  int32_t scales;          // the first column of scale factors
  int32_t step_columns;    // scale factors of one step: of A, and of each B
  bool resident_scales;    // every scale stage has columns of its own; else they pass through windows
  int32_t windows, window_steps, window_columns;
  int32_t used, allocated;

  DUALGEMM_HOST_DEVICE constexpr bool overlapped() const { return shared_columns > 0; }

  bool operator==(const TmemPlan&) const = default;
};

// Describes A in 16 bits, for a tensor core that has no operands of four bits. The warps that multiply expand
// B1 and B2 in registers. A lies in shared memory and has to be prepared: it has to have 16 bits, in an order
// of K that suits those warps. Each stage of the operands holds a k-tile of A. Where A has many rows and
// comes from a pass, it has a ring of its own, with stages of a quarter of a k-tile. An A in FP8 needs no
// preparation: it takes the places of an A in 16 bits that is prepared, with half of the bytes.
struct A16Plan {
  int32_t warps;   // that prepare A: expand it, or put an A of 16 bits in order where it lies
  bool from_pass;  // a pass before the kernel has prepared A
  int32_t bytes;   // of A in a stage of the operands, 0 where it has a ring of its own
  int32_t stages;  // of the ring of its own, 0 where it has none
  int32_t stage_bytes;

  bool operator==(const A16Plan&) const = default;
};

// Describes the warpgroups that multiply, with wgmma, and finish. There are `column_groups` x `k_groups`. The
// warpgroups of one column group have the same columns of C. If there are two in a column group, each has one
// half of every k-tile.
struct ConsumerPlan {
  int32_t column_groups, k_groups;
  int32_t columns;         // of C, of a column group
  int32_t share_rows;      // of a tile: each CTA of split-K finishes neighbouring shares, or none
  int32_t exchanged_rows;  // at most: whose sums lanes of a general instance exchange at once

  DUALGEMM_HOST_DEVICE constexpr int32_t warpgroups() const { return column_groups * k_groups; }

  bool operator==(const ConsumerPlan&) const = default;
};

// Says how many registers setmaxnreg gives a thread: `feed` to threads that load and prepare, `consume` to
// threads that multiply. At launch all threads have the same number.
struct RegisterPlan {
  int32_t launch, feed, consume;

  bool operator==(const RegisterPlan&) const = default;
};

// The epilogue has `warps` warps, and each takes `chunk_columns` columns into registers at a time.
struct EpiloguePlan {
  int32_t warps;
  int32_t chunk_columns;  // of each product, per lane

  bool operator==(const EpiloguePlan&) const = default;
};

struct Plan {
  Arch arch;
  CType a_type = CType::kNvfp4;  // or bf16, fp16, FP8
  TilePlan tile;
  OperandPlan operands;
  ScalePlan scales;
  MmaPlan mma;
  TmemPlan tmem;
  EpiloguePlan epilogue;
  A16Plan a16;
  ConsumerPlan consumers;
  RegisterPlan registers;
  int32_t threads;
  int32_t ctas_per_sm = 1;  // that run on an SM at once, by their registers and shared memory

  DUALGEMM_HOST_DEVICE constexpr int32_t cluster_size() const { return mma.cta_group * tile.split_k; }
  DUALGEMM_HOST_DEVICE constexpr bool packed_a() const { return a_type == CType::kNvfp4; }
  // Returns whether B1 and B2 are MXFP4: those that an A in FP8 is multiplied with. All others are NVFP4.
  DUALGEMM_HOST_DEVICE constexpr bool mxfp4_b() const { return a_type == CType::kFp8; }
  // Return the bytes of an element of A as wgmma reads it, and the elements of a panel.
  DUALGEMM_HOST_DEVICE constexpr int32_t a_element_bytes() const { return a_type == CType::kFp8 ? 1 : 2; }
  DUALGEMM_HOST_DEVICE constexpr int32_t panel_k() const { return kBoxRowBytes / a_element_bytes(); }
  // Returns the tiles of M in a band.
  DUALGEMM_HOST_DEVICE constexpr uint32_t band_tiles() const {
    const auto most = static_cast<uint32_t>(limits_of(arch).band_rows / tile.m);
    return most < kBandTiles ? most : kBandTiles;
  }

  // Returns whether a pass before the kernel has prepared A.
  DUALGEMM_HOST_DEVICE constexpr bool prepared_a() const { return a16.from_pass; }
  // Returns how many rows count as few. If the last tile of a matrix or of a group has no more than that, a
  // plain instance multiplies this many rows in place of tile.m. The number is below tile.m only where a pass
  // has prepared A, tile.m is 256, and there is neither split-K nor stream-K. It is 160 there, because an
  // expert with 128 rows in the mean seldom has more. Tiles of 128 rows gained nothing from wgmma of 64
  // columns (measured on an H100).
  DUALGEMM_HOST_DEVICE constexpr int32_t few_rows() const {
    return prepared_a() && tile.m == 256 && tile.split_k == 1 && !tile.stream_k ? 160 : tile.m;
  }
  // Returns whether A comes by panels from where the caller has it: an A of 16 bits that warps of the kernel
  // put in order, or one in FP8.
  DUALGEMM_HOST_DEVICE constexpr bool panels_of_a() const { return !packed_a() && !a16.from_pass; }
  // Returns whether warps of the kernel put an A of 16 bits in order.
  DUALGEMM_HOST_DEVICE constexpr bool orders_a() const { return !packed_a() && a16.warps > 0; }
  DUALGEMM_HOST_DEVICE constexpr int32_t ring_bytes() const {
    return operands.stages * (operands.stage_bytes + a16.bytes) + scales.stages * scales.stage_bytes +
           a16.stages * a16.stage_bytes;
  }

  bool operator==(const Plan&) const = default;
};

// Returns the ring of operands of a tile, with `stages` stages.
constexpr OperandPlan operand_plan(const TilePlan& tile, const MmaPlan& mma, int32_t stages) {
  OperandPlan x{};
  x.stages = stages;
  x.a_box_rows = tile.m / mma.cta_group;
  // Each CTA of a pair brings half of the rows of a 2-SM mma's operand B. If one mma computes both products,
  // the first half is B1 and the second B2, so each CTA brings one of the two whole. If each product has an
  // mma of its own, each CTA brings half of the rows of B1 and half of those of B2.
  const bool one_b_per_cta = mma.cta_group == 2 && mma.products == 2 && mma.per_step == 1;
  x.b_boxes = one_b_per_cta ? 1 : mma.products;
  x.b_box_rows = one_b_per_cta ? tile.n : tile.n / mma.cta_group;
  x.a_bytes = x.a_box_rows * tile.k / 2;
  x.b_box_bytes = x.b_box_rows * tile.k / 2;
  x.stage_bytes = x.a_bytes + x.b_boxes * x.b_box_bytes;
  return x;
}

// Returns the ring of scale factors, with `stages` stages of `k_tiles` k-tiles.
constexpr ScalePlan scale_plan(const TilePlan& tile, const MmaPlan& mma, int32_t stages, int32_t k_tiles) {
  ScalePlan x{};
  x.stages = stages;
  x.k_tiles = k_tiles;
  x.steps = k_tiles * mma.steps;
  x.sfb_blocks = (tile.n + kSfAtomRows - 1) / kSfAtomRows;
  x.sfa_bytes = x.steps * kSfAtomBytes;
  x.sfb_bytes = x.sfb_blocks * x.sfa_bytes;
  x.stage_bytes = x.sfa_bytes + mma.products * x.sfb_bytes;
  return x;
}

}  // namespace dualgemm
