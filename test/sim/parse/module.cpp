// module.cpp -- the type names of PTX and their widths, and how a message names a statement.
#include "sim/parse/module.h"

#include <array>

namespace sim::ptx {
namespace {

struct TypeRow {
  Type type;
  const char* name;
  int bits;
};
constexpr std::array<TypeRow, 21> kTypes = {{
    {Type::kPred, "pred", 1},    {Type::kB8, "b8", 8},        {Type::kB16, "b16", 16},
    {Type::kB32, "b32", 32},     {Type::kB64, "b64", 64},     {Type::kB128, "b128", 128},
    {Type::kU8, "u8", 8},        {Type::kU16, "u16", 16},     {Type::kU32, "u32", 32},
    {Type::kU64, "u64", 64},     {Type::kS8, "s8", 8},        {Type::kS16, "s16", 16},
    {Type::kS32, "s32", 32},     {Type::kS64, "s64", 64},     {Type::kF16, "f16", 16},
    {Type::kF16x2, "f16x2", 32}, {Type::kBf16, "bf16", 16},   {Type::kBf16x2, "bf16x2", 32},
    {Type::kF32, "f32", 32},     {Type::kF32x2, "f32x2", 64}, {Type::kF64, "f64", 64},
}};

}  // namespace

int bits(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bits;
  }
  return 0;
}

bool parse_type(const std::string& text, Type* out) {
  for (const TypeRow& row : kTypes) {
    if (text == row.name) {
      *out = row.type;
      return true;
    }
  }
  return false;
}

std::string describe(const Statement& statement) {
  std::string out = "PTX line " + std::to_string(statement.site.ptx_line) + ": `" + statement.text + "`";
  if (!statement.site.source.empty()) out += " (" + statement.site.source + ")";
  return out;
}

}  // namespace sim::ptx
