// import.cpp -- weights as checkpoints hold them, brought to what a launch reads, in host memory: factors of
// gate and up that were moved to atoms as one buffer, and blocks of GGUF.

#include <cinttypes>
#include <cstring>

#include "host/dualgemm.h"
#include "host/nvfp4.h"
#include "host/sf_layout.h"
#include "host/status.h"
#include "host/tensor_rules.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// A block of GGUF has the factors of 64 elements, then their codes.
constexpr int32_t kGgufElements = 64;
constexpr int32_t kGgufFactors = kGgufElements / kSfBlock;
constexpr int32_t kGgufBytes = kGgufFactors + kGgufElements / 2;
constexpr int32_t kCodeBytes = kSfBlock / 2;  // of the elements that share a factor

dualgemm_status_t check_counts(const char* rows_name, int32_t rows, int32_t k, int32_t multiple) {
  if (rows < 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", rows_name, rows);
  if (k < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "k=%" PRId32 ": must not be negative", k);
  if (k % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %" PRId32, k, multiple);
  return kOk;
}

dualgemm_status_t check_given(const char* name, const void* pointer) {
  return pointer ? kOk : fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must point to host memory", name);
}

// Codes of sixteen elements: byte j has elements j and j + 8 there, and 2 j and 2 j + 1 here.
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
  if (auto status = check_given("sf", sf)) return status;
  if (auto status = check_given("sf1", sf1)) return status;
  if (auto status = check_given("sf2", sf2)) return status;
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
  if (auto status = check_given("blocks", blocks)) return status;
  if (auto status = check_given("q", q)) return status;
  if (auto status = check_given("sf", sf)) return status;
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
      // What is NaN in UE4M3 is zero there.
      factors[sf_offset(k, row, block)] = there[in_block] == kUe4m3Nan ? 0 : there[in_block];
      repack(there + kGgufFactors + in_block * kCodeBytes, codes + block * kCodeBytes);
    }
    std::memset(codes + k / 2, 0, static_cast<size_t>(code_bytes - k / 2));
  }
  return kOk;
}
