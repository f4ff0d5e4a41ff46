// store.h -- the tuning file that grows while dualgemm-tune runs. It is replaced as a whole, so that there is
// a good file at any time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "dualgemm.h"
#include "host/common/tuning_file.h"

namespace bench {

// What a file is for: this GPU, its driver, this library.
struct StorePlace {
  std::string gpu, library;
  int32_t sms, driver;
};

class Store {
 public:
  // Takes over the entries of the file, unless `fresh` or there is none. Throws std::runtime_error for a file
  // that is damaged or for something else.
  Store(std::string path, StorePlace place, bool fresh);

  // Returns whether there is an entry for these launches.
  bool has(const dualgemm::TuningLine& key) const;
  // Adds an entry and a comment, or replaces that of the same launches, and writes the file.
  void add(const dualgemm::TuningLine& entry, const std::string& comment);
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    dualgemm::TuningLine line;  // its instance is the next field
    std::string instance, comment;
  };
  void read();
  void write() const;
  dualgemm::TuningPlace place() const { return {place_.gpu, place_.library, place_.sms, place_.driver}; }

  std::string path_;
  StorePlace place_;
  std::vector<Entry> entries_;
};

// Returns the key of a shape: an entry without an instance.
dualgemm::TuningLine key_of(const Shape& shape, const Epilogue& epilogue, bool general);

}  // namespace bench
