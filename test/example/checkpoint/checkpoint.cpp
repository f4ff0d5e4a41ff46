// checkpoint.cpp -- from the tensors that names.cpp found to the matrices of gate and up: shapes checked,
// fused tensors taken apart by address alone, scales turned to one convention.

#include "example/checkpoint/checkpoint.h"

#include "example/checkpoint/names.h"
#include "example/checkpoint/numbers.h"

namespace checkpoint {
namespace {

constexpr uint64_t kMostExtent = uint64_t{1} << 30;  // of a tensor; N and K of a launch are an int32_t

// One tensor of elements, with all that belongs to it.
struct Stored {
  const StoredTensor* tensor;
  const StoredTensor* bias;
  const uint8_t *elements, *factors;
  uint64_t experts, rows, k;
  std::vector<double> scales, input_scales;  // the latter may be empty
};

uint64_t experts_of(const StoredTensor& tensor) {
  if (tensor.shape.size() != 2 && tensor.shape.size() != 3) refuse(tensor, "has neither 2 nor 3 dimensions");
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] == 0 || tensor.shape[i] > kMostExtent)
      refuse(tensor, "has " + std::to_string(tensor.shape[i]) + " as its dimension " + std::to_string(i) +
                         ", which is not 1 to 2^30");
  const uint64_t experts = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
  if (experts > kMostExperts) refuse(tensor, "has more than 1,024 experts");
  return experts;
}

// [e, columns, rows] as [e, rows, columns]. Two elements of a byte are neighbours along k in both.
const uint8_t* transpose(const StoredTensor& tensor, uint64_t experts, Mlp& mlp) {
  const uint64_t columns = tensor.shape[1], rows = tensor.shape[2];
  std::vector<uint8_t>& to = mlp.transposed.emplace_back(tensor.bytes.size());
  for (uint64_t e = 0; e < experts; ++e)
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t column = 0; column < columns; ++column)
        to[(e * rows + row) * columns + column] = tensor.bytes[(e * columns + column) * rows + row];
  return to.data();
}

void read_elements(const StoredTensor& elements, const StoredTensor& factors, Stored& stored, Mlp& mlp) {
  stored.experts = experts_of(elements);
  if (factors.dtype != "F8_E4M3") refuse(factors, "is not NVFP4, whose factors are F8_E4M3");
  const auto like = [&](size_t wide) {  // is dimension `wide` that of k, and are all others equal?
    if (factors.shape.size() != elements.shape.size()) return false;
    for (size_t i = 0; i < factors.shape.size(); ++i)
      if (elements.shape[i] != (i == wide ? 8 : 1) * factors.shape[i]) return false;
    return true;
  };
  const size_t last = elements.shape.size() - 1;
  const auto k_of = [&](size_t wide) {  // twice the bytes, before any of them is touched
    const uint64_t k = 2 * elements.shape[wide];
    if (k > kMostExtent) refuse(elements, "has K = " + std::to_string(k) + ", more than 2^30");
    return k;
  };
  if (like(last)) {
    stored.rows = elements.shape[last - 1];
    stored.k = k_of(last);
    stored.elements = elements.bytes.data();
    stored.factors = factors.bytes.data();
  } else if (last == 2 && like(1)) {
    stored.rows = elements.shape[2];
    stored.k = k_of(1);
    stored.elements = transpose(elements, stored.experts, mlp);
    stored.factors = transpose(factors, stored.experts, mlp);
    mlp.layout = "transposed, ";
  } else {
    refuse(factors, "does not have a factor for each 16 elements of " + describe(elements));
  }
  check_factors(factors, stored.factors, stored.experts, stored.rows, stored.k);
}

Stored read_stored(const Tensors& tensors, const std::string& stem, const Names& names, Mlp& mlp) {
  const auto use = [&](const StoredTensor& tensor) -> const StoredTensor& {
    mlp.notes.push_back(printable(tensor.name) + "  " + describe(tensor));
    return tensor;
  };
  Stored stored{};
  const StoredTensor& elements = use(tensors.need(stem + names.elements));
  stored.tensor = &elements;
  const bool gguf = names.convention == Convention::kGguf;
  if (elements.dtype != (gguf ? "NVFP4" : "U8"))
    refuse(elements, elements.ggml_type ? "is ggml's type " + std::to_string(*elements.ggml_type) +
                                              ": of a GGUF's weights NVFP4 alone is read, type 40"
                                        : "is not NVFP4, which has bytes (U8) of two elements");
  if (gguf) {
    stored.experts = experts_of(elements);
    stored.rows = elements.shape[elements.shape.size() - 2];
    stored.k = elements.shape.back();
    stored.elements = elements.bytes.data();
    check_factors(elements, stored.elements, stored.experts, stored.rows, stored.k);
  } else {
    read_elements(elements, use(tensors.need(stem + names.factors)), stored, mlp);
  }
  const bool encode = names.convention == Convention::kCompressedTensors;
  if (const StoredTensor* scale = tensors.find(stem + names.scale))
    stored.scales = read_scales(use(*scale), stored.experts, encode);
  else if (gguf) stored.scales.assign(stored.experts, 1);  // llama.cpp multiplies by it where it is there
  else tensors.need(stem + names.scale);
  if (const StoredTensor* scale = tensors.find(stem + names.input_scale))
    stored.input_scales = read_scales(use(*scale), stored.experts, encode);
  if (const StoredTensor* scale = tensors.find(stem + names.pre_quant_scale))
    refuse(*scale,
           "is AWQ's: activations would have to be multiplied by it, each k by its own, before they "
           "are quantised, which is not done here");
  stored.bias = tensors.find(stem + names.bias);
  if (stored.bias) use(*stored.bias);
  return stored;
}

// n rows of one expert: `first` is the first of them, `step` the distance of two.
Matrix make_matrix(const Stored& stored, uint64_t expert, uint64_t first, uint64_t step, uint64_t n) {
  Matrix matrix{printable(stored.tensor->name), nullptr, 0, nullptr, 0, stored.scales[expert], {}, {}};
  const uint64_t row = expert * stored.rows + first;
  const uint64_t bytes = stored.factors ? stored.k / 2 : stored.k / 64 * 36;
  matrix.elements = stored.elements + row * bytes;
  matrix.row_bytes = static_cast<int64_t>(step * bytes);
  if (stored.factors) matrix.factors = stored.factors + row * (stored.k / 16);
  matrix.factor_row_bytes = static_cast<int64_t>(step * (stored.k / 16));
  if (!stored.input_scales.empty()) matrix.input_scale = stored.input_scales[expert];
  if (stored.bias) {
    const StoredTensor& bias = *stored.bias;
    if ((bias.dtype != "BF16" && bias.dtype != "F32") ||
        element_count(bias.name, bias.shape) != stored.experts * stored.rows)
      refuse(bias, "is not one BF16 or F32 for each row of " + describe(*stored.tensor));
    for (uint64_t i = 0; i < n; ++i) matrix.bias.push_back(read_bias(bias, row + i * step));
  }
  return matrix;
}

void add_fused(const Stored& both, bool interleaved, Mlp& mlp) {
  if (both.rows % 2 != 0) refuse(*both.tensor, "has an odd number of rows, so it is not gate and up");
  const uint64_t n = both.rows / 2;
  for (uint64_t e = 0; e < both.experts; ++e) {
    mlp.gates.push_back(make_matrix(both, e, 0, interleaved ? 2 : 1, n));
    mlp.ups.push_back(make_matrix(both, e, interleaved ? 1 : n, interleaved ? 2 : 1, n));
  }
  mlp.layout +=
      interleaved ? "gate and up in one tensor, row by row" : "gate and up in one tensor, gate first";
}

void add_pair(const Stored& gate, const Stored& up, Mlp& mlp) {
  if (gate.experts != up.experts || gate.rows != up.rows || gate.k != up.k)
    refuse(*up.tensor,
           "is not like " + printable(gate.tensor->name) + ", which is " + describe(*gate.tensor));
  for (uint64_t e = 0; e < gate.experts; ++e) {
    mlp.gates.push_back(make_matrix(gate, e, 0, 1, gate.rows));
    mlp.ups.push_back(make_matrix(up, e, 0, 1, up.rows));
  }
}

// A rank has its part of the rows of gate and the same part of up's. To cut a fused tensor as if it were
// one matrix would give the first ranks all of gate and the last ones all of up.
void take_rank(Mlp& mlp, const StoredTensor& first, const Choice& choice) {
  if (mlp.n % choice.tp_size != 0)
    refuse(first, "has N = " + std::to_string(mlp.n) + ", which is no multiple of " +
                      std::to_string(choice.tp_size) + " ranks");
  mlp.n /= choice.tp_size;
  const int64_t row = int64_t{mlp.n} * choice.tp_rank;
  for (std::vector<Matrix>* side : {&mlp.gates, &mlp.ups})
    for (Matrix& matrix : *side) {
      matrix.elements += row * matrix.row_bytes;
      if (matrix.factors) matrix.factors += row * matrix.factor_row_bytes;
      if (!matrix.bias.empty()) matrix.bias = {matrix.bias.begin() + row, matrix.bias.begin() + row + mlp.n};
    }
}

// One launch adds a bias in all groups or in none.
void check_biases(const std::vector<Matrix>& matrices) {
  for (const Matrix& matrix : matrices)
    if (matrix.bias.empty() != matrices[0].bias.empty())
      throw FormatError((matrix.bias.empty() ? matrix : matrices[0]).name + ": has no bias, but others do");
}

// Either all have an input scale or none has. A checkpoint may lack that of an expert which calibration
// never reached; what to quantise its rows with is then nobody's knowledge.
void check_input_scales(const Mlp& mlp) {
  const Matrix& first = mlp.gates[0];
  for (const std::vector<Matrix>* side : {&mlp.gates, &mlp.ups})
    for (const Matrix& matrix : *side)
      if (matrix.input_scale.has_value() != first.input_scale.has_value()) {
        const bool here = matrix.input_scale.has_value();
        throw FormatError((here ? first : matrix).name + ": has no input scale, but " +
                          (here ? matrix : first).name + " has one");
      }
}

}  // namespace

Mlp find_mlp(const Tensors& tensors, const Choice& choice) {
  const Gate gate = choose_gate(tensors, choice.gate);
  const bool fused = gate.spelling->up == nullptr;
  Mlp mlp{};
  mlp.gate = printable(gate.label());
  mlp.convention = gate.names->convention;
  if (!fused && choice.interleaved)
    refuse(*gate.first, "is a gate of its own: its rows are not interleaved with others");
  if (gate.experts > kMostExperts) refuse(*gate.first, "is one of more than 1,024 experts");
  Stored first{};
  for (uint64_t e = 0; e < std::max<uint64_t>(gate.experts, 1); ++e) {
    const Stored stored = read_stored(tensors, gate.stem(gate.spelling->gate, e), *gate.names, mlp);
    if (e == 0) first = stored;
    if (stored.rows != first.rows || stored.k != first.k || (gate.experts && stored.experts != 1))
      refuse(*stored.tensor,
             "is not like " + printable(first.tensor->name) + ", which is " + describe(*first.tensor));
    if (fused) add_fused(stored, choice.interleaved, mlp);
    else add_pair(stored, read_stored(tensors, gate.stem(gate.spelling->up, e), *gate.names, mlp), mlp);
  }
  if (!fused) mlp.layout += "gate and up in tensors of their own";
  mlp.n = static_cast<int32_t>(fused ? first.rows / 2 : first.rows);
  mlp.k = static_cast<int32_t>(first.k);
  take_rank(mlp, *first.tensor, choice);
  check_input_scales(mlp);
  check_biases(mlp.gates);
  check_biases(mlp.ups);
  // What this library asks for, with compact tensors and a BF16 output.
  if (mlp.k % 32 != 0) refuse(*first.tensor, "has K = " + std::to_string(mlp.k) + ", no multiple of 32");
  if (mlp.n % 8 != 0)
    refuse(*first.tensor, "gives a rank N = " + std::to_string(mlp.n) + ", no multiple of 8");
  return mlp;
}

}  // namespace checkpoint
