// plan.h -- the plan of a kernel for sm_90a: 64 rows of A, 64 of B1 and of B2; with swap A/B the rows of B
// are the M side of a wgmma m64n64, whose accumulators are in registers. The kernel of zeros.cuh has it, and
// so has an instance of a table that is not the library's (unit/table). This is plain C++.
#pragma once

#include "kernel/plan.h"

namespace zeros {

constexpr dualgemm::Plan plan_of_zeros(bool grouped) {
  dualgemm::Plan plan{};
  plan.arch = dualgemm::Arch::kSm90;
  plan.tile = {.m = 64, .n = 64, .k = 256, .split_k = 1, .grouped = grouped};
  plan.mma = {.cta_group = 1,
              .swap_ab = true,
              .m = 64,
              .n = 64,
              .steps = 4,
              .products = 2,
              .accumulators = 2,
              .per_step = 2,
              .columns = 64,
              .keep_a = false};
  plan.operands = operand_plan(plan.tile, plan.mma, /*stages=*/5);
  plan.scales = scale_plan(plan.tile, plan.mma, /*stages=*/3, /*k_tiles=*/2);
  plan.epilogue = {.warps = 4, .chunk_columns = 32};
  plan.consumers = {.column_groups = 1, .k_groups = 1, .columns = 64, .share_rows = 0, .exchanged_rows = 0};
  plan.threads = 32 * (plan.epilogue.warps + 2);
  return plan;
}

}  // namespace zeros
