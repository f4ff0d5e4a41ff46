// staged.cuh -- how a plain instance finishes a tile: results in 16 bits go to shared memory as transposed
// matrices, and from there to C, 16 bytes of a row at a time.
//
//   lane: gate and up of two rows, one column  -->  two results  --stmatrix-->  [row][32 columns]  -->  C
//
// The picture is that of a warpgroup with 32 columns. If a warpgroup has 64 columns, a lane has two columns,
// and a row in shared memory has 64.
//
// A warpgroup stages 32 rows at a time, or the rows of a share if these are fewer (reduce.cuh). It has two
// staging buffers, which it uses in alternation. One barrier of the warpgroup lies between writing a buffer
// and reading it. No other barrier is needed before a buffer is written again: a warp that writes it has
// passed the barrier of the other buffer, at which every warp arrived only after it had read this one.
#pragma once

#include "kernel/epilogue/epilogue.cuh"
#include "kernel/sm90/multiply.cuh"
#include "ptx/global.cuh"
#include "ptx/matrix.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

// The layout that the arithmetic of a plain instance gets. It is empty, because that arithmetic does not
// depend on where in C the elements of a lane lie.
struct FragmentLayout {};

// What the sums of a row are multiplied with. An A in FP8 has a factor for each row: each lane of a warp
// loads one of 32 rows, and all lanes have it from there. Any other A has the constant that its expansion
// asks for; factors of its rows are for general instances.
template <class Traits, bool kOfRows = Traits::kPlan.a_type == CType::kFp8>
class RowFactors {
 public:
  DUALGEMM_DEVICE RowFactors(const Params&, const Tile&, int) {}
  DUALGEMM_DEVICE void load(int) {}
  DUALGEMM_DEVICE float operator[](int) const { return Traits::kUnscale; }
};
template <class Traits>
class RowFactors<Traits, true> {
 public:
  DUALGEMM_DEVICE RowFactors(const Params& p, const Tile& tile, int lane)
      : factors_(p.general.row_scale, CType::kFp32,
                 tile.a_problem * p.general.row_scale_stride + tile.row + lane, tile.rows - lane) {}
  // Loads the factors of 32 rows of the tile from `first` on, whose numbers below count from there.
  DUALGEMM_DEVICE void load(int first) { factor_ = factors_.given() ? factors_[first] : 1.0f; }
  DUALGEMM_DEVICE float operator[](int row) const { return __shfl_sync(0xffffffff, factor_, row); }

 private:
  Vector factors_;
  float factor_;
};

template <class Traits>
class FinishStaged {
  static constexpr Plan kPlan = Traits::kPlan;
  using Results = StagedResults<Traits>;
  using Output = typename Traits::Output;
  static constexpr int kProducts = kPlan.mma.accumulators;
  static constexpr int kMatrices = Results::kRows / 8;  // of eight rows of C
  static constexpr int kLaneColumns = Sums<Traits>::kColumns;
  static constexpr int kColumns = kPlan.consumers.columns;
  static constexpr int kPieceBytes = 16, kPieces = kColumns * 2 / kPieceBytes;
  static constexpr int kStoredRows = kWarpgroup / kPieces;  // at once
  static_assert(Output::kBits == 16);

 public:
  DUALGEMM_DEVICE FinishStaged(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                               Consumer<Traits> consumer)
      : p_(p), results_(smem.results()), slice_(static_cast<int>(cta.slice)), consumer_(consumer) {}

  template <int kSumRows>
  DUALGEMM_DEVICE void finish(const Sums<Traits, kSumRows>& sums, const Tile& tile) {
    const typename Traits::Arithmetic::template Of<Traits, FragmentLayout> arithmetic(p_, tile, {});
    const Output output(p_, tile);
    RowFactors<Traits> factors(p_, tile, consumer_.lane);
#pragma unroll
    for (int first = 0; first < kSumRows; first += Results::kRows) {
      if (!Reduction<Traits>::finishes(slice_, first)) continue;
      factors.load(first);
      float factor[2 * kMatrices];
#pragma unroll
      for (int i = 0; i < 2 * kMatrices; ++i)
        factor[i] = factors[8 * (i / 2) + consumer_.first_row() + i % 2];
#pragma unroll
      for (int column = 0; column < kLaneColumns; ++column) {
        // Two rows of each matrix, the pair of a lane.
        Fragment<2 * kMatrices, kProducts> fragment;
#pragma unroll
        for (int i = 0; i < 2 * kMatrices; ++i) {
          const int at = (first / 8 + i / 2) * 4 + i % 2;
          fragment.acc1[i] = __float_as_uint(sums.gate(at, column) * factor[i]);
          if constexpr (kProducts == 2) fragment.acc2[i] = __float_as_uint(sums.up(at, column) * factor[i]);
        }
        uint32_t matrices[kMatrices];
        arithmetic.finish(fragment, 0, Packed{output}, matrices);
        auto& place = results_.bytes[consumer_.column_group()][place_];
        // Lane i gives the address of row i. An stmatrix of one matrix uses only the addresses of lanes 0-7,
        // one of two matrices only those of lanes 0-15.
        uint8_t* const row = place[consumer_.lane % Results::kRows] +
                             (consumer_.warp % kWarpgroupWarps * kLaneColumns + column) * kPieceBytes;
        ptx::stmatrix_m8n8_trans(ptx::smem_u32(row), matrices);
      }
      // The results of all four warps are there before they are read below.
      ptx::barrier_sync(kColumnsBarrier + consumer_.column_group(), kWarpgroup);
      store(tile, first, results_.bytes[consumer_.column_group()][place_]);
      place_ ^= 1;
    }
  }

 private:
  // The writer that the arithmetic hands its results to.
  struct Packed {
    const Output& output;
    template <int kCount>
    DUALGEMM_DEVICE void put(uint32_t (&words)[kCount], int i, TwoFloats x) const {
      output.put(words, i, x);
    }
  };

  // The existing columns of a row are a multiple of 16 bytes (output.cuh).
  DUALGEMM_DEVICE void store(const Tile& tile, int first,
                             const uint8_t (&place)[Results::kRows][Results::kPitch]) const {
    const int thread = consumer_.thread_of_columns();
    const int of_piece = thread / kPieces, piece = thread % kPieces;
    const int column = tile.n * kPlan.tile.n + consumer_.column_group() * kColumns + piece * 8;
#pragma unroll
    for (int stored = 0; stored < Results::kRows; stored += kStoredRows) {
      const int row = stored + of_piece;
      if (row >= Results::kRows || first + row >= tile.rows || column + 8 > p_.n) return;
      const uint4 x = *reinterpret_cast<const uint4*>(place[row] + piece * kPieceBytes);
      const uint32_t words[4] = {x.x, x.y, x.z, x.w};
      uint16_t* const c = static_cast<uint16_t*>(p_.c.start) + tile.a_problem * p_.c.stride +
                          (int64_t{tile.row} + first + row) * p_.c.pitch + column;
      ptx::st_global_v4_b32(c, words);
    }
  }

  const Params& p_;
  Results& results_;
  int slice_;
  Consumer<Traits> consumer_;
  int place_ = 0;
};

}  // namespace dualgemm::sm90
