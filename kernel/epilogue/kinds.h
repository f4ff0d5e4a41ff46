// kinds.h -- which outputs and activations there are, for everyone who chooses among instances. This is plain
// C++.
#pragma once

#include <cstdint>

namespace dualgemm {

// This is the element type of C. The numbers are those of the public interface (DUALGEMM_DTYPE_*), asserted
// in host/.
enum class CType : int32_t { kBf16 = 0, kFp16 = 1 };

// An activation is f(gate) * h(up). The numbers are those of DUALGEMM_ACTIVATION_*; the list in
// activation.cuh says for which of them there are kernels.
enum class ActivationKind : int32_t { kSwiglu = 0, kGegluTanh = 1, kGegluErf = 2, kReglu = 3, kGlu = 4 };

// The machine code of an activation may take this much for one result; test/sass checks it, and host/ prices
// it.
struct ActivationCost {
  double ex2, rcp, other_special;  // operations of the special-function unit
  double multiplications;          // the two by alpha1 and alpha2 included
  constexpr double special() const { return ex2 + rcp + other_special; }
};

// This describes the epilogue of an instance.
struct EpilogueKind {
  CType c_type;
  const char* c_name;  // "fp16"
  int32_t c_bits;      // of one element of C
  ActivationKind activation;
  const char* activation_name;
  ActivationCost cost;  // of one result
  int32_t store_bytes;  // of a row of C: what one store of a warp writes side by side
};

// Layout says where a lane's elements lie in C (fragment.cuh).
template <class Traits, class Layout>
consteval EpilogueKind epilogue_kind() {
  using Output = typename Traits::Output;
  using Activation = typename Traits::Activation;
  return {Output::kType,
          Output::kName,
          Output::kBits,
          Activation::kKind,
          Activation::kName,
          Activation::kCost,
          Output::template Writer<Traits, Layout>::kStoreBytes};
}

}  // namespace dualgemm
