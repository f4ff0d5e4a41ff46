// m32n64.cu -- for up to 32 rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole = sm90::for_few_rows(
    {.tile_m = 32, .tile_n = 64, .stages = 3, .scale_stages = 3, .expanded_stages = 2, .expander_warps = 6});
constexpr sm90::Options kSplit2{.tile_m = 32,
                                .tile_n = 64,
                                .split_k = 2,
                                .stages = 6,
                                .scale_stages = 6,
                                .expanded_stages = 6,
                                .expander_warps = 6};

extern constinit const InstanceList LIST(sm90_m32n64) = sm90::kInstances<kWhole, kSplit2>;

}  // namespace dualgemm
