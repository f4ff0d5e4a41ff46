// alignment.h -- errors that only the alignment of dynamic shared memory brings about. A schedule may begin
// that memory at any multiple of what its module declares; hardware begins it at a multiple of 1024.
#pragma once

#include "sim/command/run.h"

namespace command {

// True when the run has an error in a grid whose shared memory hardware would align better, or an error that
// says that the alignment is missing.
bool may_lack_alignment(const RunResult& run);

// `aligned` is the same run with shared memory at multiples of 1024. Errors of `run` that `aligned` does not
// show follow from the alignment, and become findings of the rule about alignment, one for each kernel. A
// fault that follows from the alignment may have ended the program's work early: then `run` becomes `aligned`
// with these findings added.
void blame_alignment(RunResult& run, const RunResult& aligned);

}  // namespace command
