// field_lists.cpp -- the fields of each structure, as they are on record. A list that lacks one does not
// compile: that field would never be changed.

#include <type_traits>

#include "fuzz/fields.h"

namespace dualgemm_fuzz {
namespace {

template <class Member>
constexpr Kind kind_of() {
  if (std::is_pointer_v<Member>) return Kind::kPointer;
  if (std::is_array_v<Member>) return Kind::kText;
  if (std::is_same_v<Member, float>) return Kind::kFloat;
  if (sizeof(Member) == 4) return std::is_signed_v<Member> ? Kind::kInt32 : Kind::kUint32;
  return std::is_signed_v<Member> ? Kind::kInt64 : Kind::kUint64;
}

template <size_t kCount>
constexpr size_t covered(const Field (&fields)[kCount]) {
  size_t bytes = 0;
  for (const Field& field : fields) bytes += field.size;
  return bytes;
}

}  // namespace

#define STRUCT(type, size)        \
  Fields fields_of(const type&) { \
    using S = type;               \
    static constexpr Field kFields[] = {
#define FIELD(offset, type, name) {#name, offset, sizeof(S::name), kind_of<decltype(S::name)>()},
#define END()                                   \
  }                                             \
  ;                                             \
  static_assert(covered(kFields) == sizeof(S)); \
  return kFields;                               \
  }
#include "support/interface.def"

}  // namespace dualgemm_fuzz
