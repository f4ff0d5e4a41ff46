// record.h -- what the conformance program produces: named records of bytes, identical on every machine that
// executes PTX as the ISA says. A record is exact (compared bit for bit), a table of approximate results
// (compared within the ISA's error bound) or free (the ISA leaves it open: printed, never compared). Cases
// register themselves; run() executes them by name in alphabetical order.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace conformance {

using Bytes = std::vector<uint8_t>;

struct Record {
  enum class Kind { kExact, kTable, kFree };
  Kind kind = Kind::kExact;
  std::string name;  // suite/case
  Bytes bytes;
  Bytes inputs;       // of a table
  std::string error;  // not empty when the device refused or failed: then there are no bytes
};

class Recorder {
 public:
  template <class T>
  void exact(std::string name, const std::vector<T>& values) {
    records.push_back({Record::Kind::kExact, std::move(name), bytes_of(values), {}, {}});
  }
  template <class T, class X>
  void table(std::string name, const std::vector<T>& values, const std::vector<X>& inputs) {
    records.push_back({Record::Kind::kTable, std::move(name), bytes_of(values), bytes_of(inputs), {}});
  }
  template <class T>
  void free(std::string name, const std::vector<T>& values) {
    records.push_back({Record::Kind::kFree, std::move(name), bytes_of(values), {}, {}});
  }

  std::vector<Record> records;

 private:
  template <class T>
  static Bytes bytes_of(const std::vector<T>& values) {
    const auto* first = reinterpret_cast<const uint8_t*>(values.data());
    return Bytes(first, first + values.size() * sizeof(T));
  }
};

using Case = std::function<void(Recorder&)>;

// A file-scope object of this type registers a case. One case may add several records.
struct Register {
  Register(std::string name, Case body);
  // Where a file has hundreds of cases, this form keeps its initialisation small and its compilation short.
  Register(const char* name, void (*body)(Recorder&));
};

// Runs every case whose name begins with `prefix`. A case that throws leaves one record with the error; then
// `recover` is called, which makes the device usable again or exits. `each` sees every record when its case
// has ended, so that a crash costs only what came after it.
std::vector<Record> run(const std::string& prefix, const std::function<void()>& recover,
                        const std::function<void(const Record&)>& each);

// Returns the hash FNV-1a. Two records of one length that differ in a single byte never have the same hash,
// others only by chance.
uint64_t hash_of(const Bytes& bytes);

// One line. It has a name without "suite/", which a heading above the lines of a suite says once.
//   CASE HASH              an exact record by its hash
//   CASE =BYTES            one of at most eight bytes, itself
//   table CASE HASH TEXT   a table by its hash and as table.h writes it
//   free CASE =BYTES
//   CASE error WHY
std::string line(const Record& record);
std::string heading(const Record& record);

// Writes the beginning (128 KiB at most) of every record, for looking at a difference: the record's name, how
// many bytes it has and how many of them follow here, and one hash for each of at most 32 equal blocks of the
// whole record, which tell where a record differs that does not fit; then a newline and the bytes.
void write_images(std::ostream& out, const std::vector<Record>& records);

}  // namespace conformance
