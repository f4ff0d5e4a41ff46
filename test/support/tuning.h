// tuning.h -- tuning files for the tests, written as host/TUNING.md says, by code that shares nothing with
// the library's.
#pragma once

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/device_set.h"

namespace dualgemm_test {

// FNV-1a of 64 bits.
inline uint64_t sum_of(const std::string& bytes) {
  uint64_t sum = 14695981039346656037u;
  for (const char byte : bytes) {
    sum ^= static_cast<unsigned char>(byte);
    sum *= 1099511628211u;
  }
  return sum;
}

// Returns the last line of a file with these lines before it.
inline std::string tuning_end(const std::string& before, size_t entries) {
  char sum[17];
  std::snprintf(sum, sizeof sum, "%016" PRIx64, sum_of(before));
  return "end " + std::to_string(entries) + " " + sum + "\n";
}

inline dualgemm_tuning_info_t tuning_info() {
  dualgemm_tuning_info_t info;
  dualgemm_tuning_info_init(&info);
  check_status(dualgemm_tuning_info(&info));
  return info;
}

inline dualgemm_device_t current_device() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  return device;
}

// What a file says of this machine and library, whose key a process without a device does not know.
inline std::string tuning_heading(const std::string& library) {
  const dualgemm_device_t device = current_device();
  return "dualgemm tuning 1\ngpu " + std::string(device.name) + "\nsms " + std::to_string(device.sm_count) +
         "\ndriver " + std::to_string(device.driver_version) + "\nlibrary " + library + "\n";
}

// Returns a whole file with these entries, each without its end of line.
inline std::string tuning_text(const std::vector<std::string>& entries,
                               const std::string& library = tuning_info().library) {
  std::string text = tuning_heading(library);
  for (const std::string& entry : entries) text += entry + "\n";
  return text + tuning_end(text, entries.size());
}

// A file for the life of an object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text, const std::string& name = "tuning")
      : path_(std::filesystem::temp_directory_path() / (name + "." + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A file that is in force for the life of an object.
class Tuned {
 public:
  explicit Tuned(const std::vector<std::string>& entries) : file_(tuning_text(entries)) {
    check_status(dualgemm_load_tuning(file_.path().c_str()));
  }
  ~Tuned() { dualgemm_load_tuning(nullptr); }

 private:
  TemporaryFile file_;
};

}  // namespace dualgemm_test
