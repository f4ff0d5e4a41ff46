// afp16.cu -- the tiles for an A in fp16.
#include "kernel/sm90/sixteen_bit.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_afp16) = sm90::sixteen_bit_instances<CType::kFp16>();

}  // namespace dualgemm
