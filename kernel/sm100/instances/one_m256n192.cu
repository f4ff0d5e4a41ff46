// one_m256n192.cu -- one product, by a pair of CTAs (2-SM) that computes a tile of 192 columns.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{
    .tile_m = 256, .tile_n = 192, .stages = 7, .scale_stages = 4, .acc_stages = 2, .products = 1};

extern constinit const InstanceList LIST(sm100_one_m256n192) = sm100::kInstances<kDense>;

}  // namespace dualgemm
