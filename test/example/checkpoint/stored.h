// stored.h -- a tensor of weights with all that belongs to it, as the file has it, and its rows as matrices.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/numbers.h"

namespace checkpoint {

// One tensor of elements, with all that belongs to it.
struct Stored {
  const StoredTensor* tensor;
  const StoredTensor* bias;
  Planes planes;
  std::vector<TwoScales> scales, input_scales;  // the latter may be empty
};

// Reads tensors by their stems, and remembers which, for the notes of `layer`.
class Reader {
 public:
  Reader(const Tensors& tensors, const Names& names, Layer* layer)
      : tensors_(tensors), names_(names), layer_(*layer) {}

  // A tensor that is `fused` has gate and up, which may have a scale each.
  Stored read(const std::string& stem, bool fused);
  // After all was read: refuses what belongs to it and was not. Lists what else begins with `before`.
  void finish(const Config& config, const std::string& before);
  const std::set<std::string>& used() const { return used_; }

 private:
  const StoredTensor& use(const StoredTensor& tensor);
  void read_gguf(Stored& stored, const std::string& stem, bool fused);
  void read_rows(Stored& stored, const std::string& stem, bool fused);

  const Tensors& tensors_;
  const Names& names_;
  Layer& layer_;
  std::vector<std::string> stems_;
  std::set<std::string> used_;
};

// n rows of one expert: `first` is the first of them, `step` the distance of two, `side` 0 for gate, 1 for
// up. Of a tensor that is not fused both sides have the same scale.
Matrix make_matrix(const Stored& stored, uint64_t expert, size_t side, uint64_t first, uint64_t step,
                   uint64_t n);

// One launch adds a bias in all groups or in none.
void check_biases(const std::vector<Matrix>& matrices);

// Either all have an input scale or none has. A checkpoint may lack that of an expert which calibration
// never reached; what to quantise its rows with is then nobody's knowledge.
void check_input_scales(const Matrix& first, const std::vector<Matrix>& matrices);

// Leaves this rank's part of the n rows of each matrix.
void take_rows(const Choice& choice, const StoredTensor& first, int32_t n, std::vector<Matrix>& matrices);

// Refuses what this library does not take as compact tensors with a BF16 output.
void check_extents(const Layer& layer, const StoredTensor& first);

}  // namespace checkpoint
