// one_afp16.cu -- one product with an A in fp16.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_afp16) = sm90::one_product_of_sixteen_bits<CType::kFp16>();

}  // namespace dualgemm
