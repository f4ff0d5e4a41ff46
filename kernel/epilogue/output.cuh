// output.cuh -- writes C from registers straight to global memory, in a format in which each element stands
// for itself: fp32, fp16, bf16 or fp8. It also writes the preactivations of the general epilogue.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/kinds.h"
#include "kernel/epilogue/list.h"
#include "kernel/params.h"
#include "ptx/global.cuh"
#include "ptx/math.cuh"

namespace dualgemm {

// Returns what an FP8 or NVFP4 C is multiplied with before its conversion: the number that the host passed
// times the number of the problem on the device.
DUALGEMM_DEVICE float encode_scale(const GeneralParams& p, const Tile& tile) {
  return p.encode_dev ? p.encode * p.encode_dev[tile.problem * p.encode_stride] : p.encode;
}

// The matrices that a writer may write.
DUALGEMM_DEVICE const Matrix& matrix_c(const Params& p) { return p.c; }
DUALGEMM_DEVICE const Matrix& matrix_d1(const Params& p) { return p.general.d1; }
DUALGEMM_DEVICE const Matrix& matrix_d2(const Params& p) { return p.general.d2; }

// Tells the compiler that this address lies in global memory, which it does not see in a function that is
// called with Params. If a store may go to any space, ptxas 13.0 is not sure that the lanes of a warp are
// converged, and makes them converge again all over the function.
template <class Element>
DUALGEMM_DEVICE Element* in_global_memory(void* start) {
  __builtin_assume(__isGlobal(start));
  return static_cast<Element*>(start);
}

// Writes what a lane has of one tile. Traits tell how wide the stores of the architecture are.
template <class Traits, class Format, class Layout, const Matrix& (*kMatrix)(const Params&) = matrix_c>
class DirectWriter {
  static constexpr bool kFullSectors = limits_of(Traits::kPlan.arch).store_bytes == 32;
  static constexpr bool kRows = std::is_same_v<Layout, AlongRow>;
  static constexpr int kBits = Format::kBits;
  using Element = typename Format::Element;

 public:
  // At least this many elements of a lane are stored at once. Along a row, as many of 16 bits are the widest
  // store of the architecture.
  static constexpr int kLeastWidth = kRows ? limits_of(Traits::kPlan.arch).store_bytes / 2 : 8;
  // Along a row a store has the width of the architecture's widest store, or, if that is less, of all
  // elements that are stored at once.
  static constexpr int32_t kStoreBytes =
      kRows ? std::min(limits_of(Traits::kPlan.arch).store_bytes, kLeastWidth* kBits / 8)
            : Layout::kLanesAside * kBits / 8;

  DUALGEMM_DEVICE DirectWriter(const Params& p, const Tile& tile, LanePlace at, const Nothing& = {})
      : format_(p, tile),
        exists_(Layout::exists(tile.rows - at.row, p.n - at.column)),
        rows_(tile.rows - at.row),
        columns_(p.n - at.column),
        pitch_(kMatrix(p).pitch),
        elements_(in_global_memory<Element>(kMatrix(p).start) + tile.a_problem * kMatrix(p).stride +
                  (int64_t{tile.row} + at.row) * kMatrix(p).pitch + at.column) {}

  // Returns how many elements exist in C from the lane's first element on, along the layout; possibly more
  // than the tile has.
  DUALGEMM_DEVICE int extent() const { return Layout::extent(rows_, columns_); }
  // `lanes` of the neighbouring lanes have a part of C. Returns how many lanes have anything to write.
  DUALGEMM_DEVICE int writing_lanes(int lanes) const { return lanes; }

  // Some elements of the lane, in the form in which they are written.
  template <int kWidth>
  struct Results {
    uint32_t words[kWidth * kBits / 32];
  };
  template <int kWidth>
  DUALGEMM_DEVICE void put(Results<kWidth>& results, int i, TwoFloats x) const {
    format_.put(results.words, i, x);
  }

  // Stores the elements first .. first + kWidth - 1.
  template <int kWidth>
  DUALGEMM_DEVICE void store(const Results<kWidth>& results, int first) const {
    if (!exists_) return;
    if constexpr (kRows) store_row<kWidth>(results.words, first);
    else store_each<kWidth>(results.words, first);
  }
  // Nothing is left to do after the last store of a tile.
  DUALGEMM_DEVICE void complete_tile(int) const {}

 private:
  // The existing columns of a row are a multiple of 16 bytes, of 8 for fp8. A row that starts on a 32-byte
  // boundary is written in full sectors; the row pitch promises only 16 bytes.
  template <int kWidth>
  DUALGEMM_DEVICE void store_row(const uint32_t* words, int first) const {
    constexpr int kPiece = kWidth * kBits < 128 ? kWidth : 128 / kBits;  // elements of 16 bytes, or of 8
    static_assert(kWidth % kPiece == 0, "whole pieces");
    Element* row = elements_ + first;
    const bool sectors = kFullSectors && reinterpret_cast<uintptr_t>(row) % 32 == 0;
    const auto store_piece = [&](int column) {
      const uint32_t* const piece = words + column / kPiece * 4;
      const int columns = columns_ - first - column;
      if constexpr (kPiece * kBits == 64) {
        if (kPiece <= columns) ptx::st_global_v2_b32(row + column, piece);
      } else if (kPiece <= columns) {
        ptx::st_global_v4_b32(row + column, piece);
      } else if (kBits == 8 && kPiece / 2 <= columns) {
        ptx::st_global_v2_b32(row + column, piece);
      }
    };
    if constexpr (kWidth % (2 * kPiece) != 0) {
      static_assert(kWidth == kPiece);
      store_piece(0);
    } else {
#pragma unroll
      for (int column = 0; column < kWidth; column += 2 * kPiece) {
        if (sectors && first + column + 2 * kPiece <= columns_) {
          if constexpr (kFullSectors) ptx::st_global_v8_b32(row + column, words + column / kPiece * 4);
        } else {
          store_piece(column);
          store_piece(column + kPiece);
        }
      }
    }
  }

  // Any other layout is written one element at a time. Down a column the 32 lanes of a warp write
  // neighbouring elements of a row together.
  template <int kWidth>
  DUALGEMM_DEVICE void store_each(const uint32_t* words, int first) const {
    constexpr int kPerWord = 32 / kBits;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int row = Layout::row(first + i), column = Layout::column(first + i);
      if (row < rows_ && column < columns_)
        elements_[row * pitch_ + column] =
            static_cast<Element>(words[i / kPerWord] >> (i % kPerWord * kBits));
    }
  }

  [[no_unique_address]] Format format_;
  // Whether the lane has a part of C. It is computed before the wait for the accumulators. If the comparison
  // stood at the branch around the stores, ptxas 13.0 would put the second load of tensor memory after the
  // special functions of the gates, and the mma would get the accumulators back that much later.
  bool exists_;
  int rows_, columns_;  // of C, from the lane's first element on
  int64_t pitch_;
  Element* elements_;
};

// The base of a writer that converts results when it stores them: until then they stay in fp32.
struct Fp32Results {
  template <int kWidth>
  struct Results {
    float values[kWidth];
  };
  template <int kWidth>
  DUALGEMM_DEVICE static void put(Results<kWidth>& results, int i, TwoFloats x) {
    results.values[i] = x.first;
    results.values[i + 1] = x.second;
  }
};

// Hands neighbouring results to a writer, which stores them.
template <int kWidth, class Writer>
DUALGEMM_DEVICE void store_floats(const Writer& writer, const float* x, int first) {
  typename Writer::template Results<kWidth> results;
#pragma unroll
  for (int i = 0; i < kWidth; i += 2) writer.put(results, i, {x[i], x[i + 1]});
  writer.store(results, first);
}

// An output says which shared memory it needs for all epilogue warps, and what each of them has to do after
// its last tile. It is also the format of its elements: put() converts two neighbours among the words of a
// lane, where i is even.
//
// Types are the types of C that an instance with this output writes. Instances are the outputs of the
// instances that share a kernel with this output.
struct DirectOutput {
  using Shared = Nothing;
  DUALGEMM_DEVICE static void complete() {}  // the stores are complete when the grid is
};

template <class Self>
struct Output16 : DirectOutput {
  using Types = List<Self>;
  using Instances = List<Self>;
  static constexpr int32_t kBits = 16;
  using Element = uint16_t;
  template <class Traits, class Layout>
  using Writer = DirectWriter<Traits, Self, Layout>;
};

struct Fp16 : Output16<Fp16> {
  static constexpr CType kType = CType::kFp16;
  static constexpr const char* kName = "fp16";
  DUALGEMM_DEVICE Fp16(const Params&, const Tile&) {}
  DUALGEMM_DEVICE static uint32_t pack(float low, float high) { return ptx::cvt_rn_f16x2_f32(high, low); }
  DUALGEMM_DEVICE static void put(uint32_t* words, int i, TwoFloats x) {
    words[i / 2] = pack(x.first, x.second);
  }
};

struct Bf16 : Output16<Bf16> {
  static constexpr CType kType = CType::kBf16;
  static constexpr const char* kName = "bf16";
  DUALGEMM_DEVICE Bf16(const Params&, const Tile&) {}
  DUALGEMM_DEVICE static uint32_t pack(float low, float high) { return ptx::cvt_rn_bf16x2_f32(high, low); }
  DUALGEMM_DEVICE static void put(uint32_t* words, int i, TwoFloats x) {
    words[i / 2] = pack(x.first, x.second);
  }
};

// The output of a kernel that two instances share: the launch says which of the two types it writes. Both
// conversions are made and one is taken: with a branch between them, ptxas 13.0 was no longer sure that all
// lanes of a warp take another branch of the epilogue together.
struct Fp16OrBf16 : Output16<Fp16OrBf16> {
  using Instances = List<Fp16, Bf16>;
  DUALGEMM_DEVICE Fp16OrBf16(const Params& p, const Tile&)
      : bf16(p.c_type == static_cast<int32_t>(CType::kBf16)) {}
  DUALGEMM_DEVICE void put(uint32_t* words, int i, TwoFloats x) const {
    const uint32_t as_fp16 = Fp16::pack(x.first, x.second), as_bf16 = Bf16::pack(x.first, x.second);
    words[i / 2] = bf16 ? as_bf16 : as_fp16;
  }
  bool bf16;
};

struct Fp32 : DirectOutput {
  static constexpr CType kType = CType::kFp32;
  static constexpr const char* kName = "fp32";
  static constexpr int32_t kBits = 32;
  using Element = uint32_t;
  template <class Traits, class Layout>
  using Writer = DirectWriter<Traits, Fp32, Layout>;
  DUALGEMM_DEVICE Fp32(const Params&, const Tile&) {}
  DUALGEMM_DEVICE static void put(uint32_t* words, int i, TwoFloats x) {
    words[i] = __float_as_uint(x.first);
    words[i + 1] = __float_as_uint(x.second);
  }
};

// E4M3 times the encode scale, saturating.
struct Fp8 : DirectOutput {
  static constexpr CType kType = CType::kFp8;
  static constexpr const char* kName = "fp8";
  static constexpr int32_t kBits = 8;
  using Element = uint8_t;
  template <class Traits, class Layout>
  using Writer = DirectWriter<Traits, Fp8, Layout>;
  DUALGEMM_DEVICE Fp8(const Params& p, const Tile& tile) : encode(encode_scale(p.general, tile)) {}
  DUALGEMM_DEVICE void put(uint32_t* words, int i, TwoFloats x) const {
    const uint32_t pair = ptx::cvt_rn_satfinite_e4m3x2_f32(x.second * encode, x.first * encode);
    words[i / 4] = i % 4 == 0 ? pair : words[i / 4] | pair << 16;
  }
  float encode;
};

}  // namespace dualgemm
