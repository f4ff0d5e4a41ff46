// many_rows.cu -- tiles of 64 to 256 rows, meant for more than 32 rows of A, or of a group. Warps of the
// kernel prepare A, or a pass before the kernel does.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_many_rows) =
    sm90::kInstances<sm90::kM64N64, sm90::kM64N64s2, sm90::kM64N64g, sm90::kM64N64s2x, sm90::kM64N128x,
                     sm90::kM64N128xg, sm90::kM128N64, sm90::kM128N64g, sm90::kM128N64x, sm90::kM128N64skx,
                     sm90::kM128N64s2x, sm90::kM128N64xg, sm90::kM192N64skx, sm90::kM256N64x>;

}  // namespace dualgemm
