// field_lists.cpp -- the fields of each structure, in the order of dualgemm.h. A list that lacks one does not
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

// clang-format off
#define FIELD(name) {#name, offsetof(S, name), sizeof(S::name), kind_of<decltype(S::name)>()}

Fields fields_of_args() {
  using S = dualgemm_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(m), FIELD(n), FIELD(k), FIELD(batch), FIELD(a), FIELD(b1),
    FIELD(b2), FIELD(sfa), FIELD(sfb1), FIELD(sfb2), FIELD(c), FIELD(sfc), FIELD(lda), FIELD(ldb1),
    FIELD(ldb2), FIELD(ldc), FIELD(batch_stride_a), FIELD(batch_stride_b1), FIELD(batch_stride_b2),
    FIELD(batch_stride_c), FIELD(batch_stride_sfa), FIELD(batch_stride_sfb1), FIELD(batch_stride_sfb2),
    FIELD(batch_stride_sfc), FIELD(alpha1), FIELD(alpha2), FIELD(alpha1_dev), FIELD(alpha2_dev),
    FIELD(a_row_scale), FIELD(bias1), FIELD(bias2), FIELD(c_row_scale), FIELD(c_global_scale),
    FIELD(activation), FIELD(c_global_scale_dev), FIELD(swiglu_alpha), FIELD(swiglu_beta),
    FIELD(swiglu_limit), FIELD(situ_gate), FIELD(situ_up), FIELD(c_dtype), FIELD(bias_dtype),
    FIELD(reserved2), FIELD(amax_out), FIELD(d1), FIELD(d2), FIELD(ldd1), FIELD(ldd2),
    FIELD(batch_stride_d1), FIELD(batch_stride_d2), FIELD(d_dtype), FIELD(instance_id), FIELD(max_sms),
    FIELD(reserved0), FIELD(workspace), FIELD(workspace_size), FIELD(group_mode), FIELD(groups),
    FIELD(group_rows), FIELD(expected_rows), FIELD(alpha_stride), FIELD(c_global_scale_stride),
    FIELD(reserved1), FIELD(bias_stride), FIELD(batch_stride_a_row_scale),
    FIELD(batch_stride_c_row_scale), FIELD(a_dtype), FIELD(reserved3), FIELD(products),
    FIELD(linear_activation), FIELD(c_add), FIELD(ld_c_add), FIELD(batch_stride_c_add),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_sf_args() {
  using S = dualgemm_sf_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(rows), FIELD(k), FIELD(batch), FIELD(group_mode),
    FIELD(groups), FIELD(reserved0), FIELD(group_rows), FIELD(src), FIELD(dst), FIELD(pitch),
    FIELD(batch_stride_src), FIELD(batch_stride_dst),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_quantize_args() {
  using S = dualgemm_quantize_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(rows), FIELD(k), FIELD(batch), FIELD(group_mode),
    FIELD(groups), FIELD(x_dtype), FIELD(group_rows), FIELD(x), FIELD(q), FIELD(sf), FIELD(ldx),
    FIELD(ldq), FIELD(batch_stride_x), FIELD(batch_stride_q), FIELD(batch_stride_sf), FIELD(scale_mode),
    FIELD(global_scale), FIELD(global_scale_dev), FIELD(global_scale_stride), FIELD(tensor_scales),
    FIELD(row_scale), FIELD(batch_stride_row_scale), FIELD(row_index), FIELD(x_rows), FIELD(reserved0),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_moe_permute_args() {
  using S = dualgemm_moe_permute_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(tokens), FIELD(top_k), FIELD(experts), FIELD(reserved0),
    FIELD(topk_ids), FIELD(topk_weights), FIELD(group_rows), FIELD(row_token), FIELD(token_row),
    FIELD(row_weight),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_moe_gather_args() {
  using S = dualgemm_moe_gather_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(rows), FIELD(k), FIELD(x_rows), FIELD(x_dtype),
    FIELD(row_index), FIELD(x), FIELD(out), FIELD(ldx), FIELD(ld_out),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_moe_combine_args() {
  using S = dualgemm_moe_combine_args_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(flags), FIELD(tokens), FIELD(top_k), FIELD(n), FIELD(c_dtype),
    FIELD(out_dtype), FIELD(reserved0), FIELD(token_row), FIELD(c), FIELD(add), FIELD(out), FIELD(ldc),
    FIELD(ld_add), FIELD(ld_out),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}

Fields fields_of_device() {
  using S = dualgemm_device_t;
  static constexpr Field kFields[] = {
    FIELD(struct_size), FIELD(cc_major), FIELD(cc_minor), FIELD(sm_count), FIELD(driver_version), FIELD(ordinal),
    FIELD(name), FIELD(clusters_of_2), FIELD(clusters_of_4),
  };
  static_assert(covered(kFields) == sizeof(S));
  return kFields;
}
// clang-format on

}  // namespace

Fields fields_of(const dualgemm_args_t&) { return fields_of_args(); }
Fields fields_of(const dualgemm_sf_args_t&) { return fields_of_sf_args(); }
Fields fields_of(const dualgemm_quantize_args_t&) { return fields_of_quantize_args(); }
Fields fields_of(const dualgemm_moe_permute_args_t&) { return fields_of_moe_permute_args(); }
Fields fields_of(const dualgemm_moe_gather_args_t&) { return fields_of_moe_gather_args(); }
Fields fields_of(const dualgemm_moe_combine_args_t&) { return fields_of_moe_combine_args(); }
Fields fields_of(const dualgemm_device_t&) { return fields_of_device(); }

}  // namespace dualgemm_fuzz
