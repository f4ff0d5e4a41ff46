// wgmma_operands.h -- what a module decides about its wgmma.mma_async before it runs: whether shape, types
// and operands go together, and which registers the tensor core works on while the program goes on.
#pragma once

#include "sim/decode/program.h"

namespace sim {

// Sets Inst::formats. Throws Fault kSyntax for types and operands that ptxas refuses, kUnsupported for
// elements that are not separate registers.
void read_wgmma(Inst& inst);

// Sets Kernel::wgmma_registers, and Inst::wgmma_registers of every instruction.
void find_wgmma_registers(Kernel& kernel);

}  // namespace sim
