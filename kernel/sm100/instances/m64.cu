// m64.cu -- swap A/B, meant for few rows of A. The two rings share the shared memory of a CTA, and hold
// about as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDecode{
    .tile_m = 64, .tile_n = 128, .stages = 5, .scale_stages = 4, .acc_stages = 2};
constexpr sm100::Options kSplit{.tile_m = 64, .tile_n = 128, .split_k = 4, .stages = 5, .scale_stages = 4};
constexpr sm100::Options kGrouped{
    .tile_m = 64, .tile_n = 128, .stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true};

extern constinit const InstanceList LIST(sm100_m64) = sm100::kInstances<kDecode, kSplit, kGrouped>;

}  // namespace dualgemm
