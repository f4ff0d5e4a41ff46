// moe.h -- the calls around the launches of a layer of experts (MoE), as their rules, launches and twins on
// the host see them. They make the rows of the experts out of the router's choices, put an A of 16 bits in
// the order of these rows, and sum the rows of a token.
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

struct Permutation {
  dualgemm_moe_permute_args_t args;
  bool empty;     // nothing to do: no rule about tensors was looked at
  int32_t count;  // of choices, which is also the number of rows
};

struct Gathering {
  dualgemm_moe_gather_args_t args;
  bool empty;
  Tensor x, out;
  int32_t tiles;  // of the kernel
};

struct Combination {
  dualgemm_moe_combine_args_t args;
  bool empty;
  int32_t rows;  // of C
  Tensor c, add, out;
  int32_t tiles;  // of the kernel
};

// Return a structure as the initialiser of its type sets it.
dualgemm_moe_permute_args_t default_moe_permute_args();
dualgemm_moe_gather_args_t default_moe_gather_args();
dualgemm_moe_combine_args_t default_moe_combine_args();

// Check all rules except the one about the device, in the order of the manual.
dualgemm_status_t validate(const dualgemm_moe_permute_args_t* args, Permutation* permutation);
dualgemm_status_t validate(const dualgemm_moe_gather_args_t* args, Gathering* gathering);
dualgemm_status_t validate(const dualgemm_moe_combine_args_t* args, Combination* combination);

}  // namespace dualgemm
