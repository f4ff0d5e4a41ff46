// fields.cpp -- see fields.h.

#include "fuzz/fields.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>

namespace dualgemm_fuzz {

static int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// Another address of the structure is near, or the ends of what an address can be.
static uint64_t notable_address(Bytes& bytes, Fields fields, const char* structure, uint64_t now) {
  const Field& other = fields[static_cast<size_t>(bytes.below(static_cast<int32_t>(fields.size())))];
  uint64_t there = now;
  if (other.kind == Kind::kPointer) std::memcpy(&there, structure + other.offset, sizeof there);
  switch (bytes.below(5)) {
    case 0: return 0;
    case 1: return there + static_cast<uint64_t>(bytes.raw<int8_t>());
    case 2: return there + static_cast<uint64_t>(notable_integer(bytes, 16));
    case 3:
      return bytes.one_of({uint64_t{1} << 63, uint64_t{0}, uint64_t{1} << 48}) -
             static_cast<uint64_t>(notable_integer(bytes, 4096));
    default: return bytes.raw<uint64_t>();
  }
}

template <class Number>
static Number load(const char* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <class Number>
static void store(char* to, Number number) {
  std::memcpy(to, &number, sizeof number);
}

static void change(Bytes& bytes, Fields fields, const Field& field, char* structure) {
  char* const at = structure + field.offset;
  switch (field.kind) {
    case Kind::kInt32:
    case Kind::kUint32: return store(at, static_cast<uint32_t>(notable_integer(bytes, load<int32_t>(at))));
    case Kind::kInt64:
    case Kind::kUint64: return store(at, notable_integer(bytes, load<int64_t>(at)));
    case Kind::kFloat: return store(at, notable_float(bytes, load<float>(at)));
    case Kind::kPointer: return store(at, notable_address(bytes, fields, structure, load<uint64_t>(at)));
    case Kind::kText: return bytes.copy(at, field.size);
  }
}

static std::string value_text(const Field& field, const char* at) {
  char text[64] = "";
  switch (field.kind) {
    case Kind::kInt32: std::snprintf(text, sizeof text, "%" PRId32, load<int32_t>(at)); break;
    case Kind::kUint32:
      std::snprintf(text, sizeof text, std::strcmp(field.name, "flags") == 0 ? "0x%" PRIx32 : "%" PRIu32,
                    load<uint32_t>(at));
      break;
    case Kind::kInt64: std::snprintf(text, sizeof text, "%" PRId64, load<int64_t>(at)); break;
    case Kind::kUint64: std::snprintf(text, sizeof text, "%" PRIu64, load<uint64_t>(at)); break;
    case Kind::kFloat: std::snprintf(text, sizeof text, "%g", static_cast<double>(load<float>(at))); break;
    case Kind::kPointer:
      if (load<uint64_t>(at) == 0) return "NULL";
      std::snprintf(text, sizeof text, "0x%" PRIx64, load<uint64_t>(at));
      break;
    case Kind::kText: break;
  }
  return text;
}

static bool is_zero(const Field& field, const char* at) {
  return std::all_of(at, at + field.size, [](char byte) { return byte == 0; });
}

int64_t notable_integer(Bytes& bytes, int64_t now) {
  const auto near = static_cast<uint64_t>(bytes.one_of({0, -1, 1}));
  switch (bytes.below(8)) {
    case 0: return bytes.raw<uint8_t>();
    case 1: return wrapped(static_cast<uint64_t>(now) + static_cast<uint64_t>(bytes.raw<int8_t>()));
    case 2: return wrapped((uint64_t{1} << bytes.below(64)) + near);
    case 3: return wrapped(0 - (uint64_t{1} << bytes.below(64)) + near);
    case 4: return wrapped(static_cast<uint64_t>(now) * bytes.raw<uint8_t>());
    case 5: return wrapped(static_cast<uint64_t>(INT32_MAX - 1023) + near);
    case 6:
      return wrapped(bytes.one_of({uint64_t{INT32_MAX}, uint64_t{INT64_MAX}, uint64_t{1} << 31}) + near);
    default: return bytes.raw<int64_t>();
  }
}

float notable_float(Bytes& bytes, float now) {
  using Limits = std::numeric_limits<float>;
  const float value = bytes.one_of({0.0f, -0.0f, 1.0f, 2.0f, -now, Limits::infinity(), -Limits::infinity(),
                                    Limits::quiet_NaN(), Limits::max(), Limits::max() / 512, Limits::min(),
                                    Limits::denorm_min(), 0x1p127f, bytes.raw<float>()});
  return bytes.one_of({value, std::nextafter(value, Limits::infinity()), std::nextafter(value, 0.0f)});
}

void spoil_fields(Bytes& bytes, Fields fields, void* structure, bool pointers) {
  for (int32_t i = bytes.below(5); i > 0; --i) {
    const Field& field = fields[static_cast<size_t>(bytes.below(static_cast<int32_t>(fields.size())))];
    if (field.kind != Kind::kPointer || pointers) change(bytes, fields, field, static_cast<char*>(structure));
  }
}

bool names_field(std::string_view text, Fields fields, const void* structure) {
  for (const Field& field : fields) {
    const std::string name = std::string(field.name) + '=';
    if (!text.starts_with(name)) continue;
    const char* const at = static_cast<const char*>(structure) + field.offset;
    const std::string value = value_text(field, at);
    const std::string_view rest = text.substr(name.size());
    return (is_zero(field, at) && field.kind != Kind::kPointer) ||
           (rest.starts_with(value) && rest.size() > value.size() &&
            std::string_view(":, ").find(rest[value.size()]) != std::string_view::npos);
  }
  return false;
}

}  // namespace dualgemm_fuzz
