// host.h -- the host side of the fixtures: device arrays, tensor maps, and what a run came to.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/defects/defects.h"
#include "support/device_memory.h"

namespace defects {

template <class T>
using DeviceArray = dualgemm_test::FilledArray<T, 0>;

// Waits for the device; right(i) is the value that out[i] should have.
template <class T, class Right>
Outcome outcome(const DeviceArray<T>& out, Right right) {
  Outcome result{cudaDeviceSynchronize(), true};
  if (result.error != cudaSuccess) return {result.error, false};
  const std::vector<T> values = out.host();
  for (size_t i = 0; i < values.size(); ++i) result.right = result.right && values[i] == right(i);
  return result;
}

// Calls run(d) with the defect as a constant, so that it can choose a kernel.
template <class Type, class Run, int... defects>
Outcome run_one(Type defect, Run run, std::integer_sequence<int, defects...>) {
  Outcome result{cudaErrorInvalidValue, false};
  const auto try_one = [&](auto constant) {
    if (defect == decltype(constant)::value) result = run(constant);
  };
  (try_one(std::integral_constant<Type, static_cast<Type>(defects)>()), ...);
  return result;
}

// Defines the subject of this name: run<d>() runs its kernel with defect d.
#define DEFECTS_SUBJECT(Type, subject, run)                                 \
  Outcome subject(Type defect) {                                            \
    return run_one(                                                         \
        defect, [](auto d) { return run<decltype(d)::value>(); },           \
        std::make_integer_sequence<int, static_cast<int>(Type::kCount)>()); \
  }

// Returns a map over rows of `width` bytes, loaded or stored in boxes.
inline CUtensorMap byte_map(void* base, uint64_t width, uint64_t rows, uint32_t box_width, uint32_t box_rows,
                            CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  const cuuint64_t dims[2] = {width, rows}, strides[1] = {width};
  const cuuint32_t box[2] = {box_width, box_rows}, steps[2] = {1, 1};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, dims, strides, box, steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

inline std::vector<uint32_t> counting(size_t n) {
  std::vector<uint32_t> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<uint32_t>(1000 + i);
  return values;
}

// Returns a whole number that bf16 holds.
inline uint16_t bf16(int value) {
  const float number = float(value);
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return uint16_t(bits >> 16);
}

inline float e2m1(int code) {
  constexpr float kValues[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  return kValues[code % 8];
}

// Returns rows that are constant along K: the code of a row is its number, and that of its tile, modulo 8.
inline std::vector<uint8_t> rows_of_codes(int rows, int bytes, int rows_of_tile) {
  std::vector<uint8_t> values(size_t(rows) * bytes);
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < bytes; ++i)
      values[size_t(row) * bytes + i] = uint8_t((row + row / rows_of_tile) % 8 * 0x11);
  return values;
}

}  // namespace defects
