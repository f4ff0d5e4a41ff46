// mxfp4_host.cpp -- the exported function that prepares MXFP4 weights in host memory: the same bits as the
// kernel gives, written down plainly.

#include <algorithm>
#include <cstring>

#include "host/common/status.h"
#include "host/convert/mxfp4.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// This is one row: its packed elements, and the bytes of its factors.
struct Mxfp4Row {
  const uint8_t *codes, *bytes;
  int32_t blocks;

  // Returns whether any of the 32 elements is neither +0 nor -0.
  bool nonzero(int32_t block) const {
    const uint8_t* const from = codes + block * (kMxBlock / 2);
    return std::any_of(from, from + kMxBlock / 2, [](uint8_t two) { return (two & 0x77) != 0; });
  }
  bool scales(int32_t block) const { return nonzero(block) && bytes[block] != kE8m0Nan; }
  // Returns the largest byte of the blocks that have a number other than zero, or -1 without such a block.
  int largest() const {
    int largest = -1;
    for (int32_t block = 0; block < blocks; ++block)
      if (scales(block)) largest = std::max<int>(largest, bytes[block]);
    return largest;
  }
};

const uint8_t* row_of(const Tensor& t, int32_t matrix, int32_t row) {
  return static_cast<const uint8_t*>(t.base) + t.bytes(matrix * t.shared_stride() + row * t.pitch);
}

void prepare(const Mxfp4Preparation& x) {
  const dualgemm_prepare_mxfp4_args_t& args = x.args;
  for_each_problem(x.rows, [&](const RowsInUse& use) {
    uint8_t* const factors = static_cast<uint8_t*>(args.sf) + use.matrix * x.sf.shared_stride();
    std::memset(factors, 0, static_cast<size_t>(x.sf.elements()));
    for (int32_t row = 0; row < use.count; ++row) {
      const Mxfp4Row from{row_of(x.q, use.matrix, row), row_of(x.scales, use.matrix, row), args.k / kMxBlock};
      const int largest = from.largest(), exponent = largest < 0 ? 0 : largest - kMostMxfp4Byte;
      args.row_exponent[use.matrix * x.row_exponent.shared_stride() + row] = static_cast<int16_t>(exponent);
      for (int32_t block = 0; block < from.blocks; ++block) {
        const int byte = from.bytes[block];
        uint8_t& factor = factors[sf_offset(args.k, row, block, kMxBlock)];
        if (byte == kE8m0Nan) factor = kE8m0Nan;
        else if (from.nonzero(block)) factor = static_cast<uint8_t>(std::max(byte - exponent, 0));
        if (!args.counts) continue;
        args.counts[kNonzeroBlocks] += from.nonzero(block);
        args.counts[kRoundedBlocks] += from.scales(block) && byte < largest - kExactOctaves;
        args.counts[kNanBlocks] += byte == kE8m0Nan;
        args.counts[kRaisedBlocks] += from.scales(block) && byte < exponent;
      }
    }
  });
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

dualgemm_status_t dualgemm_prepare_mxfp4_host(const dualgemm_prepare_mxfp4_args_t* args) noexcept {
  clear_last_error();
  Mxfp4Preparation preparation;
  if (auto status = validate(args, &preparation)) return status;
  if (!preparation.empty) prepare(preparation);
  return kOk;
}
