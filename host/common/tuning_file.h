// tuning_file.h -- the text of a tuning file (host/TUNING.md): read and written here, by the library and by
// dualgemm-tune. Nothing here allocates. A file is
//
//   dualgemm tuning 1
//   gpu NVIDIA H100 80GB HBM3
//   sms 132
//   driver 13000
//   library 0.2.0-6a1f3c5d7e9b2048
//   2 NVFP4 BF16 plain dense 1 4096 7168 256 NAME
//   end 1 0f1e2d3c4b5a6978
//
// What follows a # is a comment. The last line counts the entries, and has a sum of all bytes before it.
#pragma once

#include <cstdint>
#include <string_view>

#include "host/common/text.h"
#include "host/include/dualgemm.h"

namespace dualgemm {

// For what its times were measured.
struct TuningPlace {
  std::string_view gpu, library;
  int32_t sms = 0, driver = 0;
  int32_t gpu_line = 0, driver_line = 0, library_line = 0;  // where they were read; sms follows the gpu
};

// One entry: for launches of this kind and size the instance of this name.
struct TuningLine {
  int32_t products = 0, a_dtype = 0, c_dtype = 0;
  bool general = false, grouped = false;
  int32_t problems = 0;  // of the batch, or groups
  int32_t n = 0, k = 0;
  int64_t rows = 0;  // of A, of all problems together
  std::string_view instance;
};

// Reads a text line by line. After `false` there is no more, or fault() says what is wrong with line().
class TuningReader {
 public:
  explicit TuningReader(std::string_view text) : text_(text), rest_(text) {}

  bool read_place(TuningPlace* place);
  bool read_entry(TuningLine* entry);

  const char* fault() const { return fault_.get(); }  // "" where there is none
  int32_t line() const { return line_; }

 private:
  bool next_line(std::string_view* line);
  bool read_end(std::string_view line);
  [[gnu::format(printf, 2, 3)]] bool refuse(const char* format, ...);

  std::string_view text_, rest_;
  Text<256> fault_;
  int32_t line_ = 0, entries_ = 0;
  bool ended_ = false;
};

// A sum of bytes, in which a byte that is lost or changed shows (FNV-1a, of 64 bits).
class TuningSum {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) sum_ = (sum_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  }
  uint64_t get() const { return sum_; }

 private:
  uint64_t sum_ = 0xCBF29CE484222325u;
};

// The lines of a file, each with its end: those before the entries, one entry, and the last one, which gets
// the number of entries and the sum of all lines before it.
Text<512> tuning_heading(const TuningPlace& place);
Text<256> tuning_entry(const TuningLine& entry);
Text<64> tuning_end(int32_t entries, const TuningSum& sum);

}  // namespace dualgemm
