// abf16.cu -- the tiles for an A in bf16.
#include "kernel/sm90/sixteen_bit.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_abf16) = sm90::sixteen_bit_instances<CType::kBf16>();

}  // namespace dualgemm
