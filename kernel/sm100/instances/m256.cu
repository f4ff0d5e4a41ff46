// m256.cu -- tiles of a pair of CTAs (2-SM). The two rings share the shared memory of a CTA, and hold about
// as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// The number of copies limits here how fast the rings are filled, so a scale stage holds two k-tiles. The
// time of two narrow mma that share A is the time to read A: a public kernel gained 5 to 10 % on a B200 by
// keeping A in the collector for the second mma.
constexpr sm100::Options kN64{
    .tile_m = 256, .tile_n = 64, .stages = 7, .scale_stages = 4, .scale_k_tiles = 2, .keep_a = true};
// One mma of N = 256 for both products.
constexpr sm100::Options kN128{.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5};
constexpr sm100::Options kN128o{
    .tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5, .acc_stages = 2};
constexpr sm100::Options kN128s2{.tile_m = 256, .tile_n = 128, .split_k = 2, .stages = 6, .scale_stages = 5};
constexpr sm100::Options kN128og{
    .tile_m = 256, .tile_n = 128, .stages = 5, .scale_stages = 5, .acc_stages = 2, .grouped = true};
// Each step has two mma, since 2 * 192 columns are more than one mma has.
constexpr sm100::Options kN192{.tile_m = 256, .tile_n = 192, .stages = 4, .scale_stages = 4};

extern constinit const InstanceList LIST(sm100_m256) =
    sm100::kInstances<kN64, kN128, kN128o, kN128s2, kN128og, kN192>;

}  // namespace dualgemm
