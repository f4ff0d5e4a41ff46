// boxes.h -- the box of each tensor map of a launch (Params): what one TMA copy brings to shared memory. The
// host encodes the maps with these boxes. This is plain C++, like the plan that they follow from.
#pragma once

#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm {

// Scale factors come as words of eight bytes, since a box has at most 256 elements along a dimension: an atom
// is the innermost one.
inline constexpr int32_t kSfAtomWords = kSfAtomBytes / 8;

// Elements of the map's type, innermost first, as many as the tensor has dimensions.
struct Box {
  uint32_t extent[4];
};

struct Boxes {
  Box a, b, sfa, sfb, prepared_a;
};

// An A of 16 bits that the kernel puts in order comes by panels, and so does one in FP8. An A that a pass has
// prepared comes by panels where it has a ring of its own, and else a k-tile at a time.
constexpr Boxes boxes_of(const Plan& plan) {
  const auto box = [](int32_t inner, int32_t rows, int32_t of_third = 1) {
    return Box{
        {static_cast<uint32_t>(inner), static_cast<uint32_t>(rows), static_cast<uint32_t>(of_third), 1}};
  };
  return {.a = plan.panels_of_a() ? box(plan.panel_k(), plan.tile.m)
                                  : box(kBoxRowBytes, plan.operands.a_box_rows),
          .b = box(kBoxRowBytes, plan.operands.b_box_rows),
          .sfa = box(kSfAtomWords, plan.scales.steps),
          .sfb = box(kSfAtomWords, plan.scales.steps, plan.scales.sfb_blocks),
          .prepared_a = box(kPanelK, plan.tile.m, plan.a16.stages > 0 ? 1 : plan.tile.k / kPanelK)};
}

}  // namespace dualgemm
