// siblings.h -- what stands beside the weights that are read. Whatever belongs to a weight may change what it
// means; so nothing of that kind is left out in silence.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// Refuses every tensor under a stem (STEM.x, of safetensors STEM_x, too) that is not among those used.
// Refuses others that a word in their names says to change the weights or their activations, if they belong
// to a module around a stem, to one beside it that is no other weight, or to an adapter of it. Refuses
// every entry of the metadata that is about a stem or about quantisation and was not read. Throws
// FormatError with its name, and with what is known of it.
void check_siblings(const Tensors& tensors, const std::vector<std::string>& stems,
                    const std::set<std::string>& used);

// Names of all others with this beginning (of experts, with that of the module around them), and of the
// entries: what was not read.
std::vector<std::string> others(const Tensors& tensors, const std::string& before,
                                const std::set<std::string>& used);

}  // namespace checkpoint
