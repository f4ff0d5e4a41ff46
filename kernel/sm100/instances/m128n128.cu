// m128n128.cu -- one CTA, one mma of N = 256 for both products. The two rings share what shared memory there
// is, and scale factors reach no less far along K.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5};
constexpr sm100::Options kGrouped{
    .tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 4, .grouped = true};

extern constinit const InstanceList LIST(sm100_m128n128) = sm100::kInstances<kDense, kGrouped>;

}  // namespace dualgemm
