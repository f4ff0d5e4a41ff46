// one_m64.cu -- one product with swap A/B, meant for few rows of A.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDecode{
    .tile_m = 64, .tile_n = 128, .stages = 8, .scale_stages = 8, .acc_stages = 2, .products = 1};
constexpr sm100::Options kSplit{
    .tile_m = 64, .tile_n = 128, .split_k = 4, .stages = 8, .scale_stages = 8, .products = 1};
constexpr sm100::Options kGrouped{.tile_m = 64,
                                  .tile_n = 128,
                                  .stages = 7,
                                  .scale_stages = 8,
                                  .acc_stages = 2,
                                  .grouped = true,
                                  .products = 1};

extern constinit const InstanceList LIST(sm100_one_m64) = sm100::kInstances<kDecode, kSplit, kGrouped>;

}  // namespace dualgemm
