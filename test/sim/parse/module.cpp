// module.cpp -- the type names of PTX and how a message names a statement.
#include "sim/parse/module.h"

#include <array>
#include <string_view>

namespace sim::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
};
constexpr std::array<TypeRow, 21> kTypes = {{
    {Type::kPred, "pred"}, {Type::kB8, "b8"},         {Type::kB16, "b16"}, {Type::kB32, "b32"},
    {Type::kB64, "b64"},   {Type::kB128, "b128"},     {Type::kU8, "u8"},   {Type::kU16, "u16"},
    {Type::kU32, "u32"},   {Type::kU64, "u64"},       {Type::kS8, "s8"},   {Type::kS16, "s16"},
    {Type::kS32, "s32"},   {Type::kS64, "s64"},       {Type::kF16, "f16"}, {Type::kF16x2, "f16x2"},
    {Type::kBf16, "bf16"}, {Type::kBf16x2, "bf16x2"}, {Type::kF32, "f32"}, {Type::kF32x2, "f32x2"},
    {Type::kF64, "f64"},
}};

}  // namespace

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
