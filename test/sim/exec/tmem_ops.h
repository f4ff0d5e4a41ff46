// tmem_ops.h -- what the handlers of the tensor core share.
#pragma once

#include "sim/engine/footprint.h"
#include "sim/exec/exec.h"

namespace sim::op {

// The .sync.aligned instructions of the tensor core take all 32 lanes. False means that the fragment sleeps
// until all of them have come.
bool whole_warp(Exec& x);

Region cell_region(const Cta& cta, const CellRange& cells, bool write);

}  // namespace sim::op
