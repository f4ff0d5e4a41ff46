// twin.h -- functions that come in pairs: one runs on the device, and its twin works on host memory.
#pragma once

#include "host/torch/tensor.h"

namespace dualgemm::torch_ops {

// Takes the rows out of a call. Without rows the functions check flags, enumerators and numbers, and look at
// no address.
template <typename Args>
void drop_rows(Args& args) {
  if constexpr (requires { args.tokens; }) args.tokens = 0;
  else args.rows = 0;
  if constexpr (requires { args.group_mode; }) {
    if (args.group_mode == DUALGEMM_GROUP_MASKED && args.groups == 0) args.group_mode = DUALGEMM_GROUP_NONE;
  }
}

// Calls the function for the place where a tensor lies. For a tensor without memory (meta) it only checks
// what that function would refuse without rows.
template <typename Args>
void run_twin(const Tensor& tensor, const Args& args,
              dualgemm_status_t on_device(const Args*, dualgemm_stream_t),
              dualgemm_status_t on_host(const Args*)) {
  switch (place_of(tensor)) {
    case Place::kMeta: {
      Args without_rows = args;
      drop_rows(without_rows);
      return check(on_host(&without_rows));
    }
    case Place::kCpu: return check(on_host(&args));
    case Place::kCuda: {
      const OnDevice device(tensor);
      return check(on_device(&args, device.stream()));
    }
  }
}

}  // namespace dualgemm::torch_ops
