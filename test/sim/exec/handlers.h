// handlers.h -- one function per row of the opcode table.
#pragma once

#include "sim/decode/program.h"

namespace sim::op {

// In rows by subject, which clang-format would run together.
// clang-format off
#define SIM_HANDLERS(X) \
  X(alu)                X(mov)                X(cvta) \
  X(ld)                 X(st)                 X(atom)               X(prefetch) \
  X(createpolicy)       X(isspacep)           X(mapa)               X(getctarank) \
  X(bra)                X(brx)                X(call)               X(ret) \
  X(exit)               X(trap) \
  X(bar_sync)           X(bar_arrive)         X(bar_red)            X(bar_warp) \
  X(cluster_arrive)     X(cluster_wait) \
  X(fence)              X(grid_dependency)    X(nanosleep)          X(nothing) \
  X(shfl)               X(vote)               X(match_any)          X(match_all) \
  X(elect)              X(redux)              X(activemask) \
  X(mbarrier_init)      X(mbarrier_inval)     X(mbarrier_arrive)    X(mbarrier_arrive_drop) \
  X(mbarrier_expect_tx) X(mbarrier_complete_tx) \
  X(mbarrier_try_wait)  X(mbarrier_test_wait) X(mbarrier_pending_count) \
  X(bulk_load)          X(bulk_store)         X(bulk_shared) \
  X(tensor_load)        X(tensor_store) \
  X(bulk_commit)        X(bulk_wait) \
  X(cp_async)           X(cp_async_commit)    X(cp_async_wait) \
  X(st_async)           X(setmaxnreg) \
  X(tcgen05_alloc)      X(tcgen05_dealloc)    X(tcgen05_relinquish) \
  X(tcgen05_cp)         X(tcgen05_mma)        X(tcgen05_mma_scaled) X(tcgen05_commit) \
  X(tcgen05_ld)         X(tcgen05_st)         X(tcgen05_wait)       X(tcgen05_fence)
// clang-format on

#define SIM_DECLARE_HANDLER(name) void name(Exec& x, const Inst& inst);
SIM_HANDLERS(SIM_DECLARE_HANDLER)
#undef SIM_DECLARE_HANDLER

}  // namespace sim::op
