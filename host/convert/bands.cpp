// bands.cpp -- see bands.h.

#include "host/convert/bands.h"

#include <algorithm>

#include "host/common/cuda_error.h"
#include "host/common/device.h"

namespace dualgemm {

BandParams band_params(const Rows& rows, int32_t tiles_of_band) {
  return {rows.m,          static_cast<int32_t>(sf_row_blocks(rows.m)),
          tiles_of_band,   rows.problems,
          rows.group_rows, rows.offsets() ? 1 : 0};
}

dualgemm_status_t query_sms(int32_t* sms) {
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  *sms = device.sm_count;
  return check_device(device);
}

BandLaunch band_launch(const Rows& rows, int32_t tiles_of_band, uint32_t flags, int32_t sms,
                       cudaStream_t stream) {
  return {stream, (flags & DUALGEMM_FLAG_PDL) != 0, sms,
          rows.most_blocks() * rows.matrices() * tiles_of_band};
}

dualgemm_status_t launch_kernel(const BandLaunch& launch, const void* kernel, void* params,
                                int32_t ctas_of_sm) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(launch.tiles, launch.sms * ctas_of_sm)));
  config.blockDim = dim3(kConvertThreads);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = launch.programmatic ? 1 : 0;
  void* arguments[] = {params};
  const cudaError_t error = cudaLaunchKernelExC(&config, kernel, arguments);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS
                              : fail_launch(error, "cudaLaunchKernelExC", launch.stream);
}

}  // namespace dualgemm
