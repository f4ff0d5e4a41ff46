// one_many_rows.cu -- one product in tiles of 64 to 256 rows, meant for more than 32 rows of A, or of a
// group. Warps of the kernel prepare A, or a pass before the kernel does.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_many_rows) =
    sm90::kInstances<sm90::kOneM64N128, sm90::kOneM64N128g, sm90::kOneM64N128x, sm90::kOneM64N128xg,
                     sm90::kOneM64N128s2x, sm90::kOneM64N64s4x, sm90::kOneM128N128, sm90::kOneM128N128x,
                     sm90::kOneM128N128skx, sm90::kOneM128N128s2x, sm90::kOneM128N128s4x,
                     sm90::kOneM128N128xg, sm90::kOneM192N128skx, sm90::kOneM256N128x>;

}  // namespace dualgemm
