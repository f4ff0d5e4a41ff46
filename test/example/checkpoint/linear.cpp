#include "example/checkpoint/linear.h"

#include <algorithm>

#include "example/checkpoint/stored.h"

namespace checkpoint {

// Adds the matrices of one tensor. Of a tensor after the first says why it is not like that one.
static void add_weight(const Stored& stored, const Stored& first, bool numbered, Linear& linear) {
  const Planes &x = stored.planes, &y = first.planes;
  if (x.rows != y.rows || x.k != y.k || x.encoding != y.encoding || (numbered && x.experts != 1))
    refuse(*stored.tensor,
           "is not like " + printable(first.tensor->name) + ", which is " + describe(*first.tensor));
  for (uint64_t e = 0; e < x.experts; ++e) linear.weights.push_back(make_matrix(stored, e, 0, 0, 1, x.rows));
}

// Leaves this rank's part of K. A part begins where a block of factors does, and its rows are compact.
static void take_columns(const Choice& choice, const StoredTensor& first, int32_t k,
                         std::vector<Matrix>& matrices) {
  const Encoding encoding = matrices[0].encoding;
  const int32_t unit = encoding == Encoding::kGguf ? 64 : 32;
  if (k % (unit * choice.tp_size) != 0)
    refuse(first, "has K = " + std::to_string(k) + ", of which each of " + std::to_string(choice.tp_size) +
                      " ranks needs a multiple of " + std::to_string(unit));
  const int32_t columns = k / choice.tp_size * choice.tp_rank;
  const Planes before{encoding, 1, 1, static_cast<uint64_t>(columns), nullptr, nullptr};
  for (Matrix& matrix : matrices) {
    matrix.elements += before.element_bytes();
    if (matrix.factors) matrix.factors += before.factor_bytes();
    if (choice.tp_rank > 0) matrix.bias.clear();
  }
}

static void finish(const Stored& first, Cut cut, const Choice& choice, Linear& linear) {
  linear.layout = first.planes.transposed ? "transposed, one product" : "one product";
  linear.n = static_cast<int32_t>(first.planes.rows);
  linear.k = static_cast<int32_t>(first.planes.k);
  check_input_scales(linear.weights[0], linear.weights);
  check_biases(linear.weights);
  if (cut == Cut::kN) take_rows(choice, *first.tensor, linear.n, linear.weights);
  else take_columns(choice, *first.tensor, linear.k, linear.weights);
  (cut == Cut::kN ? linear.n : linear.k) /= choice.tp_size;
  check_extents(linear, *first.tensor);
}

Linear find_linear(const Tensors& tensors, const std::string& name, Cut cut, const Choice& choice) {
  const Weight weight = choose_weight(tensors, name);
  Linear linear{};
  linear.name = printable(name);
  linear.convention = weight.names->convention;
  Reader reader(tensors, *weight.names, &linear);
  const Stored stored = reader.read(weight.stem, false);
  add_weight(stored, stored, false, linear);
  reader.finish(choice.config, weight.stem.substr(0, weight.stem.rfind('.') + 1));
  finish(stored, cut, choice, linear);
  return linear;
}

Linear find_down(const Tensors& tensors, const Choice& choice, Mlp& mlp) {
  const Gate gate = choose_gate(tensors, choice.gate);
  Linear linear{};
  linear.name = printable(gate.label(gate.spelling->down));
  linear.convention = gate.names->convention;
  linear.first_expert = gate.first_expert;
  Reader reader(tensors, *gate.names, &linear);
  Stored first{};
  for (uint64_t e = gate.first_expert; e < std::max<uint64_t>(gate.end_expert, 1); ++e) {
    const Stored stored = reader.read(gate.stem(gate.spelling->down, e), false);
    if (e == gate.first_expert) first = stored;
    add_weight(stored, first, gate.numbered(), linear);
  }
  reader.finish(choice.config, gate.before);
  const int64_t given = int64_t{mlp.n} * choice.tp_size;
  if (static_cast<int64_t>(first.planes.k) != given || linear.weights.size() != mlp.gates.size())
    refuse(*first.tensor, "does not take what gate and up give, which is N = " + std::to_string(given) +
                              " of " + std::to_string(mlp.gates.size()) + " experts");
  finish(first, Cut::kK, choice, linear);
  // What one of both launches reads, the checkpoint has for this layer.
  linear.others.clear();
  std::erase_if(mlp.others, [&](const std::string& other) {
    return std::any_of(reader.used().begin(), reader.used().end(),
                       [&](const std::string& used) { return printable(used) == other; });
  });
  return linear;
}

}  // namespace checkpoint
