// baseline.h -- what a program does that has no fused kernel: cuBLASLt multiplies, and a kernel computes
// the activation of the products in memory, if there is one. It gets the numbers of the library's own
// operands, and is verified and timed by the same methods. README.md describes it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dualgemm.h"
#include "measure.h"
#include "operands.h"
#include "product.h"

namespace bench {

// One way to compute the whole: all products in one GEMM, of two products with the weights B1 above B2, or in
// one each. Groups have such a GEMM each, one after the other, spread over several streams, or all in one
// call.
struct BaselineWay {
  OperandFormat format;
  int gemms;
  int streams = 1;
  bool grouped = false;
  bool into_c = false;             // the GEMM of one product writes C, and no kernel follows
  bool fast_accumulation = false;  // of FP8 operands

  // Returns "fp16, 1 GEMM", "fp16, 1 GEMM, 4 streams", "fp16, grouped GEMM" or "fp8, 1 GEMM, fast
  // accumulation".
  std::string text() const;
};

struct BaselineTime {
  BaselineWay way;
  Timing stream{}, graph{};
  std::string error = {};  // why there is no time
};

// A way that has been verified and may be timed, by the fastest of the algorithms that cuBLASLt proposes.
struct Baseline {
  BaselineWay way;
  Launch launch = {};
  std::string error = {};  // why there is no launch
};

// Returns the ways that the device can take for the shape, or says why there are none. `library` is null
// where there is none.
std::vector<BaselineWay> baseline_ways(const lt::Library* library, const Shape& shape,
                                       const Epilogue& epilogue, const dualgemm_device_t& device,
                                       std::string* why_none);

// Prepares each way to compute the input sets of `workload`, whose operands these are, and verifies it. What
// goes wrong is said in the result.
std::vector<Baseline> prepare_baselines(const lt::Library& library, Workload* workload,
                                        SharedOperands* operands, const std::vector<BaselineWay>& ways,
                                        int samples);

// Takes the fastest of the algorithms that cuBLASLt proposes; `time` takes a number of repeats and returns
// microseconds. Throws std::runtime_error where none runs.
void tune(Product* product, const std::function<double(int repeats)>& time);

// Returns the fastest that has a time, or null.
const BaselineTime* fastest(const std::vector<BaselineTime>& times);

}  // namespace bench
