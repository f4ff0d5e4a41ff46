// sixteen_bit.cuh -- the instances for an A of 16 bits, the same for either type: plain ones with tiles for
// few rows, for some and for many, and one general tile for everything else.
#pragma once

#include "kernel/sm90/instances.cuh"

namespace dualgemm::sm90 {

constexpr Options grouped(Options o) {
  o.grouped = true;
  return o;
}

template <CType kType>
struct SixteenBit {
  // A k-tile more of A than of the weights: it is put in order before it is multiplied.
  static constexpr Options kSplitFew = for_few_rows({.tile_m = 16,
                                                     .tile_n = 32,
                                                     .split_k = 2,
                                                     .k_groups = 2,
                                                     .stages = 4,
                                                     .scale_stages = 4,
                                                     .expanded_stages = 10,
                                                     .a_type = kType});
  static constexpr Options kFew = for_few_rows(
      {.tile_m = 16, .tile_n = 64, .stages = 3, .scale_stages = 3, .expanded_stages = 8, .a_type = kType});
  static constexpr Options kFewGrouped = grouped(kFew);
  static constexpr Options kSome{.tile_m = 64,
                                 .tile_n = 64,
                                 .stages = 4,
                                 .scale_stages = 4,
                                 .expanded_stages = 8,
                                 .expander_warps = 6,
                                 .a_type = kType};
  static constexpr Options kSomeGrouped{.tile_m = 64,
                                        .tile_n = 64,
                                        .stages = 3,
                                        .scale_stages = 3,
                                        .expanded_stages = 8,
                                        .expander_warps = 6,
                                        .grouped = true,
                                        .a_type = kType};
  static constexpr Options kMany{.tile_m = 128,
                                 .tile_n = 64,
                                 .stages = 4,
                                 .scale_stages = 4,
                                 .expanded_stages = 4,
                                 .expander_warps = 6,
                                 .a_type = kType};
  static constexpr Options kSomeOrdered{.tile_m = 128,
                                        .tile_n = 64,
                                        .stages = 4,
                                        .scale_stages = 4,
                                        .expanded_stages = 8,
                                        .expander_warps = 0,
                                        .a_type = kType};
  static constexpr Options kOrdered{.tile_m = 256,
                                    .tile_n = 64,
                                    .stages = 2,
                                    .scale_stages = 2,
                                    .expanded_stages = 5,
                                    .expander_warps = 0,
                                    .a_type = kType};
  static constexpr Options kOrderedGrouped = grouped(kOrdered);

  static consteval InstanceList instances() {
    if constexpr (InstanceArithmetic::kGeneral) return kInstances<kSome, kSomeGrouped>;
    else
      return kInstances<kSplitFew, kFew, kFewGrouped, kSome, kSomeGrouped, kMany, kSomeOrdered, kOrdered,
                        kOrderedGrouped>;
  }
};

}  // namespace dualgemm::sm90
