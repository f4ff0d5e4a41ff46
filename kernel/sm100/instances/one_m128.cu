// one_m128.cu -- one product, by one CTA. The two rings share the shared memory of a CTA, and hold about as
// many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kN128{
    .tile_m = 128, .tile_n = 128, .stages = 6, .scale_stages = 7, .acc_stages = 2, .products = 1};
constexpr sm100::Options kN128s2{
    .tile_m = 128, .tile_n = 128, .split_k = 2, .stages = 6, .scale_stages = 7, .products = 1};
constexpr sm100::Options kN128s4{
    .tile_m = 128, .tile_n = 128, .split_k = 4, .stages = 6, .scale_stages = 7, .products = 1};
// The widest mma of one CTA, whose two accumulators overlap.
constexpr sm100::Options kN256o{
    .tile_m = 128, .tile_n = 256, .stages = 4, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kN256og{.tile_m = 128,
                                 .tile_n = 256,
                                 .stages = 4,
                                 .scale_stages = 4,
                                 .acc_stages = 2,
                                 .grouped = true,
                                 .products = 1};

extern constinit const InstanceList LIST(sm100_one_m128) =
    sm100::kInstances<kN128, kN128s2, kN128s4, kN256o, kN256og>;

}  // namespace dualgemm
