// operands.h -- the operands of the benchmark's input sets as others take them: dequantised, in FP8 or in 16
// bits, or with the weights of both products in one tensor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dualgemm.h"
#include "measure.h"
#include "product.h"
#include "test/support/device_memory.h"

namespace bench {

inline size_t count(int64_t elements) { return static_cast<size_t>(elements); }

// The type of a GEMM's products, and of its operands where these are dequantised to 16 bits.
dualgemm_dtype_t dtype_of(OperandFormat format);

// What the products of operands in this format are multiplied by. In FP8 the factor of A is missing, and 2 to
// kExponentOfB, which all rows of the weights have in common: factors of whole tensors, as a GEMM in FP8
// takes.
float factor_of_products(OperandFormat format);

// The operands of one input set, all problems one after the other: B1 above B2 for each, if there is a B2.
struct Operands {
  Operands(size_t a_bytes, size_t b_bytes, size_t scale_bytes)
      : a_copy(a_bytes), b(b_bytes), b_scales(scale_bytes), a(a_copy.data()) {}
  dualgemm_test::DeviceArray<uint8_t> a_copy, b, b_scales;
  const void *a, *a_scales = nullptr;
};

// At most so many bytes are dequantised, as of the library's own operands (inputs.h).
inline constexpr double kMostOperandBytes = 16e9;

// Returns the bytes of those of one input set.
double operand_bytes(const Shape& shape, OperandFormat format);

// Returns those of an input set in fp16 or bf16. An A of 16 bits, whose type this is then, stays where it is.
// The rows of an A in FP8 get one factor, kFactorOfA.
std::unique_ptr<Operands> dequantised(const Shape& shape, const InputSet& set, dualgemm_dtype_t dtype);

// Those of all input sets in one format, or of as many as take 16 GB; all that multiply them share these.
class OperandSets {
 public:
  OperandSets(const Workload& workload, OperandFormat format);

  // Returns those of the input set whose C this is.
  const Operands& of(const void* c) const { return *operands_[place_.at(c)]; }

 private:
  std::vector<std::unique_ptr<Operands>> operands_;
  std::unordered_map<const void*, size_t> place_;
};

// Those of a workload in each format, made when they are first asked for.
class SharedOperands {
 public:
  explicit SharedOperands(const Workload& workload) : workload_(&workload) {}
  std::shared_ptr<const OperandSets> in(OperandFormat format) {
    std::shared_ptr<const OperandSets>& sets = sets_[format];
    if (sets == nullptr) sets = std::make_shared<OperandSets>(*workload_, format);
    return sets;
  }

 private:
  const Workload* workload_;
  std::map<OperandFormat, std::shared_ptr<const OperandSets>> sets_;
};

}  // namespace bench
