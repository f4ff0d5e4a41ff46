// m128n64.cu -- a tile of 64 columns, without a pair of CTAs. The two rings share the shared memory of a CTA,
// and hold about as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// The time of two narrow mma that share A is the time to read A: a public kernel gained 5 to 10 % on a B200
// by keeping A in the collector for the second mma.
constexpr sm100::Options kWhole{
    .tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true};
constexpr sm100::Options kSplit2{
    .tile_m = 128, .tile_n = 64, .split_k = 2, .stages = 6, .scale_stages = 5, .keep_a = true};
constexpr sm100::Options kSplit4{
    .tile_m = 128, .tile_n = 64, .split_k = 4, .stages = 6, .scale_stages = 5, .keep_a = true};

extern constinit const InstanceList LIST(sm100_m128n64) = sm100::kInstances<kWhole, kSplit2, kSplit4>;

}  // namespace dualgemm
