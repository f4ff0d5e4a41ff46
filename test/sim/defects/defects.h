// defects.h -- the fixtures: small kernels, each of which exists correct (kNone) and with one defect planted
// in one line. Every function builds its inputs, runs the kernel with the defect it is given and says whether
// the device ran to its end and whether every value was right. defects.def lists the defects.
#pragma once

#include <driver_types.h>

namespace defects {

struct Outcome {
  cudaError_t error;
  bool right;
};

#define SUBJECT(Type, subject) enum class Type { kNone,
#define DEFECT(name, ...) name,
#define DEFECT_UNDER(mode, seed, name, ...) name,
#define WRONG(name, ...) name,
#define CORRECT(name, text) name,
#define END(Type, subject) \
  kCount                   \
  }                        \
  ;                        \
  Outcome subject(Type defect);
#include "sim/defects/defects.def"

}  // namespace defects
