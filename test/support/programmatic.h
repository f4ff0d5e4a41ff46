// programmatic.h -- the configuration of a launch that may start before what precedes it in its stream
// has ended.
#pragma once

#include <cuda_runtime_api.h>

namespace dualgemm_test {

class ProgrammaticLaunch {
 public:
  ProgrammaticLaunch(unsigned blocks, unsigned threads, cudaStream_t stream = nullptr) {
    attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute_.val.programmaticStreamSerializationAllowed = 1;
    config_.gridDim = dim3(blocks);
    config_.blockDim = dim3(threads);
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
  }
  ProgrammaticLaunch(const ProgrammaticLaunch&) = delete;
  ProgrammaticLaunch& operator=(const ProgrammaticLaunch&) = delete;
  const cudaLaunchConfig_t& config() const { return config_; }

 private:
  cudaLaunchAttribute attribute_ = {};
  cudaLaunchConfig_t config_ = {};
};

}  // namespace dualgemm_test
