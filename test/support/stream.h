// stream.h -- a CUDA stream of its own for a test, destroyed with it.
#pragma once

#include <cuda_runtime_api.h>

#include "support/device_memory.h"

namespace dualgemm_test {

class Stream {
 public:
  Stream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace dualgemm_test
