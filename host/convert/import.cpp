// import.cpp -- weights as checkpoints hold them, brought to what a launch reads, in host memory: factors of
// gate and up that were moved to atoms as one buffer, blocks of GGUF, and factors of MXFP4.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/tensor_rules.h"
#include "host/convert/nvfp4.h"
#include "host/include/dualgemm.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// A block of GGUF has the factors of 64 elements, then their codes.
constexpr int32_t kGgufElements = 64;
constexpr int32_t kGgufFactors = kGgufElements / kSfBlock;
constexpr int32_t kGgufBytes = kGgufFactors + kGgufElements / 2;
constexpr int32_t kCodeBytes = kSfBlock / 2;  // of the elements that share a factor

// The powers of two that UE4M3 holds: 2^-9 is its smallest number, 2^8 the largest below 448.
constexpr int kLeastPower = -9, kMostPower = 8;

dualgemm_status_t check_counts(const char* rows_name, int32_t rows, int32_t k, int32_t multiple) {
  if (rows < 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", rows_name, rows);
  if (k < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "k=%" PRId32 ": must not be negative", k);
  if (k % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %" PRId32, k, multiple);
  return kOk;
}

dualgemm_status_t check_host_memory(const char* name, const void* pointer) {
  return pointer ? kOk : fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must point to host memory", name);
}

// Moves the codes of sixteen elements: byte j has elements j and j + 8 in a block of GGUF, and 2 j and 2 j +
// 1 in `to`.
void repack(const uint8_t* from, uint8_t* to) {
  const auto code = [from](int i) { return from[i % kCodeBytes] >> (i / kCodeBytes * 4) & 0xF; };
  for (int j = 0; j < kCodeBytes; ++j) to[j] = static_cast<uint8_t>(code(2 * j) | code(2 * j + 1) << 4);
}

dualgemm_status_t check_factors(const uint8_t* blocks, int64_t row_bytes, int32_t rows, int32_t k) {
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t block = 0; block < k / kSfBlock; ++block) {
      const uint8_t factor =
          blocks[row * row_bytes + block / kGgufFactors * kGgufBytes + block % kGgufFactors];
      if (factor > kUe4m3Nan)
        return fail(DUALGEMM_STATUS_INVALID_VALUE,
                    "blocks: factor %" PRId32 " of row %" PRId32 " is 0x%02X: must be at most 0x7F", block,
                    row, factor);
    }
  return kOk;
}

// This is a matrix of MXFP4: packed elements, and the bytes of its factors.
struct Mxfp4 {
  const uint8_t *codes, *scales;
  int64_t code_pitch, scale_pitch;  // in bytes
  int32_t rows, blocks;             // of a row

  int byte(int32_t row, int32_t block) const { return scales[row * scale_pitch + block]; }
  // Returns whether all 32 elements are +0 or -0. Then their factor does not matter.
  bool zero(int32_t row, int32_t block) const {
    const uint8_t* const from = codes + row * code_pitch + block * kMxBlock / 2;
    return std::all_of(from, from + kMxBlock / 2, [](uint8_t two) { return (two & 0x77) == 0; });
  }
};

// Holds the smallest and the largest factor of a matrix, and where they are. Factors of elements that are all
// zero do not count.
struct Powers {
  struct Place {
    int byte = 0;
    int32_t row = 0, block = 0;
  };
  Place least, most;
  bool any = false;

  void add(const Place& place) {
    if (!any || place.byte < least.byte) least = place;
    if (!any || place.byte > most.byte) most = place;
    any = true;
  }
};

dualgemm_status_t find_powers(const Mxfp4& matrix, Powers* powers) {
  for (int32_t row = 0; row < matrix.rows; ++row)
    for (int32_t block = 0; block < matrix.blocks; ++block) {
      const int byte = matrix.byte(row, block);
      if (byte == kE8m0Nan)
        return fail(DUALGEMM_STATUS_INVALID_VALUE,
                    "scales: factor %" PRId32 " of row %" PRId32 " is 0xFF, which is NaN", block, row);
      if (!matrix.zero(row, block)) powers->add({byte, row, block});
    }
  if (!powers->any || powers->most.byte - powers->least.byte <= kMostPower - kLeastPower) return kOk;
  return fail(
      DUALGEMM_STATUS_NOT_SUPPORTED,
      "scales: factors reach from 2^%d (factor %" PRId32 " of row %" PRId32 ") to 2^%d (factor %" PRId32
      " of row %" PRId32 "), a span of 2^%d: UE4M3 holds powers of two that are at most 2^%d apart",
      powers->least.byte - kE8m0Bias, powers->least.block, powers->least.row, powers->most.byte - kE8m0Bias,
      powers->most.block, powers->most.row, powers->most.byte - powers->least.byte, kMostPower - kLeastPower);
}

// Returns the power of two by which all factors are divided. It makes the largest factor 2^8, so that as few
// factors as possible are subnormal. It is a normal float itself, so if all factors are very small, the
// largest becomes smaller than 2^8.
int common_power(const Powers& powers) {
  constexpr int kLeastNormal = -126;
  return powers.any ? std::max(powers.most.byte - kE8m0Bias - kMostPower, kLeastNormal) : 0;
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

dualgemm_status_t dualgemm_sf_split_host(const void* sf, int32_t n, int32_t k, dualgemm_row_order_t order,
                                         void* sf1, void* sf2) noexcept {
  clear_last_error();
  if (order != DUALGEMM_ROWS_STACKED && order != DUALGEMM_ROWS_INTERLEAVED)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "order=%d: must be in [0, %d]", static_cast<int>(order),
                DUALGEMM_ROWS_INTERLEAVED);
  if (auto status = check_counts("n", n, k, kSfBlock)) return status;
  constexpr int32_t kMostRows = 0x3fffffff;
  if (n > kMostRows)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "n=%" PRId32 ": must be at most %" PRId32, n, kMostRows);
  if (n == 0 || k == 0) return kOk;
  if (auto status = check_host_memory("sf", sf)) return status;
  if (auto status = check_host_memory("sf1", sf1)) return status;
  if (auto status = check_host_memory("sf2", sf2)) return status;
  const Tensor both = host_factors("sf", sf, 2 * n, k), first = host_factors("sf1", sf1, n, k),
               second = host_factors("sf2", sf2, n, k);
  if (auto status = check_places({&both}, {&first, &second})) return status;

  const auto* const from = static_cast<const uint8_t*>(sf);
  for (int32_t side = 0; side < 2; ++side) {
    auto* const to = static_cast<uint8_t*>(side == 0 ? sf1 : sf2);
    std::memset(to, 0, static_cast<size_t>(first.all_bytes()));
    for (int32_t row = 0; row < n; ++row) {
      const int32_t there = order == DUALGEMM_ROWS_STACKED ? side * n + row : 2 * row + side;
      for (int32_t block = 0; block < k / kSfBlock; ++block)
        to[sf_offset(k, row, block)] = from[sf_offset(k, there, block)];
    }
  }
  return kOk;
}

dualgemm_status_t dualgemm_import_gguf_host(const void* blocks, int64_t row_bytes, int32_t rows, int32_t k,
                                            void* q, int64_t ldq, void* sf) noexcept {
  clear_last_error();
  if (auto status = check_counts("rows", rows, k, kGgufElements)) return status;
  if (rows == 0 || k == 0) return kOk;
  if (auto status = check_host_memory("blocks", blocks)) return status;
  if (auto status = check_host_memory("q", q)) return status;
  if (auto status = check_host_memory("sf", sf)) return status;
  const Tensor in =
      host_matrix("blocks", "row_bytes", blocks, rows, int64_t{k} / kGgufElements * kGgufBytes, 8, row_bytes);
  if (auto status = check_pitch(in, "k/64*36")) return status;
  const Tensor packed = host_matrix("q", "ldq", q, rows, k, 4, ldq);
  if (auto status = check_pitch(packed, "k")) return status;
  const Tensor written = with_gaps(packed), atoms = host_factors("sf", sf, rows, k);
  if (auto status = check_places({&in}, {&written, &atoms})) return status;
  const auto* const from = static_cast<const uint8_t*>(blocks);
  if (auto status = check_factors(from, in.pitch, rows, k)) return status;

  auto* const factors = static_cast<uint8_t*>(sf);
  std::memset(factors, 0, static_cast<size_t>(atoms.all_bytes()));
  const int64_t code_bytes = packed.bytes(packed.pitch);
  for (int32_t row = 0; row < rows; ++row) {
    uint8_t* const codes = static_cast<uint8_t*>(q) + row * code_bytes;
    for (int32_t block = 0; block < k / kSfBlock; ++block) {
      const uint8_t* const there = from + row * in.pitch + block / kGgufFactors * kGgufBytes;
      const int32_t in_block = block % kGgufFactors;
      // The byte that is NaN in UE4M3 is zero in GGUF.
      factors[sf_offset(k, row, block)] = there[in_block] == kUe4m3Nan ? 0 : there[in_block];
      repack(there + kGgufFactors + in_block * kCodeBytes, codes + block * kCodeBytes);
    }
    std::memset(codes + k / 2, 0, static_cast<size_t>(code_bytes - k / 2));
  }
  return kOk;
}

dualgemm_status_t dualgemm_import_mxfp4_host(const void* q, int64_t ldq, const void* scales, int64_t pitch,
                                             int32_t rows, int32_t k, void* sf, float* scale) noexcept {
  clear_last_error();
  if (auto status = check_counts("rows", rows, k, kMxBlock)) return status;
  if (rows == 0 || k == 0) return kOk;
  if (auto status = check_host_memory("q", q)) return status;
  if (auto status = check_host_memory("scales", scales)) return status;
  if (auto status = check_host_memory("sf", sf)) return status;
  if (auto status = check_host_memory("scale", scale)) return status;
  const Tensor packed = host_matrix("q", "ldq", q, rows, k, 4, ldq);
  if (auto status = check_pitch(packed, "k")) return status;
  const Tensor powers_in = host_matrix("scales", "pitch", scales, rows, k / kMxBlock, 8, pitch);
  if (auto status = check_pitch(powers_in, "k/32")) return status;
  const Tensor atoms = host_factors("sf", sf, rows, k),
               number = host_matrix("scale", nullptr, scale, 1, 1, 32, 0);
  if (auto status = check_places({&packed, &powers_in}, {&atoms, &number})) return status;
  const Mxfp4 matrix{static_cast<const uint8_t*>(q),
                     static_cast<const uint8_t*>(scales),
                     packed.bytes(packed.pitch),
                     powers_in.pitch,
                     rows,
                     k / kMxBlock};
  Powers powers;
  if (auto status = find_powers(matrix, &powers)) return status;

  const int common = common_power(powers);
  *scale = std::ldexp(1.0f, common);
  auto* const factors = static_cast<uint8_t*>(sf);
  std::memset(factors, 0, static_cast<size_t>(atoms.all_bytes()));
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t block = 0; block < matrix.blocks; ++block) {
      if (matrix.zero(row, block)) continue;
      const uint8_t factor = to_ue4m3(std::ldexp(1.0f, matrix.byte(row, block) - kE8m0Bias - common));
      factors[sf_offset(k, row, 2 * block)] = factors[sf_offset(k, row, 2 * block + 1)] = factor;
    }
  return kOk;
}
