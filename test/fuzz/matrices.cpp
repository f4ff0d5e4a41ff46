// matrices.cpp -- the functions for host memory that take no structure. Each has its rules written down here
// once more, and is called with blocks of the size that the documentation asks for.

#include <algorithm>
#include <cmath>
#include <initializer_list>
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
  return bytes.one_of<int64_t>({0, compact, compact + bytes.below(20), compact + 16 * bytes.below(80)});
}

// The bytes of a tensor that a call reads or writes: rows, at a distance from each other.
struct Touched {
  const void* at;
  int64_t rows, step, row_bytes;

  uintptr_t row(int64_t i) const {
    return reinterpret_cast<uintptr_t>(at) + static_cast<uintptr_t>(i * step);
  }
  uintptr_t end() const { return row(rows - 1) + static_cast<uintptr_t>(row_bytes); }
};

// Of rows at unequal distances nobody says that those in gaps of others are told from those that are not.
enum class Overlap { kNone, kMaybe, kSome };

Overlap overlap(const Touched& x, const Touched& y) {
  if (x.end() <= y.row(0) || y.end() <= x.row(0)) return Overlap::kNone;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < y.rows; ++j)
      if (x.row(i) < y.row(j) + static_cast<uintptr_t>(y.row_bytes) &&
          y.row(j) < x.row(i) + static_cast<uintptr_t>(x.row_bytes))
        return Overlap::kSome;
  return x.rows == 1 || y.rows == 1 || x.step == y.step ? Overlap::kNone : Overlap::kMaybe;
}

// Of an output with an input, or of two outputs, what is worst.
Overlap overlap(std::initializer_list<Touched> inputs, std::initializer_list<Touched> outputs) {
  Overlap worst = Overlap::kNone;
  for (const Touched* out = outputs.begin(); out != outputs.end(); ++out) {
    for (const Touched& input : inputs) worst = std::max(worst, overlap(*out, input));
    for (const Touched* other = out + 1; other != outputs.end(); ++other)
      worst = std::max(worst, overlap(*out, *other));
  }
  return worst;
}

// What a call does is what the rules written down here say; a refusal writes nothing, and a success the same
// bytes twice. What is legal and too large for a test is not called.
template <class Call>
void run(bool legal, Overlap overlaps, Memory* memory, Call call) {
  if (legal && (!memory->fits() || overlaps == Overlap::kMaybe)) return;
  const Answer answer = answer_of(call());
  if (legal && overlaps == Overlap::kSome) {
    require(answer.status == DUALGEMM_STATUS_ALIASING, "tensors overlap: %s \"%s\"",
            dualgemm_status_name(answer.status), answer.text.c_str());
    legal = false;
  }
  require(answer.good() == legal, "\"%s\", and the rules %s", answer.text.c_str(),
          legal ? "hold" : "do not hold");
  if (!legal) return require(memory->unchanged(), "a refusal writes: \"%s\"", answer.text.c_str());
  const auto first = memory->contents();
  memory->restore();
  require_same(answer, answer_of(call()), "the same call again");
  require(first == memory->contents(), "the same call writes something else");
}

// Rows take less than this together.
bool fit_a_matrix(int32_t rows, int64_t step, int64_t bits) {
  return Wide{rows} * step * bits < Wide{8} << 48;
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
    // Rows of q may lie between those of x.
    if (bytes.one_in(8) && step_x() > 0 && step_x() < 1000) ldq = 8 * step_x();
    // The bytes between K and the pitch are written in every row.
    const size_t x_size = Rows{1, rows, k, ldx, 0, 32}.bytes(), q_size = bytes_of(Wide{rows} * step_q() / 2),
                 sf_size = Factors{1, rows, k, 0, false}.bytes();
    memory->give(&x, x_size);
    memory->give(&q, q_size);
    memory->give(&sf, sf_size);
    switch (bytes.below(3)) {
      case 0: memory->give_together(&x, x_size, &q, q_size, alignof(float)); break;
      case 1: memory->give_together(&x, x_size, &sf, sf_size, alignof(float)); break;
      default: memory->give_together(&q, q_size, &sf, sf_size);
    }
    if (reinterpret_cast<uintptr_t>(x) % alignof(float) != 0) x = nullptr;
    // Of a float without the first bit of the exponent.
    if (x && !bytes.one_in(4)) memory->mask(reinterpret_cast<uint8_t*>(x) + 3, 4, 0xBF);
  }

  int64_t step_x() const { return ldx == 0 ? k : ldx; }
  int64_t step_q() const { return ldq == 0 ? k : ldq; }
  bool empty() const { return rows == 0 || k == 0; }
  bool shape() const {
    return rows >= 0 && k >= 0 && k % 16 == 0 && step_x() >= k && fit_a_matrix(rows, step_x(), 32) &&
           (x || empty());
  }
  bool packed() const {
    return step_q() >= k && step_q() % 2 == 0 && fit_a_matrix(rows, step_q(), 4) && ((q && sf) || empty());
  }
  bool scale() const { return global_scale > 0 && global_scale <= std::numeric_limits<float>::max() / 512; }
  bool finite() const {
    if (empty()) return true;
    for (int32_t row = 0; row < rows; ++row)
      for (int32_t i = 0; i < k; ++i)
        if (!std::isfinite(x[row * step_x() + i])) return false;
    return true;
  }

  Touched all_x() const { return {x, rows, step_x() * 4, int64_t{k} * 4}; }
  Touched codes() const { return {q, rows, step_q() / 2, k / 2}; }
  Touched codes_and_gaps() const { return {q, 1, 0, rows * step_q() / 2}; }
  Touched factors() const { return {sf, 1, 0, static_cast<int64_t>(Factors{1, rows, k, 0, false}.bytes())}; }
};

}  // namespace

void convert_matrix(Bytes& bytes) {
  Memory memory(bytes);
  const Matrix m(bytes, &memory);
  float* global_scale;
  const bool packed = m.shape() && m.packed() && m.scale(), placed = packed && memory.fits() && !m.empty();
  switch (bytes.below(3)) {
    case 0:
      return run(
          packed && (!memory.fits() || m.finite()),
          placed ? overlap({m.all_x()}, {m.codes_and_gaps(), m.factors()}) : Overlap::kNone, &memory,
          [&] { return dualgemm_quantize_host(m.x, m.rows, m.k, m.ldx, m.global_scale, m.q, m.ldq, m.sf); });
    case 1:
      return run(packed, placed ? overlap({m.codes(), m.factors()}, {m.all_x()}) : Overlap::kNone, &memory,
                 [&] {
                   return dualgemm_dequantize_host(m.q, m.ldq, m.sf, m.rows, m.k, m.global_scale, m.x, m.ldx);
                 });
    default:
      memory.give(&global_scale, sizeof *global_scale);
      if (reinterpret_cast<uintptr_t>(global_scale) % alignof(float) != 0) global_scale = nullptr;
      return run(m.shape() && global_scale && (!memory.fits() || m.finite()), Overlap::kNone, &memory,
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
  const size_t both = Factors{1, 2 * int64_t{n}, k, 0, false}.bytes(),
               half = Factors{1, n, k, 0, false}.bytes();
  memory.give(&sf, both);
  memory.give(&sf1, half);
  memory.give(&sf2, half);
  switch (bytes.below(3)) {
    case 0: memory.give_together(&sf, both, &sf1, half); break;
    case 1: memory.give_together(&sf, both, &sf2, half); break;
    default: memory.give_together(&sf1, half, &sf2, half);
  }
  const bool empty = n == 0 || k == 0;
  const bool legal = (order == DUALGEMM_ROWS_STACKED || order == DUALGEMM_ROWS_INTERLEAVED) && n >= 0 &&
                     n <= INT32_MAX / 2 && k >= 0 && k % 16 == 0 && (empty || (sf && sf1 && sf2));
  const auto touched = [](const void* at, size_t size) {
    return Touched{at, 1, 0, static_cast<int64_t>(size)};
  };
  run(legal,
      legal && !empty && memory.fits()
          ? overlap({touched(sf, both)}, {touched(sf1, half), touched(sf2, half)})
          : Overlap::kNone,
      &memory,
      [&] { return dualgemm_sf_split_host(sf, n, k, static_cast<dualgemm_row_order_t>(order), sf1, sf2); });
}

namespace {

struct Gguf {
  int32_t rows, k;
  int64_t row_bytes, ldq;
  uint8_t* blocks;
  void *q, *sf;
  bool blocks_fit;

  Gguf(Bytes& bytes, Memory* memory)
      : rows(usual_or_notable(bytes, bytes.below(140))),
        k(usual_or_notable(bytes, 64 * bytes.below(4))),
        row_bytes(some_pitch(bytes, compact())),
        ldq(some_pitch(bytes, k)) {
    const size_t size = Rows{1, rows, compact(), row_bytes, 0, 8}.bytes(),
                 q_size = bytes_of(Wide{rows} * step_q() / 2),
                 sf_size = Factors{1, rows, k, 0, false}.bytes();
    memory->give(&blocks, size);
    blocks_fit = memory->fits();
    memory->give(&q, q_size);
    memory->give(&sf, sf_size);
    switch (bytes.below(3)) {
      case 0: memory->give_together(&blocks, size, &q, q_size); break;
      case 1: memory->give_together(&blocks, size, &sf, sf_size); break;
      default: memory->give_together(&q, q_size, &sf, sf_size);
    }
    if (blocks && bytes.one_in(2)) memory->mask(blocks, 1, 0x7F);
  }

  int64_t compact() const { return int64_t{k} / 64 * 36; }
  int64_t step() const { return row_bytes == 0 ? compact() : row_bytes; }
  int64_t step_q() const { return ldq == 0 ? k : ldq; }
  bool shape() const { return rows >= 0 && k >= 0 && k % 64 == 0; }
  bool empty() const { return rows == 0 || k == 0; }
  bool tensors() const {
    return blocks && q && sf && step() >= compact() && fit_a_matrix(rows, step(), 8) && step_q() >= k &&
           step_q() % 2 == 0 && fit_a_matrix(rows, step_q(), 4);
  }
  bool factors() const {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < k / 16; ++i)
        if (blocks[row * step() + i / 4 * 36 + i % 4] > 0x7F) return false;
    return true;
  }
  Overlap overlaps() const {
    return overlap({{blocks, rows, step(), compact()}},
                   {{q, 1, 0, rows * step_q() / 2},
                    {sf, 1, 0, static_cast<int64_t>(Factors{1, rows, k, 0, false}.bytes())}});
  }
};

}  // namespace

void import_gguf(Bytes& bytes) {
  Memory memory(bytes);
  const Gguf g(bytes, &memory);
  bool legal = g.shape() && (g.empty() || g.tensors());
  if (legal && !g.empty() && !g.blocks_fit) return;
  const bool placed = legal && !g.empty() && memory.fits();
  const Overlap overlaps = placed ? g.overlaps() : Overlap::kNone;
  legal = legal && (g.empty() || g.factors());
  run(legal, overlaps, &memory,
      [&] { return dualgemm_import_gguf_host(g.blocks, g.row_bytes, g.rows, g.k, g.q, g.ldq, g.sf); });
}

namespace {

struct MxWeights {
  int32_t rows, k;
  int64_t ldq, pitch;
  uint8_t *q, *scales;
  void* sf;
  float* scale;
  bool inputs_fit;

  MxWeights(Bytes& bytes, Memory* memory)
      : rows(usual_or_notable(bytes, bytes.below(140))),
        k(usual_or_notable(bytes, 32 * bytes.below(6))),
        ldq(some_pitch(bytes, k)),
        pitch(some_pitch(bytes, k / 32)) {
    const size_t q_size = Rows{1, rows, k, ldq, 0, 4}.bytes(),
                 scales_size = Rows{1, rows, k / 32, pitch, 0, 8}.bytes(),
                 sf_size = Factors{1, rows, k, 0, false}.bytes();
    memory->give(&q, q_size);
    memory->give(&scales, scales_size);
    inputs_fit = memory->fits();
    memory->give(&sf, sf_size);
    scale = &number;
    if (bytes.one_in(64)) scale = nullptr;
    switch (bytes.below(3)) {
      case 0: memory->give_together(&q, q_size, &scales, scales_size); break;
      case 1: memory->give_together(&q, q_size, &sf, sf_size); break;
      default: memory->give_together(&scales, scales_size, &sf, sf_size);
    }
    // Random bytes are too far apart.
    if (scales && bytes.one_in(2)) memory->mask(scales, 1, bytes.one_of<uint8_t>({0x0F, 0x8F, 0x1F}));
    if (q && bytes.one_in(4)) memory->mask(q, 1, 0x88);
  }

  int64_t step_q() const { return ldq == 0 ? k : ldq; }
  int64_t step() const { return pitch == 0 ? k / 32 : pitch; }
  bool shape() const { return rows >= 0 && k >= 0 && k % 32 == 0; }
  bool empty() const { return rows == 0 || k == 0; }
  bool tensors() const {
    return q && scales && sf && scale && step_q() >= k && step_q() % 2 == 0 &&
           fit_a_matrix(rows, step_q(), 4) && step() >= k / 32 && fit_a_matrix(rows, step(), 8);
  }
  bool factors() const {
    int least = 255, most = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t block = 0; block < k / 32; ++block) {
        const int power = scales[row * step() + block];
        if (power == 255) return false;
        int magnitudes = 0;
        for (int64_t i = 0; i < 16; ++i) magnitudes |= q[row * step_q() / 2 + block * 16 + i] & 0x77;
        if (magnitudes == 0) continue;
        least = std::min(least, power), most = std::max(most, power);
      }
    return most - least <= 17;
  }
  Overlap overlaps() const {
    return overlap({{q, rows, step_q() / 2, k / 2}, {scales, rows, step(), k / 32}},
                   {{sf, 1, 0, static_cast<int64_t>(Factors{1, rows, k, 0, false}.bytes())}});
  }

 private:
  float number = 0;
};

}  // namespace

void import_mxfp4(Bytes& bytes) {
  Memory memory(bytes);
  const MxWeights m(bytes, &memory);
  bool legal = m.shape() && (m.empty() || m.tensors());
  if (legal && !m.empty() && !m.inputs_fit) return;
  const bool placed = legal && !m.empty() && memory.fits();
  const Overlap overlaps = placed ? m.overlaps() : Overlap::kNone;
  legal = legal && (m.empty() || m.factors());
  run(legal, overlaps, &memory,
      [&] { return dualgemm_import_mxfp4_host(m.q, m.ldq, m.scales, m.pitch, m.rows, m.k, m.sf, m.scale); });
}

}  // namespace dualgemm_fuzz
