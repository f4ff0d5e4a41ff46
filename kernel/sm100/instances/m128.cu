// m128.cu -- tiles of 128 rows, without a pair of CTAs. The two rings share the shared memory of a CTA, and
// hold about as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// The time of two narrow mma that share A is the time to read A: a public kernel gained 5 to 10 % on a B200
// by keeping A in the collector for the second mma.
constexpr sm100::Options kN64{
    .tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true};
constexpr sm100::Options kN64s2{
    .tile_m = 128, .tile_n = 64, .split_k = 2, .stages = 6, .scale_stages = 5, .keep_a = true};
constexpr sm100::Options kN64s4{
    .tile_m = 128, .tile_n = 64, .split_k = 4, .stages = 6, .scale_stages = 5, .keep_a = true};
// One mma of N = 256 for both products. The ring of scale factors holds at least as many k-tiles as that of
// operands.
constexpr sm100::Options kN128{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5};
constexpr sm100::Options kN128g{
    .tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 4, .grouped = true};

extern constinit const InstanceList LIST(sm100_m128) = sm100::kInstances<kN64, kN64s2, kN64s4, kN128, kN128g>;

}  // namespace dualgemm
