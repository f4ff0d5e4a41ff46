// m128n128.cu -- one CTA, one mma of N = 256 for both products. The two rings share the shared memory of a
// CTA, and the ring of scale factors holds at least as many k-tiles as that of operands.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5};
constexpr sm100::Options kGrouped{
    .tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 4, .grouped = true};

extern constinit const InstanceList LIST(sm100_m128n128) = sm100::kInstances<kDense, kGrouped>;

}  // namespace dualgemm
