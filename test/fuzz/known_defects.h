// known_defects.h -- what the fuzzer does not ask for, because the library is known to be wrong there. Each
// line goes when its defect does.
#pragma once

#include <cstdint>

namespace dualgemm_fuzz {

constexpr uint64_t kAddresses = (uint64_t{1} << 62) - 1;  // overlap of tensors 2^63 bytes apart, or at 2^64
constexpr uint32_t kLargestStructure = 4096;              // a larger struct_size is read to its end
constexpr int32_t kLargestMachine = 1 << 20;              // SMs: their product with clusters overflows
constexpr int64_t kLargestGrid = int64_t{1} << 31;        // CTAs of split-K, whose grid is cut to 32 bits
constexpr int32_t kMostFills = 4096;  // problems of K = 0 with gaps, each filled by a call

}  // namespace dualgemm_fuzz
