// fp8.cuh -- the options of the instances for an A in FP8 and weights in MXFP4. Nobody prepares this A, and a
// stage has half of the bytes of an A in 16 bits.
#pragma once

#include "kernel/sm90/instances.cuh"

namespace dualgemm::sm90 {

// Of two products a warpgroup has 32 columns, of one 64.
constexpr Options fp8_tile(int products, int rows, int warpgroups, int split_k, int stages) {
  return {.tile_m = rows,
          .tile_n = (products == 1 ? 64 : 32) * warpgroups,
          .split_k = split_k,
          .stages = stages,
          .prepare_warps = 0,
          .a_type = CType::kFp8,
          .products = products};
}
// The two warpgroups have the same columns, and each has half of every k-tile.
constexpr Options halves_of_k(Options o) {
  o.tile_n /= 2;
  o.k_groups = 2;
  return o;
}

// With four warpgroups a tile of A serves twice as many columns as with two, so that fewer bytes of A come
// from L2. A general instance has two, since a thread of four has too few registers. So has a tile of one
// product: two warpgroups have 128 columns of it, as many as a block of factors has rows.
template <int32_t kProducts>
consteval InstanceList fp8_instances() {
  constexpr auto tile = [](int rows, int warpgroups, int split_k, int stages) {
    return fp8_tile(kProducts, rows, warpgroups, split_k, stages);
  };
  constexpr Options kM16s2 = two_to_an_sm(tile(16, 2, 2, 4)), kM32s2 = two_to_an_sm(tile(32, 2, 2, 4)),
                    kM64s2 = tile(64, 2, 2, 6), kM128 = tile(128, 2, 1, 4);
  // A has a ring of its own, which keeps more copies in flight.
  constexpr Options kM256 = [] {
    Options o = fp8_tile(kProducts, 256, 2, 1, /*stages=*/2);
    o.panel_stages = 5;
    return o;
  }();
  if constexpr (kGeneralInstances) {
    constexpr Options kM16 = two_to_an_sm(tile(16, 2, 1, 4)), kM64 = tile(64, 2, 1, 5);
    return kInstances<tile(16, 2, 2, 8), grouped(kM16), kM64s2, kM64, grouped(kM64), kM128,
                      with_exchanged_rows(grouped(kM128), 16), kM256>;
  } else {
    constexpr int kMost = kProducts == 1 ? 2 : 4;  // warpgroups
    constexpr Options kM16s2n = halves_of_k(tile(16, 2, 2, 10)), kM16 = tile(16, kMost, 1, 5),
                      kM32s2n = halves_of_k(tile(32, 2, 2, 8)), kM32 = tile(32, kMost, 1, 4),
                      kM64 = tile(64, kMost, 1, 4), kM64g = with_stages(grouped(kM64), 3),
                      kM128s2 = tile(128, 2, 2, 4);
    if constexpr (kProducts == 1)
      return kInstances<kM16s2n, kM16s2, kM16, grouped(kM16), kM32s2n, kM32s2, kM32, grouped(kM32), kM64s2,
                        kM64, kM64g, kM128, kM128s2, grouped(kM128), kM256>;
    else
      return kInstances<kM16s2n, kM16s2, kM16, grouped(kM16), kM32s2n, kM32s2, kM32, grouped(kM32), kM64s2,
                        kM64, kM64g, kM128, kM128s2, grouped(kM128), tile(128, 4, 1, 3), kM256>;
  }
}

}  // namespace dualgemm::sm90
