// mxfp4.cpp -- see mxfp4.h.

#include "host/convert/mxfp4.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/convert/floats.h"
#include "host/convert/nvfp4.h"
#include "host/convert/rules.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// The reference asks for each weight as often as A has rows, so the few that there are stand in a table.
struct Weights {
  float of[kMostMxfp4Byte + 1][8];

  Weights() {
    for (int byte = 0; byte <= kMostMxfp4Byte; ++byte)
      for (uint8_t code = 0; code < 8; ++code) {
        uint8_t rounded;
        store_nearest(DUALGEMM_DTYPE_FP8_E4M3, &rounded, 0,
                      std::ldexp(double{from_e2m1(code)}, byte - kE8m0Bias));
        of[byte][code] = float_of(DUALGEMM_DTYPE_FP8_E4M3, &rounded, 0);
      }
  }
};

dualgemm_status_t check_pointers(const dualgemm_prepare_mxfp4_args_t& args) {
  if (auto status = check_given("q", args.q)) return status;
  if (auto status = check_given("scales", args.scales)) return status;
  if (auto status = check_given("sf", args.sf)) return status;
  return check_given("row_exponent", args.row_exponent);
}

void describe(Mxfp4Preparation& out) {
  const dualgemm_prepare_mxfp4_args_t& args = out.args;
  const int32_t rows = args.rows, all = out.rows.matrices();
  out.q =
      matrix(args.k, 4, 16, {"q", "ldq", "batch_stride_q", args.q, all, args.batch_stride_q, rows, args.ldq});
  out.scales = matrix(args.k / kMxBlock, 8, 1,
                      {"scales", "pitch", "batch_stride_scales", args.scales, all, args.batch_stride_scales,
                       rows, args.pitch});
  Tensor sf{"sf", nullptr, "batch_stride_sf", args.sf, all, args.batch_stride_sf, sf_row_blocks(rows)};
  sf.row_elements = sf_atoms(args.k, kMxBlock) * kSfAtomBytes;
  sf.bits = 8;
  out.sf = resolved(sf);
  out.row_exponent = matrix(rows, 16, 2,
                            {"row_exponent", nullptr, "batch_stride_row_exponent", args.row_exponent, all,
                             args.batch_stride_row_exponent, 1});
  out.counts = matrix(kMxfp4Counts, 32, 4, {"counts", nullptr, nullptr, args.counts, 1, 0, 1});
}

}  // namespace

float weight_in_e4m3(uint8_t code, uint8_t byte) {
  static const Weights kWeights;
  if (byte > kMostMxfp4Byte) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = kWeights.of[byte][code & 7];
  return code & 8 ? -magnitude : magnitude;
}

dualgemm_prepare_mxfp4_args_t default_prepare_mxfp4_args() {
  dualgemm_prepare_mxfp4_args_t args{};
  args.struct_size = sizeof args;
  return args;
}

dualgemm_status_t validate(const dualgemm_prepare_mxfp4_args_t* user_args, Mxfp4Preparation* out) {
  dualgemm_prepare_mxfp4_args_t& args = out->args = default_prepare_mxfp4_args();
  if (auto status = read_args<112>("dualgemm_prepare_mxfp4_args_t", "dualgemm_prepare_mxfp4_args_init",
                                   user_args, &args))
    return status;
  if (auto status = check_pdl_flag(args.flags)) return status;
  if (auto status = check_range("reserved0", args.reserved0, 0)) return status;
  if (auto status = check_count("rows", args.rows)) return status;
  if (auto status = check_count("k", args.k)) return status;
  if (auto status = check_count("batch", args.batch)) return status;
  out->rows = {args.rows, std::max(args.batch, 1), DUALGEMM_GROUP_NONE, nullptr};
  out->empty = args.rows == 0 || args.k == 0;
  if (out->empty) return kOk;
  if (args.k % kMxBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", args.k, kMxBlock);
  if (auto status = check_pointers(args)) return status;
  describe(*out);
  if (auto status = check_pitch(out->scales, "k/32")) return status;
  if (auto status = check_tensors({&out->q, &out->scales}, {&out->sf, &out->row_exponent, &out->counts}, "k"))
    return status;
  return check_size(out->rows, args.k, kTilesOfRows);
}

}  // namespace dualgemm
