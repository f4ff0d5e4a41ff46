// problem.h -- a launch as the rules, the choice of an instance and the launch itself see it: the caller's
// numbers, and each tensor described once. host/arguments.cpp makes it. These are plain values: nothing here
// looks at what a pointer points at.
#pragma once

#include <cstdint>
#include <span>

#include "host/dualgemm.h"
#include "kernel/epilogue/kinds.h"

namespace dualgemm {

// This is one tensor of a launch, with the defaults resolved. Its rows are those of an operand or of C; a row
// of scale factors is a block of 128 rows of the operand, since the layout has no gaps between blocks.
struct Tensor {
  // Messages name the tensor and its arguments by these. There is no pitch_name where the layout says the
  // pitch.
  const char *name = nullptr, *pitch_name = nullptr, *stride_name = nullptr;
  const void* base = nullptr;
  int32_t problems = 0;         // that have such a tensor each
  int64_t stride = 0;           // elements from one problem to the next
  int64_t rows = 0, pitch = 0;  // of a problem; elements from one row to the next
  int64_t row_elements = 0;     // that a row has
  int32_t bits = 0;             // of an element; scale factors count in bytes
  int64_t most_rows = 0;        // that the device may find: more where it alone knows the rows of groups
  bool compact = false;         // the caller left the pitch to the library

  bool scale_factors() const { return pitch_name == nullptr; }
  int64_t bytes(int64_t elements) const { return elements * bits / 8; }
  // Counts the elements from the first one of a problem to the last.
  int64_t elements() const { return (rows - 1) * pitch + row_elements; }
};

// The tensors that a kernel reads are listed in the order in which they are checked and in which Params has
// their maps.
enum Input { kA, kB1, kB2, kSfa, kSfb1, kSfb2, kInputs };

struct Problem {
  dualgemm_args_t args;  // as passed, younger fields than the caller's at their defaults
  CType c_type;
  ActivationKind activation;
  int32_t problems;  // of the batch, or groups: as many B1, B2, SFB1, SFB2 there are
  bool empty;        // M == 0 or N == 0: succeed without looking any further
  Tensor inputs[kInputs];
  Tensor output;

  // K == 0 reads no input: what is said about them does not matter then.
  std::span<const Tensor> read_inputs() const { return {inputs, args.k > 0 ? size_t{kInputs} : 0}; }

  bool grouped() const { return args.group_mode != DUALGEMM_GROUP_NONE; }
  bool group_offsets() const { return args.group_mode == DUALGEMM_GROUP_OFFSETS; }
  // Returns the largest number of groups that can have rows at all.
  int32_t groups_with_rows() const { return args.m < args.groups ? args.m : args.groups; }
};

}  // namespace dualgemm
