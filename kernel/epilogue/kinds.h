// kinds.h -- which outputs and activations there are, for everyone who chooses among instances. It is plain
// C++.
#pragma once

#include <cstdint>

#include "kernel/epilogue/list.h"

namespace dualgemm {

// This is the element type of C, of another tensor of the epilogue, of A, or of B. The numbers are those of
// the public interface (DUALGEMM_DTYPE_*), as host/launch/arguments.cpp asserts. C has one of the first
// kCTypes; only B has kMxfp4.
enum class CType : int32_t { kBf16 = 0, kFp16 = 1, kFp32 = 2, kNvfp4 = 3, kFp8 = 4, kMxfp4 = 5 };
inline constexpr int32_t kCTypes = 5;

// An activation is f(gate) * h(up); activation.cuh has the formulas. The numbers are those of
// DUALGEMM_ACTIVATION_*.
enum class ActivationKind : int32_t {
  kSwiglu = 0,
  kGegluTanh = 1,
  kGegluErf = 2,
  kReglu = 3,
  kGlu = 4,
  kSwigluStep = 5,
  kSitu = 6
};
inline constexpr int32_t kActivations = 7;

// The activation of a launch with one product is C = f(g), and kNone leaves g as it is. kRelu2 is max(g,
// 0)^2. The numbers are those of DUALGEMM_LINEAR_ACTIVATION_*.
enum class LinearActivation : int32_t {
  kNone = 0,
  kSilu = 1,
  kGeluTanh = 2,
  kGeluErf = 3,
  kRelu = 4,
  kRelu2 = 5
};
inline constexpr int32_t kLinearActivations = 6;

// Returns the operations of the special-function unit that one result takes.
constexpr int32_t special_functions(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kReglu: return 0;
    case ActivationKind::kSwiglu:
    case ActivationKind::kGegluTanh:
    case ActivationKind::kGegluErf:
    case ActivationKind::kGlu:
    case ActivationKind::kSwigluStep: return 2;  // ex2 and rcp
    case ActivationKind::kSitu: return 6;        // those of a sigmoid and of two tanh
  }
  return 0;  // there is no other activation
}

// Describes one type of C that an instance writes.
struct OutputKind {
  CType type;
  const char* name;     // "fp16"
  int32_t bits;         // of one element
  int32_t store_bytes;  // of a row: what one store of a warp writes side by side
};

// Describes the epilogue of an instance. A general one computes whatever a launch says, in any type; a plain
// one computes a plain SwiGLU, or with one product alpha1 acc1, in one type.
struct EpilogueKind {
  bool general;
  int32_t output_count;
  OutputKind outputs[kCTypes];

  // Returns the output of this type; null if the instance does not write the type.
  constexpr const OutputKind* output(CType type) const {
    for (int32_t i = 0; i < output_count; ++i)
      if (outputs[i].type == type) return &outputs[i];
    return nullptr;
  }
};

// Layout says where a lane's elements lie in C (fragment.cuh).
template <class Traits, class Layout, class Output>
consteval OutputKind output_kind() {
  return {Output::kType, Output::kName, Output::kBits, Output::template Writer<Traits, Layout>::kStoreBytes};
}
template <class Traits, class Layout, class... Output>
consteval EpilogueKind epilogue_kind(List<Output...>) {
  return {Traits::Arithmetic::kGeneral, sizeof...(Output), {output_kind<Traits, Layout, Output>()...}};
}

}  // namespace dualgemm
