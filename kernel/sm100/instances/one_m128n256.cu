// one_m128n256.cu -- one product, by one CTA with the widest mma, whose two accumulators overlap.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kOverlapped{
    .tile_m = 128, .tile_n = 256, .stages = 4, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kGrouped{.tile_m = 128,
                                  .tile_n = 256,
                                  .stages = 4,
                                  .scale_stages = 4,
                                  .acc_stages = 2,
                                  .grouped = true,
                                  .products = 1};

extern constinit const InstanceList LIST(sm100_one_m128n256) = sm100::kInstances<kOverlapped, kGrouped>;

}  // namespace dualgemm
