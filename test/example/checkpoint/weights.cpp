#include "example/checkpoint/weights.h"

#include <cmath>
#include <cstring>

namespace checkpoint {

// Experts that are tensors of their own become one buffer, whose stride is the compact one; so do the rows
// of a rank. (A buffer that is on the device already needs no copy: pitches and strides of the launch reach
// into it.)
static std::vector<uint8_t> gather(const std::vector<Matrix>& matrices, int32_t n, bool factors,
                                   size_t row_bytes) {
  std::vector<uint8_t> rows(matrices.size() * n * row_bytes);
  uint8_t* to = rows.data();
  for (const Matrix& matrix : matrices)
    for (int32_t row = 0; row < n; ++row, to += row_bytes)
      std::memcpy(
          to,
          factors ? matrix.factors + row * matrix.factor_row_bytes : matrix.elements + row * matrix.row_bytes,
          row_bytes);
  return rows;
}

// Elements stay as they are. Factors in rows go to the device as rows, and are moved to atoms there.
static Weights upload_rows(const std::vector<Matrix>& matrices, int32_t n, int32_t k) {
  const DeviceBuffer rows(gather(matrices, n, true, k / 16));
  Weights weights{DeviceBuffer(gather(matrices, n, false, k / 2)),
                  DeviceBuffer(matrices.size() * dualgemm_sf_size(n, k)),
                  std::vector<double>(matrices.size(), 1)};
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.rows = n, args.k = k;
  args.batch = static_cast<int32_t>(matrices.size());
  args.src = rows.as();
  args.dst = weights.factors.as();
  check(dualgemm_sf_swizzle(&args, nullptr), "dualgemm_sf_swizzle");
  check(cudaDeviceSynchronize(), "the swizzle");  // the rows go away
  return weights;
}

// GGUF's blocks have another order of elements, so both are made on the host.
static Weights upload_blocks(const std::vector<Matrix>& matrices, int32_t n, int32_t k) {
  const size_t matrix_bytes = size_t(n) * k / 2, atoms = dualgemm_sf_size(n, k);
  std::vector<uint8_t> elements(matrices.size() * matrix_bytes), factors(matrices.size() * atoms);
  for (size_t e = 0; e < matrices.size(); ++e)
    check(dualgemm_import_gguf_host(matrices[e].elements, matrices[e].row_bytes, n, k,
                                    &elements[e * matrix_bytes], 0, &factors[e * atoms]),
          matrices[e].name.c_str());
  return {DeviceBuffer(elements), DeviceBuffer(factors), std::vector<double>(matrices.size(), 1)};
}

// Of MXFP4 the elements stay as they are, too. Its factors become NVFP4's and one number for each expert,
// from where they are in the file: rows of gate and up in turn have a pitch.
static Weights upload_mxfp4(const std::vector<Matrix>& matrices, int32_t n, int32_t k) {
  const size_t atoms = dualgemm_sf_size(n, k);
  std::vector<uint8_t> factors(matrices.size() * atoms);
  std::vector<double> scales;
  for (size_t e = 0; e < matrices.size(); ++e) {
    const Matrix& matrix = matrices[e];
    float scale;
    check(dualgemm_import_mxfp4_host(matrix.elements, 2 * matrix.row_bytes, matrix.factors,
                                     matrix.factor_row_bytes, n, k, &factors[e * atoms], &scale),
          (matrix.name + " (expert " + std::to_string(e) + ")").c_str());
    scales.push_back(scale);
  }
  return {DeviceBuffer(gather(matrices, n, false, k / 2)), DeviceBuffer(factors), scales};
}

static float from_e2m1(int code) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return code & 8 ? -kValues[code & 7] : kValues[code];
}

static float from_e4m3(int factor) {
  const int exponent = factor >> 3 & 15, mantissa = factor & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  return exponent == 0 ? std::ldexp(float(mantissa), -9) : std::ldexp(float(8 + mantissa), exponent - 10);
}

Weights upload(const std::vector<Matrix>& matrices, int32_t n, int32_t k) {
  switch (matrices[0].encoding) {
    case Encoding::kNvfp4: return upload_rows(matrices, n, k);
    case Encoding::kMxfp4: return upload_mxfp4(matrices, n, k);
    case Encoding::kGguf: return upload_blocks(matrices, n, k);
  }
  throw std::logic_error("an encoding that no matrix has");
}

std::vector<float> decode(const Matrix& matrix, int32_t n, int32_t k) {
  std::vector<float> values;
  for (int32_t row = 0; row < n; ++row)
    for (int32_t i = 0; i < k; ++i) {
      const uint8_t* const from = matrix.elements + row * matrix.row_bytes;
      if (matrix.encoding == Encoding::kGguf) {
        // Blocks of 64: four factors, then for each 16 elements eight bytes, of elements j and j + 8.
        const uint8_t* const block = from + i / 64 * 36;
        const int part = i % 64 / 16, j = i % 16;
        const float factor = block[part] == 0x7F ? 0 : from_e4m3(block[part]);
        values.push_back(from_e2m1(block[4 + part * 8 + j % 8] >> (j / 8 * 4) & 15) * factor);
        continue;
      }
      const uint8_t* const factors = matrix.factors + row * matrix.factor_row_bytes;
      const float factor = matrix.encoding == Encoding::kMxfp4 ? std::ldexp(1.0f, factors[i / 32] - 127)
                                                               : from_e4m3(factors[i / 16]);
      values.push_back(from_e2m1(from[i / 2] >> (i % 2 * 4) & 15) * factor);
    }
  return values;
}

}  // namespace checkpoint
