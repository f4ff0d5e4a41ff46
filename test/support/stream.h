// stream.h -- a CUDA stream, and a graph of what was put into one; each is destroyed with its object.
#pragma once

#include <cuda_runtime_api.h>

#include "test/support/device_memory.h"

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

// What `enqueue` puts into a stream becomes a graph, and is not run.
class Captured {
 public:
  template <class Enqueue>
  explicit Captured(const Enqueue& enqueue) {
    check_cuda(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    enqueue(stream_.get());
    check_cuda(cudaStreamEndCapture(stream_.get(), &graph_), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Captured() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  void replay() const {
    check_cuda(cudaGraphLaunch(executable_, stream_.get()), "cudaGraphLaunch");
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }

 private:
  const Stream stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace dualgemm_test
