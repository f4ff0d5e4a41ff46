#include "kernel/convert/mxfp4.cuh"

namespace dualgemm {

constinit const Mxfp4Kernel kMxfp4Kernel = &convert::prepare_mxfp4_kernel;

}  // namespace dualgemm
