// bands.h -- launches kernels whose CTAs take tile after tile. In most of them a tile is a piece of a band,
// which is a block of 128 rows: in those that move factors or quantise, and in the one that prepares A
// (host/launch/prepare_a.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "host/common/rows.h"
#include "kernel/convert/params.h"

namespace dualgemm {

BandParams band_params(const Rows& rows, int32_t tiles_of_band);

// What all launches of a call share.
struct BandLaunch {
  cudaStream_t stream;
  bool programmatic;  // the kernel may start before the preceding grid has ended
  int32_t sms;
  int64_t tiles;
};
// Counts the SMs of the current device, which has to be one that the library is built for.
dualgemm_status_t query_sms(int32_t* sms);
BandLaunch band_launch(const Rows& rows, int32_t tiles_of_band, uint32_t flags, int32_t sms,
                       cudaStream_t stream);

// Launches a kernel with its one argument. CTAs take tile after tile, so a launch has no more of them than
// run at once.
dualgemm_status_t launch_kernel(const BandLaunch& launch, const void* kernel, void* params,
                                int32_t ctas_of_sm);
template <class Params>
dualgemm_status_t launch_bands(const BandLaunch& launch, void (*kernel)(Params), Params params,
                               int32_t ctas_of_sm) {
  return launch_kernel(launch, reinterpret_cast<const void*>(kernel), &params, ctas_of_sm);
}

}  // namespace dualgemm
