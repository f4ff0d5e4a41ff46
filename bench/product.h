// product.h -- one GEMM by cuBLASLt: D = A B^T of fp16, bf16, NVFP4 or FP8 operands.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "cublaslt.h"

namespace bench {

enum class OperandFormat { kFp16, kBf16, kNvfp4, kFp8 };

constexpr const char* format_name(OperandFormat format) {
  constexpr const char* kNames[] = {"fp16", "bf16", "nvfp4", "fp8"};
  return kNames[static_cast<int>(format)];
}

// Returns the bits of an element, without those of factors.
constexpr int bits_of(OperandFormat format) {
  return format == OperandFormat::kNvfp4 ? 4 : format == OperandFormat::kFp8 ? 8 : 16;
}

// A [m, k] and B [n, k] are compact, of D [m, n], which is fp16 or bf16, the rows are d_pitch elements apart.
// Problems of a batch are as many elements apart as the strides say.
struct ProductShape {
  OperandFormat format;
  bool to_fp16;  // of NVFP4 and FP8 operands; D of others has their type
  int32_t m, n, k;
  int64_t d_pitch;
  uint32_t alignment;  // bytes, of every address
  int32_t batch = 1;
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  bool fast_accumulation = false;  // of FP8 operands: sums stay in the tensor cores
};

// D = alpha A B^T. NVFP4 operands have scale factors, in atoms of 128x4.
struct ProductOperands {
  const void *a, *b;
  void* d;
  const void *a_scales = nullptr, *b_scales = nullptr;
  float alpha = 1;
};

class Product {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{64} << 20;

  // Throws std::runtime_error where the library computes no such product on the current device.
  Product(const lt::Library& library, const ProductShape& shape);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  // The ways to compute it that the library proposes, the most promising first.
  int algorithms() const { return static_cast<int>(heuristics_.size()); }
  void use(int algorithm) { algorithm_ = static_cast<size_t>(algorithm); }

  // Returns a status of the library. The workspace has kWorkspaceBytes.
  int launch(const ProductOperands& x, void* workspace, cudaStream_t stream) const;

 private:
  void describe(const ProductShape& shape);
  void destroy();

  const lt::Library& library_;
  const bool scaled_;
  lt::MatmulDesc desc_ = nullptr;
  lt::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  lt::Preference preference_ = nullptr;
  std::vector<lt::Heuristic> heuristics_;
  size_t algorithm_ = 0;
};

}  // namespace bench
