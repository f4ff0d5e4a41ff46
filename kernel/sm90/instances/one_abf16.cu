// one_abf16.cu -- one product with an A in bf16.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_abf16) = sm90::one_product_of_sixteen_bits<CType::kBf16>();

}  // namespace dualgemm
