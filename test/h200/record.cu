// record.cu -- registration, execution and the text form of records. Host code only.
#include "test/h200/record.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <ostream>

namespace h200 {
namespace {

constexpr size_t kShortBytes = 64, kBlocks = 32, kImageBytes = 128 << 10;

std::map<std::string, Case>& cases() {
  static std::map<std::string, Case> all;
  return all;
}

uint64_t fnv(const uint8_t* bytes, size_t count, uint64_t hash) {
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

std::string hex(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string hex(const Bytes& bytes) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string digest(const Bytes& bytes) {
  const size_t count = bytes.size();
  std::string out = hex(fnv(bytes.data(), count, 0xcbf29ce484222325), 16) +
                    hex(fnv(bytes.data(), count, 0x9ae16a3b2f90404f), 16);
  const size_t block = (count + kBlocks - 1) / kBlocks;
  for (size_t at = 0; at < count; at += block) {
    const uint64_t hash = fnv(bytes.data() + at, std::min(block, count - at), 0xcbf29ce484222325);
    out += ' ' + hex((hash >> 32) ^ (hash & 0xFFFFFFFF), 8);
  }
  return out;
}

}  // namespace

Register::Register(std::string name, Case body) {
  if (!cases().emplace(name, std::move(body)).second) {
    std::fprintf(stderr, "two cases are named %s\n", name.c_str());
    std::terminate();
  }
}

std::vector<Record> run(const std::string& prefix, const std::function<void()>& recover,
                        const std::function<void(const Record&)>& each) {
  Recorder recorder;
  for (const auto& [name, body] : cases()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const size_t first = recorder.records.size();
    try {
      body(recorder);
    } catch (const std::exception& error) {
      recorder.records.push_back({Record::Kind::kExact, name, {}, error.what()});
      recover();
    }
    for (size_t i = first; i < recorder.records.size(); ++i) each(recorder.records[i]);
  }
  return std::move(recorder.records);
}

std::string line(const Record& record) {
  static const char* const kKinds[] = {"exact", "table", "free"};
  std::string out = std::string(kKinds[static_cast<int>(record.kind)]) + ' ' + record.name + ' ';
  if (!record.error.empty()) return out + "error " + record.error.substr(0, record.error.find('\n'));
  out += std::to_string(record.bytes.size()) + ' ';
  const bool whole = record.kind != Record::Kind::kExact || record.bytes.size() <= kShortBytes;
  return out + (whole ? hex(record.bytes) : digest(record.bytes));
}

void write_images(std::ostream& out, const std::vector<Record>& records) {
  for (const Record& record : records) {
    const size_t count = std::min(record.bytes.size(), kImageBytes);
    out << record.name << '\n' << count << '\n';
    out.write(reinterpret_cast<const char*>(record.bytes.data()), static_cast<std::streamsize>(count));
  }
}

}  // namespace h200
