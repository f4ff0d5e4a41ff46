// convert.h -- what the tests of the kernels that move factors and quantise share: a division of rows into
// problems, and buffers of which every byte is compared, with guards around them.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/device_memory.h"
#include "support/rng.h"

namespace dualgemm_test {

// The rows in use of one problem, and the first of their blocks of 128 rows of factors.
struct InUse {
  int64_t matrix, first, count, block;
};

// Rows of one or several problems, and the array that says so.
struct Division {
  dualgemm_group_mode_t mode = DUALGEMM_GROUP_NONE;
  int32_t rows = 0;
  int32_t batch = 1;
  std::vector<int32_t> group_rows;
  std::vector<InUse> in_use;
  int64_t matrices = 1, blocks = 0;  // of each matrix

  int32_t groups() const { return mode == DUALGEMM_GROUP_NONE ? 0 : static_cast<int32_t>(in_use.size()); }
  std::string text() const {
    std::string out = std::to_string(rows) + " rows, mode " + std::to_string(mode) + ", of";
    for (const InUse& use : in_use) out += " " + std::to_string(use.count);
    return out;
  }
};

inline Division batch_of(int32_t rows, int32_t batch = 1) {
  Division d{DUALGEMM_GROUP_NONE, rows, batch, {}, {}, batch, (rows + 127) / 128};
  for (int64_t i = 0; i < batch; ++i) d.in_use.push_back({i, 0, rows, 0});
  return d;
}

inline Division masked(const std::vector<int32_t>& counts, int32_t spare) {
  const int32_t rows = *std::max_element(counts.begin(), counts.end()) + spare;
  const auto groups = static_cast<int64_t>(counts.size());
  Division d{DUALGEMM_GROUP_MASKED, rows, 1, counts, {}, groups, (rows + 127) / 128};
  for (int64_t i = 0; i < groups; ++i) d.in_use.push_back({i, 0, counts[static_cast<size_t>(i)], 0});
  return d;
}

// With room for as many blocks as any division of the rows can have.
inline Division offsets(const std::vector<int32_t>& counts, int32_t first, int32_t spare) {
  Division d{DUALGEMM_GROUP_OFFSETS, 0, 1, {first}, {}, 1, 0};
  int64_t row = first, block = 0;
  for (const int32_t count : counts) {
    d.in_use.push_back({0, row, count, block});
    row += count;
    block += (count + 127) / 128;
    d.group_rows.push_back(static_cast<int32_t>(row));
  }
  d.rows = static_cast<int32_t>(row) + spare;
  d.blocks = (d.rows + 127 * std::min<int64_t>(d.rows, static_cast<int64_t>(counts.size()))) / 128;
  return d;
}

// One or several problems of every kind, with rows around the edges of lines, warps and blocks.
inline std::vector<Division> divisions() {
  return {batch_of(1),
          batch_of(31),
          batch_of(128),
          batch_of(300),
          batch_of(97, 3),
          masked({5, 0, 130, 128}, 9),
          masked({0, 0}, 140),
          offsets({33, 0, 129, 1}, 0, 0),
          offsets({0, 64, 300}, 7, 200)};
}

// So many matrices of one row, or groups, some of them without rows.
inline std::vector<Division> many_problems(int32_t problems) {
  std::vector<int32_t> counts(static_cast<size_t>(problems), 1);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = i % 7 == 3 ? 0 : i % 5 == 1 ? 9 : 1;
  return {batch_of(1, problems), masked(counts, 0), offsets(counts, 2, 3)};
}

// Bytes between guards: what a call may write is poison before it, and everything is compared after it.
class Buffer {
 public:
  static constexpr size_t kGuard = 512;
  static constexpr uint8_t kPoison = 0xEE;
  // `shift` moves the start off an alignment.
  explicit Buffer(size_t size, size_t shift = 0)
      : shift_(shift), bytes_(size + 2 * kGuard + shift, kPoison) {}

  // Aligned to 16 bytes, but for the shift.
  uint8_t* host() { return bytes_.data() + kGuard + shift_; }
  const uint8_t* host() const { return bytes_.data() + kGuard + shift_; }
  size_t size() const { return bytes_.size() - 2 * kGuard - shift_; }
  template <class T = uint8_t>
  T* data() {
    return reinterpret_cast<T*>(host());
  }
  template <class T>
  void put(int64_t i, T value) {
    if (static_cast<size_t>(i + 1) * sizeof value > size()) throw std::logic_error("put: beyond the buffer");
    std::memcpy(host() + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
  template <class T>
  T get(int64_t i) const {
    T value;
    std::memcpy(&value, host() + i * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  }
  const std::vector<uint8_t>& all() const { return bytes_; }

 private:
  size_t shift_;
  std::vector<uint8_t> bytes_;
};

// A copy on the device. Its start is aligned to 256 bytes, but for the shift.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const Buffer& from)
      : offset_(static_cast<size_t>(from.host() - from.all().data())), bytes_(from.all()) {}
  template <class T = uint8_t>
  T* data() const {
    return reinterpret_cast<T*>(bytes_.data() + offset_);
  }
  void upload(const Buffer& from) { bytes_.upload(from.all()); }
  // Says where the first byte is that differs, counted from the start; empty: none does.
  std::string difference(const Buffer& expected) const {
    const std::vector<uint8_t> got = bytes_.host();
    const auto [a, b] = std::mismatch(got.begin(), got.end(), expected.all().begin());
    if (a == got.end()) return "";
    return "byte " + std::to_string(a - got.begin() - static_cast<int64_t>(offset_)) + " is " +
           std::to_string(*a) + ", expected " + std::to_string(*b);
  }

 private:
  size_t offset_;
  DeviceArray<uint8_t> bytes_;
};

// The same of bytes on the host.
inline std::string difference(const Buffer& got, const Buffer& expected) {
  const auto [a, b] = std::mismatch(got.all().begin(), got.all().end(), expected.all().begin());
  if (a == got.all().end()) return "";
  return "byte " + std::to_string(a - got.all().begin() - (got.host() - got.all().data())) + " is " +
         std::to_string(*a) + ", expected " + std::to_string(*b);
}

}  // namespace dualgemm_test
