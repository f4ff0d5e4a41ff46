// sixteen_bit.cuh -- the instances for an A of 16 bits, the same for bf16 and fp16. Plain ones have tiles for
// few rows, for some and for many. General ones have one tile, for everything else.
#pragma once

#include "kernel/sm90/instances.cuh"

namespace dualgemm::sm90 {

constexpr Options grouped(Options o) {
  o.grouped = true;
  return o;
}

template <CType kType>
struct SixteenBit {
  static constexpr Options kFew{
      .tile_m = 16, .tile_n = 128, .stages = 4, .expander_warps = 4, .a_type = kType};
  static constexpr Options kFewSplit2{
      .tile_m = 16, .tile_n = 64, .split_k = 2, .stages = 6, .expander_warps = 4, .a_type = kType};
  static constexpr Options kFewestSplit2{.tile_m = 16,
                                         .tile_n = 32,
                                         .split_k = 2,
                                         .k_groups = 2,
                                         .stages = 8,
                                         .expander_warps = 4,
                                         .a_type = kType};
  static constexpr Options kFewGrouped = grouped(kFew);
  static constexpr Options kSeveral{
      .tile_m = 32, .tile_n = 128, .stages = 3, .expander_warps = 4, .a_type = kType};
  static constexpr Options kSeveralSplit2{
      .tile_m = 32, .tile_n = 64, .split_k = 2, .stages = 6, .expander_warps = 8, .a_type = kType};
  static constexpr Options kSeveralSplit3{
      .tile_m = 32, .tile_n = 64, .split_k = 3, .stages = 6, .expander_warps = 8, .a_type = kType};
  static constexpr Options kSome{
      .tile_m = 64, .tile_n = 64, .stages = 4, .expander_warps = 8, .a_type = kType};
  static constexpr Options kSomeGrouped{
      .tile_m = 64, .tile_n = 64, .stages = 3, .expander_warps = 8, .grouped = true, .a_type = kType};
  static constexpr Options kSomeSplit2{
      .tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 4, .expander_warps = 8, .a_type = kType};
  static constexpr Options kSomeOrderedSplit2{
      .tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 4, .expander_warps = 0, .a_type = kType};
  static constexpr Options kSomeOrdered{
      .tile_m = 64, .tile_n = 128, .stages = 4, .panel_stages = 6, .expander_warps = 0, .a_type = kType};
  static constexpr Options kMany{
      .tile_m = 128, .tile_n = 64, .stages = 2, .expander_warps = 8, .a_type = kType};
  static constexpr Options kManyOrdered{
      .tile_m = 128, .tile_n = 64, .stages = 4, .panel_stages = 8, .expander_warps = 0, .a_type = kType};
  static constexpr Options kManyOrderedSplit2{.tile_m = 128,
                                              .tile_n = 64,
                                              .split_k = 2,
                                              .stages = 3,
                                              .panel_stages = 10,
                                              .expander_warps = 0,
                                              .a_type = kType};
  static constexpr Options kMostOrdered{
      .tile_m = 256, .tile_n = 64, .stages = 2, .panel_stages = 5, .expander_warps = 0, .a_type = kType};
  static constexpr Options kMostOrderedGrouped = grouped(kMostOrdered);

  static consteval InstanceList instances() {
    if constexpr (InstanceArithmetic::kGeneral) return kInstances<kSome, kSomeGrouped>;
    else
      return kInstances<kFew, kFewSplit2, kFewestSplit2, kFewGrouped, kSeveral, kSeveralSplit2,
                        kSeveralSplit3, kSome, kSomeGrouped, kSomeSplit2, kSomeOrderedSplit2, kSomeOrdered,
                        kMany, kManyOrdered, kManyOrderedSplit2, kMostOrdered, kMostOrderedGrouped>;
  }
};

}  // namespace dualgemm::sm90
