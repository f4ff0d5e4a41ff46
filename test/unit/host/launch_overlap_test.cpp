// launch_overlap_test.cpp -- every pair of tensors of a launch of which one is written: in each kind of
// launch, of two products and of one, the other may lie right before and right behind it and no nearer.
#include "arguments.h"
#include "launch_parts.h"
#include "overlap.h"
#include "rules.h"
#include "support/catch.hpp"

namespace launch_overlap_test {

using namespace dualgemm_test;

TEST_CASE("no output, nor the workspace, overlaps an input or another output", "[host][validate][grouped]") {
  for (const dualgemm_args_t& kind : {valid_args(), batch_args(), masked_args(), offsets_args()})
    for (const bool one : {false, true}) {
      INFO("group_mode " << kind.group_mode << ", batch " << kind.batch << (one ? ", one product" : ""));
      const dualgemm_args_t good = one ? everything_of_one(kind) : everything(kind);
      check_pairs(good, parts_of(good), ask);
    }
}

TEST_CASE("inputs of a launch may overlap each other", "[host][validate][grouped]") {
  for (const dualgemm_args_t& kind : {valid_args(), batch_args(), masked_args(), offsets_args()})
    for (const bool one : {false, true}) {
      dualgemm_args_t shared = one ? everything_of_one(kind) : everything(kind);
      for (const auto& part : parts_of(shared))
        if (!part.written) part.place(shared, 0x8'0000'0000);
      check_accepted({[](auto&) {}}, shared);
    }
}

}  // namespace launch_overlap_test
