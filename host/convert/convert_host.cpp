// convert_host.cpp -- the exported functions that move factors and quantise in host memory: the same bits as
// the kernels give, written down plainly.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/common/status.h"
#include "host/convert/conversion.h"
#include "host/convert/floats.h"
#include "host/convert/nvfp4.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// NaN, quiet or signalling, does not count as a magnitude. fmax would return a signalling NaN.
float larger_number(float largest, float magnitude) { return magnitude > largest ? magnitude : largest; }

uint8_t* bytes_of(const Tensor& t, int32_t matrix, int64_t row) {
  return static_cast<uint8_t*>(const_cast<void*>(t.base)) +
         t.bytes(matrix * t.shared_stride() + row * t.pitch);
}

// Zeroes the factors of the blocks of 128 rows that hold the rows in use, and returns the first.
uint8_t* cleared_factors(const Tensor& atoms, const RowsInUse& use) {
  uint8_t* const first = bytes_of(atoms, use.matrix, use.first_block);
  std::memset(first, 0, static_cast<size_t>(sf_row_blocks(use.count) * atoms.row_elements));
  return first;
}

dualgemm_status_t move_factors(const dualgemm_sf_args_t* args, bool to_atoms) {
  FactorConversion conversion;
  if (auto status = validate(args, to_atoms, &conversion)) return status;
  if (conversion.empty) return kOk;
  const int32_t k = conversion.args.k;
  for_each_problem(conversion.rows, [&](const RowsInUse& use) {
    uint8_t* const atoms = to_atoms ? cleared_factors(conversion.atoms, use)
                                    : bytes_of(conversion.atoms, use.matrix, use.first_block);
    for (int32_t row = 0; row < use.count; ++row) {
      uint8_t* const linear = bytes_of(conversion.linear, use.matrix, use.first + row);
      for (int32_t block = 0; block < k / kSfBlock; ++block)
        if (to_atoms) atoms[sf_offset(k, row, block)] = linear[block];
        else linear[block] = atoms[sf_offset(k, row, block)];
    }
  });
  return kOk;
}

class Quantizer {
 public:
  explicit Quantizer(const Quantization& q) : q_(q), k_(q.args.k) {}

  void run() const {
    float scale = q_.args.global_scale;
    if (q_.args.scale_mode == DUALGEMM_SCALE_TENSOR) {
      float largest = 0;
      for_each_problem(q_.rows, [&](const RowsInUse& use) {
        for (int32_t row = 0; row < use.count; ++row) largest = larger_number(largest, largest_of(use, row));
      });
      largest = std::min(largest, std::numeric_limits<float>::max());  // infinity counts as this float
      scale = scale_of(largest);
      q_.args.tensor_scales[kLargest] = largest;
      q_.args.tensor_scales[kGlobalScale] = scale;
      q_.args.tensor_scales[kDecodeScale] = 1 / scale;
    }
    for_each_problem(q_.rows, [&](const RowsInUse& use) {
      const float* const dev = q_.args.global_scale_dev;
      quantize_rows(use, dev ? scale * dev[use.problem * q_.global_scale_dev.shared_stride()] : scale);
    });
  }

 private:
  void load(const RowsInUse& use, int32_t row, int32_t block, float* x) const {
    int32_t x_row = use.first + row;
    if (q_.args.row_index) {
      x_row = q_.args.row_index[x_row];
      if (x_row < 0 || x_row >= q_.args.x_rows) {
        std::fill_n(x, kSfBlock, 0.0f);
        return;
      }
    }
    const uint8_t* const from = bytes_of(q_.x, use.matrix, x_row) + q_.x.bytes(block * kSfBlock);
    for (int i = 0; i < kSfBlock; ++i) x[i] = float_of(q_.args.x_dtype, from, i);
  }
  float scale_of(float largest) const { return global_scale_of(largest, q_.in_fp8() ? kE4m3Max : kNvfp4Max); }
  // Returns what the launch multiplies a row with whose largest magnitude this is.
  float decode_scale_of(float largest) const {
    if (!q_.in_fp8()) return 1 / scale_of(largest);
    constexpr float kMax = std::numeric_limits<float>::max();
    return largest > 0 ? std::max(std::min(largest, kMax) / kE4m3Max, 512 / kMax) : 1;
  }
  float largest_of(const RowsInUse& use, int32_t row) const {
    float largest = 0, x[kSfBlock];
    for (int32_t block = 0; block < k_ / kSfBlock; ++block) {
      load(use, row, block, x);
      for (const float one : x) largest = larger_number(largest, std::fabs(one));
    }
    return largest;
  }
  void quantize_rows(const RowsInUse& use, float scale) const {
    uint8_t* const factors = q_.in_fp8() ? nullptr : cleared_factors(q_.sf, use);
    for (int32_t row = 0; row < use.count; ++row) {
      if (q_.args.scale_mode == DUALGEMM_SCALE_ROW) {
        const float largest = largest_of(use, row);
        scale = scale_of(largest);
        q_.args.row_scale[use.matrix * q_.row_scale.shared_stride() + use.first + row] =
            decode_scale_of(largest);
      }
      uint8_t* const codes = bytes_of(q_.q, use.matrix, use.first + row);
      for (int32_t block = 0; block < k_ / kSfBlock; ++block) {
        float x[kSfBlock];
        load(use, row, block, x);
        if (factors)
          factors[sf_offset(k_, row, block)] = quantize_block(x, scale, codes + block * (kSfBlock / 2));
        else
          for (int i = 0; i < kSfBlock; ++i)
            store_nearest(DUALGEMM_DTYPE_FP8_E4M3, codes + block * kSfBlock, i, x[i] * scale);
      }
    }
  }

  const Quantization& q_;
  int32_t k_;
};

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

dualgemm_status_t dualgemm_sf_swizzle_host(const dualgemm_sf_args_t* args) noexcept {
  clear_last_error();
  return move_factors(args, true);
}

dualgemm_status_t dualgemm_sf_unswizzle_host(const dualgemm_sf_args_t* args) noexcept {
  clear_last_error();
  return move_factors(args, false);
}

dualgemm_status_t dualgemm_quantize_host_ex(const dualgemm_quantize_args_t* args) noexcept {
  clear_last_error();
  Quantization quantization;
  if (auto status = validate(args, &quantization)) return status;
  if (!quantization.empty) Quantizer(quantization).run();
  return kOk;
}
