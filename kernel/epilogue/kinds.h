// kinds.h -- which outputs and activations there are, for everyone who chooses among instances. This is plain
// C++.
#pragma once

#include <cstdint>

namespace dualgemm {

// This is the element type of C, of another tensor of the epilogue, or of A. The numbers are those of the
// public interface (DUALGEMM_DTYPE_*), asserted in host/.
enum class CType : int32_t { kBf16 = 0, kFp16 = 1, kFp32 = 2, kNvfp4 = 3, kFp8 = 4 };

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

// An activation takes so many operations of the special-function unit for one result.
constexpr int32_t special_functions(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kReglu: return 0;
    case ActivationKind::kSitu: return 6;  // ex2 and rcp of a sigmoid and of two tanh
    default: return 2;                     // ex2 and rcp
  }
}

// This describes the epilogue of an instance.
struct EpilogueKind {
  CType c_type;
  const char* c_name;   // "fp16"
  int32_t c_bits;       // of one element of C
  int32_t store_bytes;  // of a row of C: what one store of a warp writes side by side
  bool general;         // computes whatever the launch says; else a plain SwiGLU
};

// Layout says where a lane's elements lie in C (fragment.cuh).
template <class Traits, class Layout>
consteval EpilogueKind epilogue_kind() {
  using Output = typename Traits::Output;
  return {Output::kType, Output::kName, Output::kBits, Output::template Writer<Traits, Layout>::kStoreBytes,
          Traits::Arithmetic::kGeneral};
}

}  // namespace dualgemm
