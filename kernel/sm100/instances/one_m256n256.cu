// one_m256n256.cu -- one product, by a pair of CTAs (2-SM) with the widest mma, whose two
// accumulators overlap.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kOverlapped{
    .tile_m = 256, .tile_n = 256, .stages = 6, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kSplit{
    .tile_m = 256, .tile_n = 256, .split_k = 2, .stages = 6, .scale_stages = 5, .products = 1};
constexpr sm100::Options kGrouped{.tile_m = 256,
                                  .tile_n = 256,
                                  .stages = 5,
                                  .scale_stages = 5,
                                  .acc_stages = 2,
                                  .grouped = true,
                                  .products = 1};

extern constinit const InstanceList LIST(sm100_one_m256n256) =
    sm100::kInstances<kOverlapped, kSplit, kGrouped>;

}  // namespace dualgemm
