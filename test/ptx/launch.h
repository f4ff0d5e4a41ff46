// launch.h -- what the tests of the wrappers share: device memory, judged launches that may end in a fault,
// tensor maps and data in which every misplaced word shows.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/device_memory.h"

namespace wrappers {

inline constexpr uint32_t kUntouched = 0xA5A5A5A5;

template <class T>
using DeviceArray = dualgemm_test::FilledArray<T, kUntouched & 0xFF>;

struct Outcome {
  cudaError_t error;
  std::string explanation;  // the simulator's, of a fault
  std::string findings;     // the judge's, but for advice
};

// Returns what becomes of the launches that `enqueue` makes, watched by every checker of the judge. A fault
// leaves the device usable for the next launch.
template <class Enqueue>
Outcome judged(Enqueue&& enqueue) {
  sim::JudgeOptions options;
  options.program = "ptx_test";
  sim::Judge judge(options, sim::shim::memory());
  sim::shim::set_judge(&judge);
  cudaError_t error = enqueue();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  Outcome outcome{error, sim::shim::last_fault_text(), ""};
  sim::shim::set_judge(nullptr);
  if (error != cudaSuccess) sim::shim::clear_fault();
  for (const sim::Report& report : judge.reports())
    if (report.severity != 'A') outcome.findings += sim::render(report, options.program);
  return outcome;
}

template <class... Parameters>
cudaError_t enqueue(const cudaLaunchConfig_t& config, void (*kernel)(Parameters...),
                    const std::type_identity_t<Parameters>&... arguments) {
  void* pointers[] = {const_cast<std::remove_const_t<Parameters>*>(&arguments)...};  // the launch only reads
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
}

template <class... Parameters>
Outcome run_blocks(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                   const std::type_identity_t<Parameters>&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  return judged([&] { return enqueue(config, kernel, arguments...); });
}

template <class... Parameters>
Outcome run(void (*kernel)(Parameters...), unsigned threads,
            const std::type_identity_t<Parameters>&... arguments) {
  return run_blocks(kernel, 1, threads, arguments...);
}

inline void require_end(const Outcome& outcome) {
  INFO(outcome.explanation);
  REQUIRE(outcome.error == cudaSuccess);
  CHECK(outcome.findings == "");
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned threads,
            const std::type_identity_t<Parameters>&... arguments) {
  require_end(run(kernel, threads, arguments...));
}

// That a phase is open shows in that a wait for it never ends, which the simulator proves and reports.
inline void check_waits_forever(const Outcome& outcome, const std::string& phase) {
  CHECK(outcome.error == cudaErrorLaunchTimeout);
  CHECK_THAT(outcome.explanation, dualgemm_test::contains("deadlock"));
  CHECK_THAT(outcome.explanation, dualgemm_test::contains(phase));
}

// This is one dimension of a tensor of 32-bit elements.
struct Axis {
  int64_t size;
  int64_t pitch;  // words from one to the next; 1 along the innermost
  uint32_t box;
};

// Returns a map of the tensor whose dimensions are `axes`, innermost first.
inline CUtensorMap map_words(const void* base, const std::vector<Axis>& axes,
                             CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                           &found) == cudaSuccess);
  REQUIRE(found == cudaDriverEntryPointSuccess);
  const auto encode = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  std::vector<cuuint64_t> dims, pitch;
  std::vector<cuuint32_t> box;
  for (const Axis& axis : axes) {
    dims.push_back(static_cast<cuuint64_t>(axis.size));
    if (dims.size() > 1) pitch.push_back(4 * static_cast<cuuint64_t>(axis.pitch));
    box.push_back(axis.box);
  }
  const std::vector<cuuint32_t> steps(axes.size(), 1);
  CUtensorMap map;
  REQUIRE(encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, static_cast<cuuint32_t>(axes.size()),
                 const_cast<void*>(base), dims.data(), pitch.data(), box.data(), steps.data(),
                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

// Returns a 3-D map of one matrix without gaps, in boxes of `box_rows` whole rows.
inline CUtensorMap map_rows(const void* base, uint32_t words, int64_t rows, uint32_t box_rows,
                            CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  return map_words(base, {{words, 1, words}, {rows, words, box_rows}, {1, rows * words, 1}}, swizzle);
}

// Returns the words of the box that begins at `at`, innermost first and without gaps; zero outside the
// tensor.
inline std::vector<uint32_t> box_at(const std::vector<uint32_t>& tensor, const std::vector<Axis>& axes,
                                    const std::vector<int32_t>& at) {
  size_t words = 1;
  for (const Axis& axis : axes) words *= axis.box;
  std::vector<uint32_t> box(words);
  for (size_t i = 0; i < words; ++i) {
    bool inside = true;
    int64_t from = 0;
    size_t rest = i;
    for (size_t d = 0; d < axes.size(); ++d) {
      const int64_t x = at[d] + static_cast<int64_t>(rest % axes[d].box);
      rest /= axes[d].box;
      inside &= x >= 0 && x < axes[d].size;
      from += x * axes[d].pitch;
    }
    if (inside) box[i] = tensor.at(static_cast<size_t>(from));
  }
  return box;
}

// Returns distinct words of all bit patterns, so that a word in the wrong place shows: every step can be
// undone.
inline std::vector<uint32_t> distinct_words(size_t n) {
  std::vector<uint32_t> words(n);
  for (size_t i = 0; i < n; ++i) {
    uint32_t word = 0x9E3779B1u * static_cast<uint32_t>(i + 1);
    word = 0x2C1B3C6Du * (word ^ word >> 15);
    words[i] = word ^ word >> 16;
  }
  return words;
}

}  // namespace wrappers
