// linear.h -- one linear layer of a checkpoint: what a launch of one product multiplies A with.
#pragma once

#include <string>
#include <vector>

#include "example/checkpoint/checkpoint.h"

namespace checkpoint {

struct Linear : Layer {
  std::vector<Matrix> weights;  // one for every expert
};

// What the ranks of a tensor-parallel layer share: each has rows of the weight, and so columns of C (N), or
// columns of both A and the weight (K), and the sum of all ranks' C is the layer's. Then rank 0 alone has the
// bias.
enum class Cut { kN, kK };

// The weight of this name, whichever layer it is of. Experts are those of one tensor. Throws FormatError.
Linear find_linear(const Tensors& tensors, const std::string& name, Cut cut, const Choice& choice);

// The down projection behind the gate that find_mlp takes; ranks share K. Its experts are those of the
// gate, and it multiplies what `mlp` gives. Throws FormatError. What was read stands no longer among the
// others of `mlp`.
Linear find_down(const Tensors& tensors, const Choice& choice, Mlp& mlp);

}  // namespace checkpoint
