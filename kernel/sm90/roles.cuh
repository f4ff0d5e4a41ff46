// roles.cuh -- which warp does what: the kernel is warp-specialized. setmaxnreg gives registers to
// warpgroups, four warps each. The warps that multiply and finish come first, then those that prepare A and
// the two load roles, and last the warps that fill up the last warpgroup and do nothing.
#pragma once

#include "kernel/sm90/plan.h"
#include "ptx/common.cuh"

namespace dualgemm::sm90 {

enum class Role {
  kMultiply,         // expands B1 and B2 in registers, multiplies, and finishes its part of C
  kPrepare,          // expands A in shared memory, or puts it in order there
  kLoadWeights,      // TMA of B1, B2 and their scale factors; initialises the barriers
  kLoadActivations,  // TMA of A, and of its scale factors if it has any; reads the sizes of groups
  kNone              // nothing
};

// The index is broadcast from lane 0, so that the compiler sees one value per warp and keeps the roles'
// arithmetic scalar.
DUALGEMM_DEVICE int warp_index() { return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0); }

template <class Traits>
DUALGEMM_DEVICE Role role_of(int warp) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kConsumers = kWarpgroupWarps * kPlan.consumers.warpgroups();
  if (warp < kConsumers) return Role::kMultiply;
  if (warp < kConsumers + kPlan.a16.warps) return Role::kPrepare;
  switch (warp - kConsumers - kPlan.a16.warps) {
    case 0: return Role::kLoadWeights;
    case 1: return Role::kLoadActivations;
    default: return Role::kNone;
  }
}

// Numbers of the CTA's barriers: one barrier is for all threads and one for all threads that multiply. From
// kColumnsBarrier on each column group has one.
inline constexpr uint32_t kCtaBarrier = 0, kMultiplyBarrier = 1, kColumnsBarrier = 2;

// Says where a thread of the multiply role stands.
template <class Traits>
struct Consumer {
  static constexpr ConsumerPlan kPlan = Traits::kPlan.consumers;
  static constexpr int kThreads = kWarpgroup * kPlan.warpgroups();

  int warp;  // of the role
  int lane;

  DUALGEMM_DEVICE explicit Consumer(int warp_) : warp(warp_), lane(static_cast<int>(threadIdx.x) % 32) {}
  DUALGEMM_DEVICE int k_group() const {
    return kPlan.k_groups == 1 ? 0 : warp / kWarpgroupWarps / kPlan.column_groups;
  }
  DUALGEMM_DEVICE int column_group() const {
    return kPlan.column_groups == 1 ? 0 : warp / kWarpgroupWarps % kPlan.column_groups;
  }
  // Return the number of the warp in its k group, the number of the thread in the role, and the number of the
  // thread in its warpgroup.
  DUALGEMM_DEVICE int warp_of_columns() const {
    return kWarpgroupWarps * column_group() + warp % kWarpgroupWarps;
  }
  DUALGEMM_DEVICE int thread() const { return 32 * warp + lane; }
  DUALGEMM_DEVICE int thread_of_columns() const { return 32 * (warp % kWarpgroupWarps) + lane; }
  // A warp has eight columns of the tile, as rows 0-7 (gate) and 8-15 (up) of its 16 rows of the fragment;
  // or, with one product, 16 columns.
  DUALGEMM_DEVICE int first_column() const {
    return kPlan.columns * column_group() + kPlan.columns / kWarpgroupWarps * (warp % kWarpgroupWarps);
  }
  // In the fragment a lane has this column of the tile, with one product also the column eight further on;
  // and in every eight rows of the tile it has this row and the next.
  DUALGEMM_DEVICE int column() const { return first_column() + lane / 4; }
  DUALGEMM_DEVICE int first_row() const { return lane % 4 * 2; }
};

}  // namespace dualgemm::sm90
