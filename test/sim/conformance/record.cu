// record.cu -- registration, execution and the text form of records. This is host code only.
#include "test/sim/conformance/record.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <ostream>

#include "test/sim/conformance/table.h"

namespace conformance {

constexpr size_t kShortBytes = 8, kBlocks = 32, kImageBytes = 128 << 10;

static std::map<std::string, Case>& cases() {
  static std::map<std::string, Case> all;
  return all;
}

static uint64_t fnv(const uint8_t* bytes, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

static std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

static std::string hex(const Bytes& bytes) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

static std::string block_hashes(const Bytes& bytes) {
  std::string out;
  const size_t block = (bytes.size() + kBlocks - 1) / kBlocks;
  for (size_t at = 0; at < bytes.size(); at += block)
    out += ' ' + hex(fnv(bytes.data() + at, std::min(block, bytes.size() - at)));
  return out;
}

Register::Register(std::string name, Case body) {
  if (!cases().emplace(name, std::move(body)).second) {
    std::fprintf(stderr, "two cases are named %s\n", name.c_str());
    std::terminate();
  }
}

Register::Register(const char* name, void (*body)(Recorder&)) : Register(std::string(name), Case(body)) {}

std::vector<Record> run(const std::string& prefix, const std::function<void()>& recover,
                        const std::function<void(const Record&)>& each) {
  Recorder recorder;
  for (const auto& [name, body] : cases()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const size_t first = recorder.records.size();
    try {
      body(recorder);
    } catch (const std::exception& error) {
      recorder.records.push_back({Record::Kind::kExact, name, {}, {}, error.what()});
      recover();
    }
    for (size_t i = first; i < recorder.records.size(); ++i) each(recorder.records[i]);
  }
  return std::move(recorder.records);
}

uint64_t hash_of(const Bytes& bytes) { return fnv(bytes.data(), bytes.size()); }

std::string heading(const Record& record) { return "# " + record.name.substr(0, record.name.find('/')); }

std::string line(const Record& record) {
  const std::string name = record.name.substr(record.name.find('/') + 1) + ' ';
  if (!record.error.empty()) return name + "error " + record.error.substr(0, record.error.find('\n'));
  const std::string hash = hex(hash_of(record.bytes));
  if (record.kind == Record::Kind::kTable)
    return "table " + name + hash + ' ' + table_text(record.name, record.inputs, record.bytes);
  if (record.kind == Record::Kind::kFree) return "free " + name + '=' + hex(record.bytes);
  return name + (record.bytes.size() <= kShortBytes ? '=' + hex(record.bytes) : hash);
}

void write_images(std::ostream& out, const std::vector<Record>& records) {
  for (const Record& record : records) {
    const size_t count = std::min(record.bytes.size(), kImageBytes);
    out << record.name << '\n' << record.bytes.size() << ' ' << count << block_hashes(record.bytes) << '\n';
    out.write(reinterpret_cast<const char*>(record.bytes.data()), static_cast<std::streamsize>(count));
  }
}

}  // namespace conformance
