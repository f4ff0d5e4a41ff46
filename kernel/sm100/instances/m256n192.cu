// m256n192.cu -- a pair of CTAs (2-SM) for a wide tile. Each step has two mma, since 2 * 192 columns are more
// than one mma has.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{.tile_m = 256, .tile_n = 192, .stages = 4, .scale_stages = 4};

extern constinit const InstanceList LIST(sm100_m256n192) = sm100::kInstances<kDense>;

}  // namespace dualgemm
