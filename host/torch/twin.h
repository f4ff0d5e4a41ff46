// twin.h -- functions that come in pairs: one runs on the device, and its twin works on host memory.
#pragma once

#include "host/torch/tensor.h"

namespace dualgemm::torch_ops {

// Calls the function for the place where a tensor lies. For a tensor without memory (meta) it calls neither
// function.
template <typename Args>
void run_twin(const Tensor& tensor, const Args& args,
              dualgemm_status_t on_device(const Args*, dualgemm_stream_t),
              dualgemm_status_t on_host(const Args*)) {
  switch (place_of(tensor)) {
    case Place::kMeta: return;
    case Place::kCpu: return check(on_host(&args));
    case Place::kCuda: {
      const OnDevice device(tensor);
      return check(on_device(&args, device.stream()));
    }
  }
}

}  // namespace dualgemm::torch_ops
