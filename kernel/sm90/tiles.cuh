// tiles.cuh -- the options of the instances for compute capability 9.0. The names are those of the plain
// instances: the tile, then s for split-K, x for an A from a pass, g for groups (instance_name.h). The
// sources in instances/ list them for an A in NVFP4; sixteen_bit.cuh derives from them those for an A of 16
// bits.
#pragma once

#include "kernel/instance_list.cuh"
#include "kernel/sm90/plan.h"

namespace dualgemm::sm90 {

constexpr Options grouped(Options o) {
  o.grouped = true;
  return o;
}
constexpr Options stream_k(Options o) {
  o.stream_k = true;
  return o;
}
template <CType kType>
constexpr Options of_type(Options o) {
  o.a_type = kType;
  return o;
}
constexpr Options with_stages(Options o, int32_t stages) {
  o.stages = stages;
  return o;
}
constexpr Options with_exchanged_rows(Options o, int32_t rows) {
  o.exchanged_rows = rows;
  return o;
}

// With four warpgroups a thread has about a hundred registers. Where a general instance needs a few more, it
// has two warpgroups, and half of the columns.
constexpr Options for_many_columns(Options o) {
  if (kGeneralInstances) o.tile_n /= 2;
  return o;
}
// Two CTAs share an SM, so that one loads while the other finishes.
constexpr Options two_to_an_sm(Options o) {
  o.ctas_per_sm = 2;
  return o;
}

// "For up to eight rows" says for which M, or rows of a group, an instance is meant. It computes any M, in
// more tiles. These are for up to eight rows of A.
inline constexpr Options kM8N32s2 =
    two_to_an_sm({.tile_m = 8, .tile_n = 32, .split_k = 2, .k_groups = 2, .stages = 5});
inline constexpr Options kM8N64s2 = two_to_an_sm({.tile_m = 8, .tile_n = 64, .split_k = 2, .stages = 4});
inline constexpr Options kM8N128{.tile_m = 8, .tile_n = 128, .stages = 5};

// For up to sixteen rows.
inline constexpr Options kM16N32s2{
    .tile_m = 16, .tile_n = 32, .split_k = 2, .k_groups = 2, .stages = 8, .prepare_warps = 4};
inline constexpr Options kM16N64s2{.tile_m = 16, .tile_n = 64, .split_k = 2, .stages = 6, .prepare_warps = 4};
inline constexpr Options kM16N128{.tile_m = 16, .tile_n = 128, .stages = 4, .prepare_warps = 4};
inline constexpr Options kM16N128g = for_many_columns(grouped(kM16N128));

// For up to 32 rows.
inline constexpr Options kM32N64s2{.tile_m = 32, .tile_n = 64, .split_k = 2, .stages = 5, .prepare_warps = 8};
inline constexpr Options kM32N128{.tile_m = 32, .tile_n = 128, .stages = 3, .prepare_warps = 4};

// For up to 64 rows.
inline constexpr Options kM64N64{.tile_m = 64, .tile_n = 64, .stages = 3, .prepare_warps = 8};
inline constexpr Options kM64N64s2{.tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 3, .prepare_warps = 8};
inline constexpr Options kM64N64g = grouped(kM64N64);
inline constexpr Options kM64N64s2x{
    .tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 4, .prepare_warps = 0};
inline constexpr Options kM64N128x =
    for_many_columns({.tile_m = 64, .tile_n = 128, .stages = 4, .panel_stages = 6, .prepare_warps = 0});
inline constexpr Options kM64N128xg = grouped(kM64N128x);

// For many rows.
inline constexpr Options kM128N64{.tile_m = 128, .tile_n = 64, .stages = 2, .prepare_warps = 8};
inline constexpr Options kM128N64g = with_exchanged_rows(grouped(kM128N64), 16);
inline constexpr Options kM128N64x{
    .tile_m = 128, .tile_n = 64, .stages = 4, .panel_stages = 8, .prepare_warps = 0};
inline constexpr Options kM128N64skx = stream_k(kM128N64x);
inline constexpr Options kM128N64s2x{
    .tile_m = 128, .tile_n = 64, .split_k = 2, .stages = 3, .panel_stages = 10, .prepare_warps = 0};
inline constexpr Options kM128N64xg{
    .tile_m = 128, .tile_n = 64, .stages = 4, .panel_stages = 7, .prepare_warps = 0, .grouped = true};
inline constexpr Options kM192N64skx =
    stream_k({.tile_m = 192, .tile_n = 64, .stages = 3, .panel_stages = 6, .prepare_warps = 0});
inline constexpr Options kM256N64x{
    .tile_m = 256, .tile_n = 64, .stages = 2, .panel_stages = 5, .prepare_warps = 0};

}  // namespace dualgemm::sm90
