// rings.cuh -- the two rings in the shared memory of a CTA through which the load roles feed the multiply
// role (on 10.x mma): one of operands, one of scale factors. On 9.0 there is one, with both in a stage.
//
//   barrier          count             arrives                              waits   meaning
//   full[s]          2, + the bytes    both load roles, bytes of TMA        mma     stage s is filled (*)
//   empty[s]         its readers       the multiply role, when it has read  loads   stage s may be used
//   scale_full[q]    2, + the bytes    both load roles, bytes of TMA        mma     scale stage q is filled
//   scale_empty[q]   its readers       the multiply role, when it has read  loads   scale stage q may be used
//   a_full[s]        1, + the bytes    load activations, bytes of TMA       warps   the A of stage s is there
//
// (*) In two cases this barrier is only for the weights, and counts one load role: where A has a ring of its
// own (A16Plan), and where warps prepare A before it is multiplied. In the second case the bytes of A and of
// its factors arrive on a_full, so that those warps do not wait for weights, which come from DRAM.
//
// Where the completion of an mma arrives on `empty`, a stage has one reader; where warps read the stage
// themselves, each of them is a reader.
//
// Each load role arrives on full or scale_full with the number of bytes of its own copies, so the phase ends
// when both roles have issued their copies and all bytes have landed, in any order. The bytes are those of
// one stage. With a 2-SM mma they are those of both CTAs: the even CTA of a pair leads, its mma works for
// both, and its load roles announce the bytes of both. The copies of the other CTA count towards them. The
// other CTA's own full and scale_full are not used.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernel/common/pipeline.cuh"
#include "kernel/epilogue/list.h"
#include "ptx/mbarrier.cuh"

namespace dualgemm {

// This many warps fill every stage, each with its own part (load.cuh).
inline constexpr uint32_t kLoadRoles = 2;

// An array that may be empty. Two empty members of the same type would need two addresses, so Name makes
// their types different.
template <int32_t kBytes, class Name>
struct BytesOf {
  using Type = uint8_t[kBytes];
};
template <class Name>
struct BytesOf<0, Name> {
  struct Type {};
};
template <int32_t kBytes, class Name>
using Bytes = typename BytesOf<kBytes, Name>::Type;

// A scale stage holds the scale factors of its k-tiles: for each block of 128 rows, atoms of 512 bytes in the
// order of K.
template <class Traits>
struct ScaleStage {
  [[no_unique_address]] Bytes<Traits::kPlan.scales.sfa_bytes, struct Sfa> sfa;
  uint8_t sfb[Traits::kPlan.mma.products][Traits::kPlan.scales.sfb_bytes];
};

// A stage holds one k-tile of operands, in rows of 128 bytes in the 128-byte swizzle, whose pattern repeats
// every 1024 bytes. It has the box of A, unless A comes in 16 bits or in FP8, and the boxes of B1 and B2, or
// the one of the two that this CTA brings. B2 follows B1 directly, so that one mma can read both as one
// operand.
template <class Traits>
struct Operands {
  [[no_unique_address]] Bytes<Traits::kPlan.operands.a_bytes, struct A> a;
  uint8_t b[Traits::kPlan.operands.b_boxes][Traits::kPlan.operands.b_box_bytes];
};
// A stage may also have A in 16 bits or FP8, if A has no ring of its own, and the scale factors.
template <class Traits>
struct OperandsAndScales : Operands<Traits> {
  [[no_unique_address]] Bytes<Traits::kPlan.a16.bytes, struct A16> a16;
  ScaleStage<Traits> scales;
};
template <class Traits>
using Stage =
    std::conditional_t<Traits::kPlan.scales.with_operands, OperandsAndScales<Traits>, Operands<Traits>>;

// Where the factors lie with the operands, there is one ring.
template <class Traits, bool kOwnScales = !Traits::kPlan.scales.with_operands>
struct RingsInMemory {
  static constexpr int32_t kStages = Traits::kPlan.operands.stages,
                           kScaleStages = Traits::kPlan.scales.stages;

  Stage<Traits> stage[kStages];
  ScaleStage<Traits> scale_stage[kScaleStages];
  uint64_t full[kStages];
  uint64_t empty[kStages];
  uint64_t scale_full[kScaleStages];
  uint64_t scale_empty[kScaleStages];
};
template <class Traits>
struct RingsInMemory<Traits, false> {
  static constexpr int32_t kStages = Traits::kPlan.operands.stages, kScaleStages = kStages;

  Stage<Traits> stage[kStages];
  uint64_t full[kStages];
  uint64_t empty[kStages];
  std::conditional_t<(Traits::kPlan.a16.warps > 0), uint64_t[kStages], Nothing> a_full;
};

// The rings start at a multiple of 1024 bytes.
template <class Traits>
struct Rings : RingsInMemory<Traits> {
  static constexpr bool kOwnScales = !Traits::kPlan.scales.with_operands;

  static_assert(sizeof(Stage<Traits>) == Traits::kPlan.operands.stage_bytes + Traits::kPlan.a16.bytes +
                                             (kOwnScales ? 0 : Traits::kPlan.scales.stage_bytes) &&
                    sizeof(ScaleStage<Traits>) == Traits::kPlan.scales.stage_bytes,
                "a stage has no gaps");
  static_assert(sizeof(Stage<Traits>) % 1024 == 0, "every stage starts at a pattern of the swizzle");

  static constexpr bool kOwnBarrierOfA = Traits::kPlan.a16.warps > 0;
  // How many load roles arrive on `full`: one where A has a barrier or a ring of its own, else both.
  static constexpr uint32_t kFillers = kOwnBarrierOfA || Traits::kPlan.a16.stages > 0 ? 1 : kLoadRoles;

  // Returns the barrier of a stage on which the load role of A or that of the weights arrives.
  template <bool kBringsA>
  DUALGEMM_DEVICE uint64_t& full_of(int index) {
    if constexpr (kBringsA && kOwnBarrierOfA) return this->a_full[index];
    else return this->full[index];
  }

  // One thread calls this, before anything arrives. `readers` arrive when they have read a stage.
  DUALGEMM_DEVICE void init_barriers(uint32_t readers = 1) {
    for (uint64_t& mbar : this->full) ptx::mbarrier_init(&mbar, kFillers);
    for (uint64_t& mbar : this->empty) ptx::mbarrier_init(&mbar, readers);
    if constexpr (kOwnScales) {
      for (uint64_t& mbar : this->scale_full) ptx::mbarrier_init(&mbar, kFillers);
      for (uint64_t& mbar : this->scale_empty) ptx::mbarrier_init(&mbar, readers);
    }
    if constexpr (kOwnBarrierOfA)
      for (uint64_t& mbar : this->a_full) ptx::mbarrier_init(&mbar, 1);
  }
};

}  // namespace dualgemm
