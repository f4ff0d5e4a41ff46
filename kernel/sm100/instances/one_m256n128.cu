// one_m256n128.cu -- one product, by a pair of CTAs (2-SM). A scale stage holds two k-tiles,
// so that there are fewer copies.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{.tile_m = 256,
                                .tile_n = 128,
                                .stages = 8,
                                .scale_stages = 4,
                                .scale_k_tiles = 2,
                                .acc_stages = 2,
                                .products = 1};

extern constinit const InstanceList LIST(sm100_one_m256n128) = sm100::kInstances<kDense>;

}  // namespace dualgemm
