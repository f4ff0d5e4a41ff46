// handlers.h -- the functions that perform the operations, one for each line of decode/operations.def.
#pragma once

#include "sim/decode/program.h"

namespace sim {

struct Exec;
using Handler = void (*)(Exec& x, const Inst& inst);

namespace op {

#define X(name) void name(Exec& x, const Inst& inst);
#include "sim/decode/operations.def"
#undef X

}  // namespace op

inline constexpr Handler kHandlers[] = {
// The array is indexed by Operation.
#define X(name) op::name,
#include "sim/decode/operations.def"
#undef X
};

}  // namespace sim
