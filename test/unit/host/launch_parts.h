// launch_parts.h -- a launch that takes and writes all that one can, and its tensors as parts.
#pragma once

#include <algorithm>
#include <vector>

#include "arguments.h"
#include "overlap.h"

namespace dualgemm_test {

inline constexpr uintptr_t kD1 = 0x4'0000'0000, kD2 = 0x4'4000'0000;

inline dualgemm_args_t with_d(dualgemm_args_t args, int32_t d_dtype = DUALGEMM_DTYPE_BF16) {
  args.d1 = address(kD1);
  args.d2 = address(kD2);
  args.d_dtype = d_dtype;
  return args;
}

// Returns these arguments with all that a launch of two products may take and write, each with problems of
// its own.
inline dualgemm_args_t everything(const dualgemm_args_t& args) {
  dualgemm_args_t all = with_d(with_output(DUALGEMM_DTYPE_NVFP4, args));
  all.amax_out = address<float>(0x4'8000'0000);
  all.alpha1_dev = address<const float>(0x5'0000'0000);
  all.alpha2_dev = address<const float>(0x5'1000'0000);
  all.c_global_scale_dev = address<const float>(0x5'2000'0000);
  all.alpha_stride = all.c_global_scale_stride = 1;
  all.a_row_scale = address<const float>(0x5'3000'0000);
  all.c_row_scale = address<const float>(0x5'4000'0000);
  all.bias1 = address(0x5'5000'0000);
  all.bias2 = address(0x5'6000'0000);
  all.bias_stride = all.n;
  all.workspace = address(0x6'0000'0000);
  all.workspace_size = 0x300;
  return all;
}

// Returns the same of one product, with an addend: C is bf16, since an NVFP4 C takes none.
inline dualgemm_args_t everything_of_one(const dualgemm_args_t& args) {
  dualgemm_args_t all = everything(args);
  all.products = 1;
  all.b2 = all.sfb2 = all.bias2 = all.d2 = nullptr;
  all.b2_row_exponent = nullptr;
  all.alpha2_dev = all.c_global_scale_dev = nullptr;
  all.c_global_scale_stride = 0;
  all.c_dtype = DUALGEMM_DTYPE_BF16;
  all.sfc = nullptr;
  all.c_add = address(0x5'7000'0000);
  return all;
}

// Returns the tensors of everything() or everything_of_one(), where M is 256, N 128 and K 512, in the order
// in which a refusal names them, of either type of weights. With OFFSETS the rows of all groups are one
// matrix, and of its scale factors the host knows the first block of 128 rows.
inline std::vector<Part<dualgemm_args_t>> parts_of(const dualgemm_args_t& good) {
  using Args = dualgemm_args_t;
  const bool offsets = good.group_mode == DUALGEMM_GROUP_OFFSETS, one = good.products == 1;
  const auto problems = static_cast<uintptr_t>(std::max({good.batch, good.groups, 1}));
  const uintptr_t matrices = offsets ? 1 : problems, rows = 256 * matrices,
                  blocks = offsets ? 1 : 2 * matrices;
  constexpr uintptr_t kAtom = 512;
  const bool mxfp4 = good.b_dtype == DUALGEMM_DTYPE_MXFP4;
  const uintptr_t sfb_atoms = mxfp4 ? 4 : 8;
  std::vector<Part<Args>> out = {{"workspace", 0x300, 256, true, put<&Args::workspace>},
                                 {"c", rows * 128 * (one ? 4 : 1) / 2, 16, true, put<&Args::c>}};
  if (!one) out.push_back({"sfc", blocks * 2 * kAtom, 16, true, put<&Args::sfc>});
  out.push_back({"d1", rows * 128 * 2, 16, true, put<&Args::d1>});
  if (!one) out.push_back({"d2", rows * 128 * 2, 16, true, put<&Args::d2>});
  out.insert(out.end(), {{"amax_out", 4, 4, true, put<&Args::amax_out>},
                         {"a", rows * 512 / (mxfp4 ? 1 : 2), 16, false, put<&Args::a>},
                         {"b1", problems * 128 * 512 / 2, 16, false, put<&Args::b1>},
                         {"sfb1", problems * sfb_atoms * kAtom, 16, false, put<&Args::sfb1>},
                         {"alpha1_dev", problems * 4, 4, false, put<&Args::alpha1_dev>},
                         {"a_row_scale", rows * 4, 4, false, put<&Args::a_row_scale>},
                         {"bias1", problems * 128 * 2, 2, false, put<&Args::bias1>},
                         {"c_row_scale", rows * 4, 4, false, put<&Args::c_row_scale>}});
  if (one) out.push_back({"c_add", rows * 128 * 2, 16, false, put<&Args::c_add>, "c"});
  else
    out.insert(out.end(), {{"b2", problems * 128 * 512 / 2, 16, false, put<&Args::b2>},
                           {"sfb2", problems * sfb_atoms * kAtom, 16, false, put<&Args::sfb2>},
                           {"alpha2_dev", problems * 4, 4, false, put<&Args::alpha2_dev>},
                           {"bias2", problems * 128 * 2, 2, false, put<&Args::bias2>},
                           {"c_global_scale_dev", problems * 4, 4, false, put<&Args::c_global_scale_dev>}});
  if (!mxfp4) out.push_back({"sfa", blocks * 8 * kAtom, 16, false, put<&Args::sfa>});
  if (good.b1_row_exponent)
    out.push_back({"b1_row_exponent", problems * 128 * 2, 2, false, put<&Args::b1_row_exponent>});
  if (good.b2_row_exponent)
    out.push_back({"b2_row_exponent", problems * 128 * 2, 2, false, put<&Args::b2_row_exponent>});
  if (good.group_rows)
    out.push_back({"group_rows", (problems + (offsets ? 1 : 0)) * 4, 4, false, put<&Args::group_rows>});
  return out;
}

}  // namespace dualgemm_test
