// mma_tile.cpp -- executes one tcgen05.mma: fetches operands through their descriptors, scale factors and
// accumulators from TMEM, and leaves the arithmetic to numerics.h. Which CTA holds what:
//
//   operand   cta_group::1   cta_group::2
//   A         M rows         M/2 rows in each CTA, at the same offset; rows of the even CTA first
//   B         N rows         N/2 rows in each CTA, at the same offset; rows of the even CTA first
//   D         M x N          each CTA keeps its own M/2 rows and all N columns
//   SFA       M rows         each CTA: its own rows
//   SFB       N rows         each CTA: all N rows
//
// Accumulator cells (m: row in its CTA, n: column of D):
//   128 rows a CTA         lane m                  column d + n
//   64 rows, cta_group::1  lane m%16 + 32*(m/16)   column d + n  (+16 lanes when the address says so)
//   64 rows, cta_group::2  lane m + 64*(n >= N/2)  column d + n % (N/2)
//
// Scale factor k of row r: byte k of column base + r/32, lane r%32, copied to all four quarters of the lanes.
// Which quarter feeds which output row is not published, so the copies must agree.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "sim/engine/descriptor.h"
#include "sim/engine/numerics.h"
#include "sim/engine/tensor_core.h"
#include "sim/fault.h"

namespace sim {
namespace {

constexpr int kFp4Depth = 64;
constexpr int kQuarters = 4, kLanesPerQuarter = 32;

// The cells of one accumulator row are one or two runs of columns.
struct DRow {
  int lane;       // of columns [0, n / runs)
  int lane_step;  // lanes to the next run
  int runs;
};

DRow d_row(const MmaOp& op, const MmaShape& shape, int m) {
  if (shape.rows_per_cta(op.cta_group) == 128) return {m, 0, 1};
  if (op.cta_group == 1) return {m % 16 + 32 * (m / 16) + lane_of(op.d_tmem), 0, 1};
  return {m, 64, 2};
}

// Accesses the runs of a row of D that are not in lanes that are kept. Those read as zero.
void read_d(const MmaOp& op, const MmaShape& shape, const CtaMemory& memory, int cta, int m,
            uint32_t* cells) {
  const DRow row = d_row(op, shape, m);
  const int run = shape.n / row.runs;
  for (int i = 0; i < row.runs; ++i) {
    const int lane = row.lane + i * row.lane_step;
    if (op.keeps(cta, lane)) std::fill_n(cells + i * run, run, 0);
    else memory.tmem->read_row(lane, column_of(op.d_tmem), run, cells + i * run);
  }
}

void write_d(const MmaOp& op, const MmaShape& shape, const CtaMemory& memory, int cta, int m,
             const uint32_t* cells) {
  const DRow row = d_row(op, shape, m);
  const int run = shape.n / row.runs;
  for (int i = 0; i < row.runs; ++i) {
    const int lane = row.lane + i * row.lane_step;
    if (!op.keeps(cta, lane)) memory.tmem->write_row(lane, column_of(op.d_tmem), run, cells + i * run);
  }
}

// ---- block-scaled ----

// Holds the two codes of every byte, low nibble first.
struct NibbleTable {
  uint16_t pair[256];
  NibbleTable() {
    for (int byte = 0; byte < 256; ++byte) {
      const uint8_t codes[2] = {static_cast<uint8_t>(byte & 15), static_cast<uint8_t>(byte >> 4)};
      std::memcpy(&pair[byte], codes, sizeof codes);
    }
  }
};

// Unpacks rows of 64 e2m1 codes; negation flips their signs.
void unpack_rows(const Bytes& smem, const SmemDescriptor& d, int rows, bool negate, uint8_t* codes) {
  static const NibbleTable table;
  const uint8_t flip = negate ? 0x88 : 0;
  for (int row = 0; row < rows; ++row) {
    for (uint32_t chunk = 0; chunk < kChunksPerRow; ++chunk) {
      const uint8_t* bytes = smem.view(k_major_address(d, static_cast<uint32_t>(row), chunk), kChunk);
      for (uint32_t i = 0; i < kChunk; ++i) std::memcpy(codes + 2 * i, &table.pair[bytes[i] ^ flip], 2);
      codes += 2 * kChunk;
    }
  }
}

// Says where fetch_scales finds scale factors. It fetches whole columns, in pairs for B, so all their cells
// must be written.
struct ScaleFetch {
  const char* what;
  uint32_t taddr;
  int columns;
  int groups;  // scales a row: 4 in block16, 2 in block32
  int id;      // first byte of the cell that is used
  bool ue8m0;
};

void fetch_scales(const Tmem& tmem, const ScaleFetch& fetch, int rows, float* scales) {
  uint32_t cells[kLanesPerQuarter][8], copy[8];
  const int first = column_of(fetch.taddr);
  const size_t bytes = static_cast<size_t>(fetch.columns) * sizeof(uint32_t);
  for (int lane = 0; lane < kLanesPerQuarter; ++lane) {
    tmem.read_row(lane, first, fetch.columns, cells[lane]);
    for (int quarter = 1; quarter < kQuarters; ++quarter) {
      tmem.read_row(lane + kLanesPerQuarter * quarter, first, fetch.columns, copy);
      if (std::memcmp(cells[lane], copy, bytes) != 0)
        throw Fault(FaultKind::kProtocol, std::string(fetch.what) + " at TMEM column " +
                                              std::to_string(first) + ": lanes " + std::to_string(lane) +
                                              " and " + std::to_string(lane + kLanesPerQuarter * quarter) +
                                              " differ; all four lane quarters must hold the same copy");
    }
  }
  for (int row = 0; row < rows; ++row) {
    const uint32_t cell = cells[row % kLanesPerQuarter][row / kLanesPerQuarter];
    for (int g = 0; g < fetch.groups; ++g) {
      const uint8_t code = static_cast<uint8_t>(cell >> (8 * (fetch.id + g)));
      *scales++ = fetch.ue8m0 ? ue8m0_to_f32(code) : ue4m3_to_f32(code);
    }
  }
}

void execute_block_scaled(const MmaOp& op, const MmaShape& shape, const CtaMemory* ctas) {
  const SmemDescriptor a_desc = decode_smem_descriptor(op.a_desc);
  const SmemDescriptor b_desc = decode_smem_descriptor(op.b_desc);
  const int rows = shape.rows_per_cta(op.cta_group), b_rows = shape.b_rows_per_cta(op.cta_group);
  const int groups = op.scale_block == ScaleBlock::kBlock16 ? 4 : 2;
  const ScaleFormat format = shape.ue8m0 ? ScaleFormat::kUe8m0 : ScaleFormat::kUe4m3;
  const size_t m_size = static_cast<size_t>(rows), n_size = static_cast<size_t>(shape.n);

  static thread_local std::vector<uint8_t> a, b;
  static thread_local std::vector<float> sfa, sfb, d;
  a.resize(m_size * kFp4Depth);
  b.resize(n_size * kFp4Depth);
  sfa.resize(m_size * static_cast<size_t>(groups));
  sfb.resize(n_size * static_cast<size_t>(groups));
  d.resize(m_size * n_size);

  for (int cta = 0; cta < op.cta_group; ++cta)
    unpack_rows(*ctas[cta].smem, b_desc, b_rows, shape.negate_b,
                &b[static_cast<size_t>(cta * b_rows * kFp4Depth)]);
  for (int cta = 0; cta < op.cta_group; ++cta) {
    const CtaMemory& memory = ctas[cta];
    unpack_rows(*memory.smem, a_desc, rows, shape.negate_a, a.data());
    fetch_scales(*memory.tmem, {"scale factors of A", op.sfa_tmem, 4, groups, shape.sfa_id, shape.ue8m0},
                 rows, sfa.data());
    fetch_scales(
        *memory.tmem,
        {"scale factors of B", op.sfb_tmem, scale_columns_b(shape.n), groups, shape.sfb_id, shape.ue8m0},
        shape.n, sfb.data());
    uint32_t* cells = reinterpret_cast<uint32_t*>(d.data());
    if (op.accumulate)
      for (int m = 0; m < rows; ++m) read_d(op, shape, memory, cta, m, cells + m * shape.n);
    mma_block_scaled_tile(a.data(), b.data(), sfa.data(), sfb.data(), groups, rows, shape.n, op.accumulate,
                          d.data(), format);
    for (int m = 0; m < rows; ++m) write_d(op, shape, memory, cta, m, cells + m * shape.n);
  }
}

// ---- dense ----

DenseFormat format_of(const MmaOp& op, int type) {
  if (op.kind == MmaKind::kTf32) return DenseFormat::kTf32;
  return type == 0 ? DenseFormat::kF16 : DenseFormat::kBf16;
}

float decode_dense(DenseFormat format, const uint8_t* bytes) {
  uint32_t code = 0;
  std::memcpy(&code, bytes, size_t(element_bytes(format)));
  return dense_to_f32(format, code);
}

struct DenseOperand {
  SmemDescriptor desc;
  DenseFormat format;
  bool mn_major, negate;
};

// Fetches rows x k floats from shared memory.
void fetch_dense(const MmaShape& shape, const DenseOperand& operand, const Bytes& smem, int rows,
                 float* out) {
  const int size = element_bytes(operand.format);
  const int per_chunk = static_cast<int>(kChunk) / size;
  const int outer = operand.mn_major ? shape.k : rows;                 // strided dimension
  const int chunks = (operand.mn_major ? rows : shape.k) / per_chunk;  // of the contiguous one
  for (int i = 0; i < outer; ++i) {
    for (int c = 0; c < chunks; ++c) {
      const uint32_t chunk = static_cast<uint32_t>(c), index = static_cast<uint32_t>(i);
      const uint8_t* bytes = smem.view(operand.mn_major ? mn_major_address(operand.desc, chunk, index)
                                                        : k_major_address(operand.desc, index, chunk),
                                       kChunk);
      for (int e = 0; e < per_chunk; ++e) {
        const float value = decode_dense(operand.format, bytes + e * size);
        const int row = operand.mn_major ? c * per_chunk + e : i;
        const int k = operand.mn_major ? i : c * per_chunk + e;
        out[row * shape.k + k] = operand.negate ? -value : value;
      }
    }
  }
}

// Fetches 128 rows x 16 elements of A from TMEM, where a cell holds two 16-bit elements, the even one in the
// low half.
void fetch_dense_from_tmem(const MmaOp& op, const MmaShape& shape, const Tmem& tmem, float* out) {
  for (int row = 0; row < Tmem::kLanes; ++row) {
    uint32_t cells[8];
    tmem.read_row(row, column_of(op.a_tmem), shape.k / 2, cells);
    for (int k = 0; k < shape.k; ++k) {
      const uint16_t half = static_cast<uint16_t>(cells[k / 2] >> (16 * (k % 2)));
      const float value = shape.a_type == 0 ? f16_to_f32(half) : bf16_to_f32(half);
      *out++ = shape.negate_a ? -value : value;
    }
  }
}

void execute_dense(const MmaOp& op, const MmaShape& shape, const CtaMemory* ctas) {
  const int rows = shape.rows_per_cta(op.cta_group), b_rows = shape.b_rows_per_cta(op.cta_group);
  const DenseFormats formats{format_of(op, shape.a_type), format_of(op, shape.b_type)};
  const DenseOperand b_operand{decode_smem_descriptor(op.b_desc), formats.b, shape.b_mn_major,
                               shape.negate_b};
  std::vector<float> a(static_cast<size_t>(rows * shape.k)), b(static_cast<size_t>(shape.n * shape.k));
  std::vector<uint32_t> cells(static_cast<size_t>(shape.n));
  for (int cta = 0; cta < op.cta_group; ++cta)
    fetch_dense(shape, b_operand, *ctas[cta].smem, b_rows, &b[static_cast<size_t>(cta * b_rows * shape.k)]);

  for (int cta = 0; cta < op.cta_group; ++cta) {
    const CtaMemory& memory = ctas[cta];
    if (op.a_in_tmem) {
      fetch_dense_from_tmem(op, shape, *memory.tmem, a.data());
    } else {
      const DenseOperand a_operand{decode_smem_descriptor(op.a_desc), formats.a, shape.a_mn_major,
                                   shape.negate_a};
      fetch_dense(shape, a_operand, *memory.smem, rows, a.data());
    }
    for (int m = 0; m < rows; ++m) {
      if (op.accumulate) read_d(op, shape, memory, cta, m, cells.data());
      for (int n = 0; n < shape.n; ++n) {
        uint32_t& cell = cells[static_cast<size_t>(n)];
        float c = 0;
        if (op.accumulate)
          c = shape.d_is_f16 ? f16_to_f32(static_cast<uint16_t>(cell)) : std::bit_cast<float>(cell);
        const double sum = mma_dense_sum(&a[static_cast<size_t>(m * shape.k)],
                                         &b[static_cast<size_t>(n * shape.k)], formats, shape.k, c);
        // f16 accumulators sit in the low half of a cell. Their rounding is assumed: to nearest even.
        cell = shape.d_is_f16 ? f64_to_f16(sum, Round::kNearestEven)
                              : std::bit_cast<uint32_t>(round_dense(sum, formats));
      }
      write_d(op, shape, memory, cta, m, cells.data());
    }
  }
}

}  // namespace

void execute_mma(const MmaOp& op, const CtaMemory ctas[2]) {
  check_mma(op);
  const MmaShape shape = decode_shape(op);
  if (block_scaled(op.kind)) execute_block_scaled(op, shape, ctas);
  else execute_dense(op, shape, ctas);
}

}  // namespace sim
