// fields.h -- the fields of the structures that functions take: to change them by name, and to hold the texts
// of refusals against them.
#pragma once

#include <span>
#include <string_view>

#include "fuzz/bytes.h"
#include "host/include/dualgemm.h"

namespace dualgemm_fuzz {

enum class Kind { kInt32, kUint32, kInt64, kUint64, kFloat, kPointer, kText };

struct Field {
  const char* name;
  size_t offset, size;
  Kind kind;
};
using Fields = std::span<const Field>;

// One for each structure; the argument says of which.
Fields fields_of(const dualgemm_args_t&);
Fields fields_of(const dualgemm_sf_args_t&);
Fields fields_of(const dualgemm_quantize_args_t&);
Fields fields_of(const dualgemm_moe_permute_args_t&);
Fields fields_of(const dualgemm_moe_gather_args_t&);
Fields fields_of(const dualgemm_moe_combine_args_t&);
Fields fields_of(const dualgemm_prepare_mxfp4_args_t&);
Fields fields_of(const dualgemm_device_t&);
Fields fields_of(const dualgemm_instance_info_t&);
Fields fields_of(const dualgemm_tuning_info_t&);

// Numbers that are likely to matter beside one that stands there now.
int64_t notable_integer(Bytes& bytes, int64_t now);
float notable_float(Bytes& bytes, float now);

// Changes up to four fields, of those kinds that `changes` names.
void spoil_fields(Bytes& bytes, Fields fields, void* structure, bool pointers);

// Does a text begin with the name of a field and, unless the library had to resolve a 0 there, its value?
bool names_field(std::string_view text, Fields fields, const void* structure);

template <class Structure>
void spoil(Bytes& bytes, Structure* structure, bool pointers = true) {
  spoil_fields(bytes, fields_of(*structure), structure, pointers);
}

}  // namespace dualgemm_fuzz
