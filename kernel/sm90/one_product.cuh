// one_product.cuh -- the options of the instances of one product for compute capability 9.0, named as those
// of two products (tiles.cuh). A warpgroup has 64 columns of C, so that a tile has twice the columns of a
// tile of two products that reads as many weights. The sources in instances/ list these options for an A in
// NVFP4 or of 16 bits.
#pragma once

#include "kernel/sm90/instances.cuh"

namespace dualgemm::sm90 {

// Two column groups; warps of the kernel prepare A.
constexpr Options one_wide(int rows, int split_k, int stages, int prepare_warps) {
  return {.tile_m = rows,
          .tile_n = 128,
          .split_k = split_k,
          .stages = stages,
          .prepare_warps = prepare_warps,
          .products = 1};
}
// The CTAs that share a tile of 64 columns divide K, and the two warpgroups of each CTA divide every k-tile.
constexpr Options one_narrow(int rows, int split_k, int stages, int prepare_warps) {
  return {.tile_m = rows,
          .tile_n = 64,
          .split_k = split_k,
          .k_groups = 2,
          .stages = stages,
          .prepare_warps = prepare_warps,
          .products = 1};
}
// A comes from a pass, by panels.
constexpr Options one_by_panels(int rows, int split_k, int stages, int panels) {
  return {.tile_m = rows,
          .tile_n = 128,
          .split_k = split_k,
          .stages = stages,
          .panel_stages = panels,
          .prepare_warps = 0,
          .products = 1};
}

// For up to eight rows of A (tiles.cuh says what that means).
inline constexpr Options kOneM8N128 = one_wide(8, 1, 8, 2), kOneM8N128s2 = two_to_an_sm(one_wide(8, 2, 4, 2)),
                         kOneM8N64s2 = one_narrow(8, 2, 12, 2), kOneM8N64s4 = one_narrow(8, 4, 8, 2);

// For up to sixteen rows.
inline constexpr Options kOneM16N128 = one_wide(16, 1, 7, 4), kOneM16N128s2 = one_wide(16, 2, 7, 4),
                         kOneM16N128g = grouped(with_stages(kOneM16N128, 6)),
                         kOneM16N64s2 = one_narrow(16, 2, 9, 4), kOneM16N64s4 = one_narrow(16, 4, 8, 4);

// For up to 32 rows.
inline constexpr Options kOneM32N128 = one_wide(32, 1, 5, 8), kOneM32N128s2 = one_wide(32, 2, 5, 8),
                         kOneM32N64s2 = one_narrow(32, 2, 6, 8), kOneM32N64s4 = one_narrow(32, 4, 6, 8);

// For up to 64 rows.
inline constexpr Options kOneM64N128 = one_wide(64, 1, 3, 8), kOneM64N128g = grouped(kOneM64N128),
                         kOneM64N128x = one_by_panels(64, 1, 6, 10),
                         kOneM64N128xg = grouped(one_by_panels(64, 1, 5, 8)),
                         kOneM64N128s2x = one_wide(64, 2, 4, 0), kOneM64N64s4x = one_narrow(64, 4, 5, 0);

// For many rows.
inline constexpr Options kOneM128N128 = one_wide(128, 1, 2, 8), kOneM128N128x = one_by_panels(128, 1, 4, 8),
                         kOneM128N128skx = stream_k(kOneM128N128x),
                         kOneM128N128s2x = one_by_panels(128, 2, 3, 10),
                         kOneM128N128s4x = one_by_panels(128, 4, 3, 10),
                         kOneM128N128xg = grouped(one_by_panels(128, 1, 4, 7)),
                         kOneM192N128skx = stream_k(one_by_panels(192, 1, 3, 6)),
                         kOneM256N128x = one_by_panels(256, 1, 2, 5);

// The instances for an A of 16 bits, the same for bf16 and fp16 (sixteen_bit.cuh).
template <CType kType>
consteval InstanceList one_product_of_sixteen_bits() {
  constexpr Options kMore64 = of_type<kType>(with_stages(kOneM64N128, 4));
  // A tile of a small expert has few k-tiles, so that finishing it takes long in comparison.
  constexpr Options kSmallExperts = of_type<kType>(grouped(two_to_an_sm(one_wide(16, 1, 3, 2))));
  if constexpr (kGeneralInstances)
    return kInstances<of_type<kType>(kOneM16N128s2), of_type<kType>(kOneM16N128g),
                      of_type<kType>(kOneM32N128), kMore64, of_type<kType>(kOneM64N128g),
                      of_type<kType>(kOneM128N128x), of_type<kType>(kOneM128N128xg)>;
  else
    return kInstances<
        of_type<kType>(kOneM16N128), of_type<kType>(kOneM16N128s2), of_type<kType>(kOneM16N64s4),
        kSmallExperts, of_type<kType>(kOneM32N128), of_type<kType>(kOneM32N128s2),
        of_type<kType>(kOneM32N64s4), of_type<kType>(grouped(kOneM32N128)), kMore64,
        of_type<kType>(kOneM64N128g), of_type<kType>(kOneM64N128x), of_type<kType>(kOneM64N128xg),
        of_type<kType>(kOneM64N128s2x), of_type<kType>(kOneM128N128), of_type<kType>(kOneM128N128x),
        of_type<kType>(kOneM128N128skx), of_type<kType>(kOneM128N128s2x), of_type<kType>(kOneM128N128xg),
        of_type<kType>(kOneM192N128skx), of_type<kType>(kOneM256N128x)>;
}

}  // namespace dualgemm::sm90
