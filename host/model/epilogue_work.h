// epilogue_work.h -- how many instructions a general epilogue (kernel/epilogue/general.cuh) issues for a
// result, step by step, for the cost model. They were counted in the machine code that ptxas 13.0 makes of
// m256n128k256_general, on the path of a full tile. They were counted for 16 results of a lane, which such an
// epilogue finishes at a time, or, where the code is a loop over results, for one of them.
#pragma once

#include <cstdint>

#include "kernel/epilogue/kinds.h"

namespace dualgemm::work {

// On 10.x a lane of a general epilogue finishes this many results at a time: neighbouring columns of a row of
// C, or with swap A/B neighbouring rows of a column. On 9.0 a lane finishes eight. The model takes the same
// instructions for a result there.
inline constexpr int32_t kGeneralChunk = 16;

// The rate of special functions was measured in a plain SwiGLU, which executes 375 other instructions beside
// 64 special functions, two for each of 32 results. The model assumes that a special function hides as many
// instructions in any epilogue.
inline constexpr double kCoveredBySpecial = 375 / 64.0;

// Counts the instructions for one result.
struct Instructions {
  double all;
  double fp64 = 0;  // those of `all` that the fp64 units compute
};
constexpr double of_chunk(int32_t instructions) { return static_cast<double>(instructions) / kGeneralChunk; }

// The loop over chunks, both alphas, and the branches: those around steps that a launch does not ask for, and
// those to the type of C.
inline constexpr double kFrame = of_chunk(165);

constexpr double activation_instructions(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kSwiglu: return of_chunk(198);
    case ActivationKind::kSwigluStep: return of_chunk(197);
    case ActivationKind::kGegluTanh: return of_chunk(162);
    case ActivationKind::kGegluErf: return of_chunk(388);
    case ActivationKind::kReglu: return of_chunk(33);
    case ActivationKind::kGlu: return of_chunk(81);
    case ActivationKind::kSitu: return of_chunk(708);
  }
  return 0;
}

// With EXACT_ACT a loop takes one result at a time. The counts are those of the short paths through a
// division and through the functions of fp64.
constexpr Instructions exact_instructions(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kSwiglu: return {137, 36};
    case ActivationKind::kSwigluStep: return {139, 37};
    case ActivationKind::kGegluTanh: return {130, 34};
    case ActivationKind::kGegluErf: return {219, 69};
    case ActivationKind::kReglu: return {56, 5};
    case ActivationKind::kGlu: return {117, 28};
    case ActivationKind::kSitu: return {287, 99};
  }
  return {0};
}

// Conversion and stores; for FP8 and NVFP4 also the encode scale, and for NVFP4 the factor of each block.
// Where a lane has a column of C, NVFP4 results are transposed by shuffles.
constexpr double output_instructions(CType c_type, bool swap_ab) {
  switch (c_type) {
    case CType::kFp32: return of_chunk(21);
    case CType::kFp8: return of_chunk(39);
    case CType::kNvfp4: return of_chunk(swap_ab ? 228 : 73);
    default: return of_chunk(22);
  }
}

inline constexpr double kBias = of_chunk(197);  // of one bias: load, comparison and branch for each column
inline constexpr double kARowScale = of_chunk(59);  // a load and two products for each result
inline constexpr double kCRowScale = of_chunk(52);
inline constexpr double kAmax = of_chunk(90);
inline constexpr double kBothD = of_chunk(73);  // of D1 and D2 together: conversion and stores
// The model takes half as many instructions for the loads and sums of a c_add as for D1 and D2.
inline constexpr double kCAdd = kBothD / 2;

}  // namespace dualgemm::work
