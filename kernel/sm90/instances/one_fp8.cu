// one_fp8.cu -- one product for an A in FP8 and weights in MXFP4.
#include "kernel/sm90/fp8.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_fp8) = sm90::fp8_instances<1>();

}  // namespace dualgemm
