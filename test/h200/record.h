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

namespace h200 {

using Bytes = std::vector<uint8_t>;

struct Record {
  enum class Kind { kExact, kTable, kFree };
  Kind kind = Kind::kExact;
  std::string name;  // suite/case
  Bytes bytes;
  std::string error;  // not empty when the device refused or failed: then there are no bytes
};

class Recorder {
 public:
  void exact(std::string name, Bytes bytes) { add(Record::Kind::kExact, std::move(name), std::move(bytes)); }
  void table(std::string name, Bytes bytes) { add(Record::Kind::kTable, std::move(name), std::move(bytes)); }
  void free(std::string name, Bytes bytes) { add(Record::Kind::kFree, std::move(name), std::move(bytes)); }
  template <class T>
  void exact(std::string name, const std::vector<T>& values) {
    const auto* first = reinterpret_cast<const uint8_t*>(values.data());
    exact(std::move(name), Bytes(first, first + values.size() * sizeof(T)));
  }

  std::vector<Record> records;

 private:
  void add(Record::Kind kind, std::string name, Bytes bytes) {
    records.push_back({kind, std::move(name), std::move(bytes), {}});
  }
};

using Case = std::function<void(Recorder&)>;

// A file-scope object of this type registers a case. One case may add several records.
struct Register {
  Register(std::string name, Case body);
};

// Every case whose name begins with `prefix`. A case that throws leaves one record with the error; then
// `recover` is called, which makes the device usable again or exits. `each` sees every record when its case
// has ended, so that a crash costs only what came after it.
std::vector<Record> run(const std::string& prefix, const std::function<void()>& recover,
                        const std::function<void(const Record&)>& each);

// One line: kind, name, byte count and the bytes in hexadecimal; long exact records as a 128-bit hash and one
// 32-bit hash for each of at most 32 equal blocks, so that a difference can be located.
std::string line(const Record& record);

// The beginning (128 KiB at most) of every record, for looking at a difference: its name, the count of bytes
// that follow, in decimal, a newline and the bytes.
void write_images(std::ostream& out, const std::vector<Record>& records);

}  // namespace h200
