// report.h -- what the program says of a checkpoint and of a launch.
#pragma once

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/verify.h"

namespace checkpoint {

// At most eight numbers.
std::string joined(const std::vector<double>& values);

// The tensors that were read, how they were read, and what beside them was not; `unread` are files.
void print_found(const Layer& layer, const std::vector<Matrix>& weights, const Choice& choice,
                 const std::vector<std::string>& unread);
void print_input_scales(const Sides& sides, const std::vector<double>& scales);
void print_activation(const Activation& activation, const std::string& note);
void print_verdict(const Verdict& verdict);

}  // namespace checkpoint
