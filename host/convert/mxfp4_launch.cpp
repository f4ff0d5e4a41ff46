// mxfp4_launch.cpp -- the exported function that prepares MXFP4 weights on the device: rules, parameters of
// the kernel, launch. Its twin on the host is in mxfp4_host.cpp.

#include <cuda_runtime_api.h>

#include "host/common/cuda_error.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/convert/bands.h"
#include "host/convert/mxfp4.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

Mxfp4Params params_of(const Mxfp4Preparation& preparation) {
  const dualgemm_prepare_mxfp4_args_t& args = preparation.args;
  Mxfp4Params params{};
  params.rows = band_params(preparation.rows, kTilesOfRows);
  params.q = static_cast<const uint8_t*>(args.q);
  params.q_pitch = preparation.q.bytes(preparation.q.pitch);
  params.q_stride = preparation.q.bytes(preparation.q.shared_stride());
  params.scales = static_cast<const uint8_t*>(args.scales);
  params.scale_pitch = preparation.scales.pitch;
  params.scale_stride = preparation.scales.shared_stride();
  params.factors = static_cast<uint8_t*>(args.sf);
  params.factor_stride = preparation.sf.shared_stride();
  params.row_exponent = args.row_exponent;
  params.row_exponent_stride = preparation.row_exponent.shared_stride();
  params.counts = args.counts;
  params.blocks = args.k / kMxBlock;
  return params;
}

dualgemm_status_t prepare(const dualgemm_prepare_mxfp4_args_t* user_args, cudaStream_t stream) {
  Mxfp4Preparation preparation;
  if (auto status = validate(user_args, &preparation)) return status;
  if (preparation.empty) return kOk;
  const CudaErrorScope errors;
  int32_t sms;
  if (auto status = query_sms(&sms)) return status;
  const BandLaunch launch = band_launch(preparation.rows, kTilesOfRows, preparation.args.flags, sms, stream);
  return launch_bands(launch, kMxfp4Kernel, params_of(preparation), kMxfp4Ctas);
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

void dualgemm_prepare_mxfp4_args_init_sized(dualgemm_prepare_mxfp4_args_t* args,
                                            size_t struct_size) noexcept {
  init_structure(args, struct_size, default_prepare_mxfp4_args());
}

dualgemm_status_t dualgemm_prepare_mxfp4(const dualgemm_prepare_mxfp4_args_t* args,
                                         dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return prepare(args, stream);
}
