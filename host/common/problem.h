// problem.h -- a launch as the rules, the choice of an instance and the launch itself see it: the caller's
// numbers, and each tensor described once. host/launch/arguments.cpp makes it. These are plain values: no
// function here reads memory behind a pointer of the caller.
#pragma once

#include <bit>
#include <cstdint>

#include "host/include/dualgemm.h"
#include "kernel/epilogue/kinds.h"
#include "kernel/plan.h"

namespace dualgemm {

// One tensor of a launch, with the defaults resolved. Its rows are those of an operand or of C; a row of
// scale factors is a block of 128 rows of the operand. A vector, or a single number, is one row.
struct Tensor {
  // Messages call the tensor and its arguments by these names. There is no pitch_name where rows follow each
  // other without a gap.
  const char *name = nullptr, *pitch_name = nullptr, *stride_name = nullptr;
  const void* base = nullptr;   // null: the launch has no such tensor
  int32_t problems = 0;         // that have such a tensor each
  int64_t stride = 0;           // elements from one problem to the next
  int64_t rows = 0, pitch = 0;  // of a problem; elements from one row to the next
  int64_t row_elements = 0;     // that a row has
  int32_t bits = 0;             // of an element; scale factors count in bytes
  int32_t alignment = 16;       // bytes, of the base, the pitch and the stride
  int64_t most_rows = 0;        // that the device may find: above `rows` where only it knows the groups
  bool compact = false;         // the caller left the pitch to the library

  bool given() const { return base != nullptr; }
  bool has_pitch() const { return pitch_name != nullptr; }
  int64_t bytes(int64_t elements) const { return elements * bits / 8; }
  // Counts the elements from the first element of a problem to its last.
  int64_t elements() const { return (rows - 1) * pitch + row_elements; }
  // Counts the bytes from the first byte of the first problem to the last byte of the last problem.
  int64_t all_bytes() const { return bytes((problems - 1) * stride + elements()); }
  uintptr_t last_byte() const {
    return reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(all_bytes()) - 1;
  }
  // Returns the stride as the kernel takes it: 0 where all problems share the tensor.
  int64_t shared_stride() const { return problems > 1 ? stride : 0; }
};

// The tensors of a list that the launch has: the bit of each is set. A launch goes through them several
// times, and has few of the tensors that it may have.
class GivenTensors {
 public:
  class Iterator {
   public:
    Iterator(const Tensor* all, uint32_t left) : all_(all), left_(left) {}
    const Tensor& operator*() const { return all_[std::countr_zero(left_)]; }
    Iterator& operator++() {
      left_ &= left_ - 1;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return left_ != other.left_; }

   private:
    const Tensor* all_;
    uint32_t left_;
  };

  GivenTensors(const Tensor* all, uint32_t given) : all_(all), given_(given) {}
  Iterator begin() const { return {all_, given_}; }
  Iterator end() const { return {all_, 0}; }

 private:
  const Tensor* all_;
  uint32_t given_;
};

// The tensors that a kernel reads are listed in the order in which they are checked. The first six have to
// be given, except SFA for an A that is not NVFP4, and B2 and SFB2 with one product. Params has maps of these
// six in this order.
enum Input {
  kA,
  kB1,
  kB2,
  kSfa,
  kSfb1,
  kSfb2,
  kMaps,
  kAlpha1 = kMaps,
  kAlpha2,
  kARowScale,
  kB1RowExponent,
  kB2RowExponent,
  kBias1,
  kBias2,
  kCRowScale,
  kCAdd,
  kCGlobalScale,
  kRowsOfGroups,
  kInputs
};

// The tensors that a kernel writes. All except kAmax become zero where K == 0.
enum Output { kC, kSfc, kD1, kD2, kAmax, kOutputs };

// The first field that asks for the general epilogue, and what it says: a number or an address.
struct GeneralRequest {
  const char* field = nullptr;  // null: there is none
  double number = 0;
  const void* address = nullptr;
};

struct Problem {
  dualgemm_args_t args;  // as passed; fields that the caller's release does not know have their defaults
  CType a_type, b_type, c_type;
  int32_t products;                    // 2, or 1
  ActivationKind activation;           // of two products
  LinearActivation linear_activation;  // of one
  GeneralRequest general_request;
  int32_t problems;  // of the batch, or groups: as many B1, B2, SFB1, SFB2 there are
  bool empty;        // M == 0 or N == 0: succeed without looking any further
  Tensor inputs[kInputs];
  Tensor outputs[kOutputs];
  uint32_t inputs_given = 0, outputs_given = 0;  // the bit of a tensor is set where it has an address
  Tensor workspace;  // neither: room in which a pass leaves A for an instance that takes it so

  // With K == 0 no input is read, so what the arguments say about inputs does not matter.
  GivenTensors read_inputs() const { return {inputs, args.k > 0 ? inputs_given : 0}; }
  GivenTensors written_outputs() const { return {outputs, outputs_given}; }

  bool packed_a() const { return a_type == CType::kNvfp4; }
  // Returns how many elements of B share a factor.
  int32_t b_block() const { return b_type == CType::kMxfp4 ? kMxBlock : kSfBlock; }
  bool general() const { return general_request.field != nullptr; }
  bool grouped() const { return args.group_mode != DUALGEMM_GROUP_NONE; }
  bool group_offsets() const { return args.group_mode == DUALGEMM_GROUP_OFFSETS; }
  // Returns the largest number of groups that can have rows at all.
  int32_t groups_with_rows() const { return args.m < args.groups ? args.m : args.groups; }
};

}  // namespace dualgemm
