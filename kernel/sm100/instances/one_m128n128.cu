// one_m128n128.cu -- one product, by one CTA. The two rings share the shared memory of a CTA, and hold about
// as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kWhole{
    .tile_m = 128, .tile_n = 128, .stages = 6, .scale_stages = 7, .acc_stages = 2, .products = 1};
constexpr sm100::Options kSplit2{
    .tile_m = 128, .tile_n = 128, .split_k = 2, .stages = 6, .scale_stages = 7, .products = 1};
constexpr sm100::Options kSplit4{
    .tile_m = 128, .tile_n = 128, .split_k = 4, .stages = 6, .scale_stages = 7, .products = 1};

extern constinit const InstanceList LIST(sm100_one_m128n128) = sm100::kInstances<kWhole, kSplit2, kSplit4>;

}  // namespace dualgemm
