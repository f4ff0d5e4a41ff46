// matrices.cpp -- the functions for host memory that take no structure. Each has its rules written down here
// once more, and is called with blocks of the size that the documentation asks for.

#include <cmath>
#include <limits>

#include "fuzz/answer.h"
#include "fuzz/memory.h"
#include "fuzz/targets.h"

namespace dualgemm_fuzz {
namespace {

int32_t usual_or_notable(Bytes& bytes, int32_t usual) {
  return bytes.one_in(8) ? static_cast<int32_t>(notable_integer(bytes, usual)) : usual;
}

// 0 is compact.
int64_t some_pitch(Bytes& bytes, int64_t compact) {
  if (bytes.one_in(8)) return notable_integer(bytes, compact);
  return bytes.one_of<int64_t>({0, compact, compact + bytes.below(20)});
}

// What a call does is what the rules written down here say; a refusal writes nothing, and a success the same
// bytes twice. What is legal and too large for a test is not called.
template <class Call>
void run(bool legal, Memory* memory, Call call) {
  if (legal && !memory->fits()) return;
  const Answer answer = answer_of(call());
  require(answer.good() == legal, "\"%s\", and the rules %s", answer.text.c_str(),
          legal ? "hold" : "do not hold");
  if (!legal) return require(memory->unchanged(), "a refusal writes: \"%s\"", answer.text.c_str());
  const auto first = memory->contents();
  memory->restore();
  require_same(answer, answer_of(call()), "the same call again");
  require(first == memory->contents(), "the same call writes something else");
}

// A matrix of floats, and its packed form.
struct Matrix {
  int32_t rows, k;
  int64_t ldx, ldq;
  float global_scale;
  float* x;
  void *q, *sf;

  Matrix(Bytes& bytes, Memory* memory)
      : rows(usual_or_notable(bytes, bytes.below(bytes.one_of({8, 150})))),
        k(usual_or_notable(bytes, 16 * bytes.below(8))),
        ldx(some_pitch(bytes, k)),
        ldq(some_pitch(bytes, k)),
        global_scale(bytes.one_in(4) ? notable_float(bytes, 1) : 1 + bytes.raw<uint8_t>()) {
    memory->give(&x, Rows{1, rows, k, ldx, 0, 32}.bytes());
    // The bytes between K and the pitch are written in every row.
    memory->give(&q, bytes_of(Wide{rows} * (ldq == 0 ? k : ldq) / 2));
    memory->give(&sf, Factors{1, rows, k, 0, false}.bytes());
    if (reinterpret_cast<uintptr_t>(x) % alignof(float) != 0) x = nullptr;
    // Of a float without the first bit of the exponent.
    if (!bytes.one_in(4)) memory->mask(0, 4, 3, 0xBF);
  }

  bool empty() const { return rows == 0 || k == 0; }
  bool shape() const {
    return rows >= 0 && k >= 0 && k % 16 == 0 && (ldx == 0 || ldx >= k) && (x || empty());
  }
  bool packed() const { return (ldq == 0 || (ldq >= k && ldq % 2 == 0)) && ((q && sf) || empty()); }
  bool scale() const { return global_scale > 0 && global_scale <= std::numeric_limits<float>::max() / 512; }
  bool finite() const {
    if (empty()) return true;
    for (int32_t row = 0; row < rows; ++row)
      for (int32_t i = 0; i < k; ++i)
        if (!std::isfinite(x[row * (ldx == 0 ? k : ldx) + i])) return false;
    return true;
  }
};

}  // namespace

void convert_matrix(Bytes& bytes) {
  Memory memory(bytes);
  const Matrix m(bytes, &memory);
  float* global_scale;
  switch (bytes.below(3)) {
    case 0:
      return run(m.shape() && m.packed() && m.scale() && (!memory.fits() || m.finite()), &memory, [&] {
        return dualgemm_quantize_host(m.x, m.rows, m.k, m.ldx, m.global_scale, m.q, m.ldq, m.sf);
      });
    case 1:
      return run(m.shape() && m.packed() && m.scale(), &memory, [&] {
        return dualgemm_dequantize_host(m.q, m.ldq, m.sf, m.rows, m.k, m.global_scale, m.x, m.ldx);
      });
    default:
      memory.give(&global_scale, sizeof *global_scale);
      if (reinterpret_cast<uintptr_t>(global_scale) % alignof(float) != 0) global_scale = nullptr;
      return run(m.shape() && global_scale && (!memory.fits() || m.finite()), &memory,
                 [&] { return dualgemm_global_scale_host(m.x, m.rows, m.k, m.ldx, global_scale); });
  }
}

void split_factors(Bytes& bytes) {
  const int32_t n = usual_or_notable(bytes, bytes.below(200)),
                k = usual_or_notable(bytes, 16 * bytes.below(12));
  const int32_t order = usual_or_notable(bytes, bytes.below(2));
  Memory memory(bytes);
  const void* sf;
  void *sf1, *sf2;
  memory.give(&sf, Factors{1, 2 * int64_t{n}, k, 0, false}.bytes());
  memory.give(&sf1, Factors{1, n, k, 0, false}.bytes());
  memory.give(&sf2, Factors{1, n, k, 0, false}.bytes());
  const bool legal = (order == DUALGEMM_ROWS_STACKED || order == DUALGEMM_ROWS_INTERLEAVED) && n >= 0 &&
                     n <= INT32_MAX / 2 && k >= 0 && k % 16 == 0 && (n == 0 || k == 0 || (sf && sf1 && sf2));
  run(legal, &memory,
      [&] { return dualgemm_sf_split_host(sf, n, k, static_cast<dualgemm_row_order_t>(order), sf1, sf2); });
}

void import_gguf(Bytes& bytes) {
  const int32_t rows = usual_or_notable(bytes, bytes.below(140)),
                k = usual_or_notable(bytes, 64 * bytes.below(4));
  const int64_t compact = int64_t{k} / 64 * 36;
  const int64_t row_bytes = some_pitch(bytes, compact), ldq = some_pitch(bytes, k);
  const int64_t step = row_bytes == 0 ? compact : row_bytes;
  Memory memory(bytes);
  uint8_t* blocks;
  void *q, *sf;
  memory.give(&blocks, Rows{1, rows, compact, row_bytes, 0, 8}.bytes());
  const bool factors_fit = memory.fits();
  memory.give(&q, bytes_of(Wide{rows} * (ldq == 0 ? k : ldq) / 2));
  memory.give(&sf, Factors{1, rows, k, 0, false}.bytes());
  bool legal = rows >= 0 && k >= 0 && k % 64 == 0;
  if (legal && rows > 0 && k > 0) {
    legal = blocks && q && sf && step >= compact && (ldq == 0 || (ldq >= k && ldq % 2 == 0));
    if (legal && !factors_fit) return;
    if (legal && bytes.one_in(2)) memory.mask(0, 1, 0, 0x7F);
    for (int64_t row = 0; legal && row < rows; ++row)
      for (int64_t i = 0; i < k / 16; ++i) legal = legal && blocks[row * step + i / 4 * 36 + i % 4] <= 0x7F;
  }
  run(legal, &memory, [&] { return dualgemm_import_gguf_host(blocks, row_bytes, rows, k, q, ldq, sf); });
}

}  // namespace dualgemm_fuzz
