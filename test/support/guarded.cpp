// guarded.cpp -- see guarded.h.
#include "support/guarded.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "ref/formats.h"

namespace dualgemm_test {

constexpr uint8_t kPoison = 0xFF;  // a NaN in every type of C but NVFP4, and no factor that a launch writes

// Throws when a byte is left that is not poison: what belongs to a problem has been poisoned again.
static void check_rest(const std::vector<uint8_t>& bytes, int64_t guard, const std::string& what) {
  const auto written = std::find_if(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte != kPoison; });
  if (written != bytes.end())
    throw std::runtime_error("byte " + std::to_string(written - bytes.begin() - guard) + " of " + what +
                             " belongs to no problem and was written");
}

static size_t room(int64_t problems, int64_t stride, int64_t size, int64_t guard) {
  return static_cast<size_t>((problems - 1) * stride + size + 2 * guard);
}

GuardedMatrix::GuardedMatrix(std::string name, const Layout& layout)
    : name_(std::move(name)),
      layout_(layout),
      bytes_(room(layout.problems, layout.stride * bits_of(layout.dtype) / 8,
                  layout.rows * layout.pitch * bits_of(layout.dtype) / 8, kGuard)) {
  poison();
}

void GuardedMatrix::poison() { bytes_.upload(std::vector<uint8_t>(bytes_.size(), kPoison)); }

std::vector<Output> GuardedMatrix::download(const std::vector<Rows>& rows) const {
  std::vector<uint8_t> bytes = bytes_.host();
  std::vector<Output> out;
  const int64_t bits = bits_of(layout_.dtype), row_bytes = layout_.n * bits / 8;
  for (size_t i = 0; i < rows.size(); ++i) {
    Output& one = out.emplace_back(Output{rows[i].count, layout_.n, layout_.dtype, {}, 1, 1, {}});
    one.bits.resize(rows[i].count * row_bytes / 2);
    auto to = reinterpret_cast<uint8_t*>(one.bits.data());
    for (int64_t row = 0; row < rows[i].count; ++row, to += row_bytes) {
      const int64_t element = i * layout_.stride + (rows[i].first + row) * layout_.pitch;
      const auto from = bytes.begin() + kGuard + element * bits / 8;
      std::copy(from, from + row_bytes, to);
      std::fill(from, from + row_bytes, kPoison);
    }
  }
  check_rest(bytes, kGuard,
             name_ + " (" + std::to_string(layout_.pitch * bits / 8) + " bytes from row to row, " +
                 std::to_string(layout_.stride * bits / 8) + " from problem to problem)");
  return out;
}

GuardedFactors::GuardedFactors(const Layout& layout)
    : layout_(layout),
      bytes_(room(layout.problems, layout.stride, ref::sf_bytes(128 * layout.blocks, layout.n), kGuard)) {
  poison();
}

void GuardedFactors::poison() { bytes_.upload(std::vector<uint8_t>(bytes_.size(), kPoison)); }

std::vector<std::vector<uint8_t>> GuardedFactors::download(const std::vector<Rows>& rows) const {
  std::vector<uint8_t> bytes = bytes_.host();
  std::vector<std::vector<uint8_t>> out;
  const int64_t columns = layout_.n / ref::kBlock, padded_columns = (columns + 3) / 4 * 4;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<uint8_t>& one = out.emplace_back(rows[i].count * columns);
    const size_t first = kGuard + i * layout_.stride + rows[i].first * ref::sf_bytes(128, layout_.n);
    for (int64_t row = 0; row < (rows[i].count + 127) / 128 * 128; ++row)
      for (int64_t column = 0; column < padded_columns; ++column) {
        uint8_t& byte = bytes.at(first + ref::sf_offset(layout_.n, row, column));
        const bool padding = row >= rows[i].count || column >= columns;
        if (!padding) one[row * columns + column] = byte;
        if (padding && byte != 0)
          throw std::runtime_error("padding of the factors, row " + std::to_string(row) + ", block " +
                                   std::to_string(column) + " of problem " + std::to_string(i) + ", is " +
                                   std::to_string(byte));
        byte = kPoison;
      }
  }
  check_rest(bytes, kGuard,
             "the factors of C (" + std::to_string(layout_.stride) + " from problem to problem)");
  return out;
}

}  // namespace dualgemm_test
