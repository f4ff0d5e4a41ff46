// problems.cpp -- see problems.h.

#include "fuzz/problems.h"

#include "fuzz/answer.h"

namespace dualgemm_fuzz {

template <class Pointer>
static void give(Bytes& bytes, uint64_t number, Pointer* pointer) {
  if (bytes.one_in(4)) *pointer = static_cast<Pointer>(far_address(number));
}

// Changes fields, or now and then all bytes.
template <class Structure>
static void spoil_some(Bytes& bytes, Structure* structure) {
  if (bytes.one_in(16)) bytes.copy(structure, sizeof *structure);
  if (bytes.one_in(2)) structure->struct_size = sizeof *structure;
  spoil(bytes, structure);
}

void* far_address(uint64_t number) { return reinterpret_cast<void*>((number + 1) << 40); }

void choose_rows(Bytes& bytes, int32_t* batch, int32_t* group_mode, int32_t* groups) {
  switch (bytes.below(5)) {
    case 1: *batch = 1 + bytes.below(8); break;
    case 2: *batch = 1 + bytes.below(5000); break;
    case 3:
    case 4:
      *group_mode = bytes.one_of<int32_t>({DUALGEMM_GROUP_OFFSETS, DUALGEMM_GROUP_MASKED});
      *groups = 1 + bytes.below(bytes.one_of({8, DUALGEMM_MAX_GROUPS}));
  }
}

// Leaves out what belongs to the second product.
void choose_one_product(Bytes& bytes, dualgemm_args_t* args) {
  args->products = 1;
  args->activation = 0;
  args->linear_activation = bytes.below(DUALGEMM_LINEAR_ACTIVATION_RELU2 + 1);
  args->b2 = args->sfb2 = args->bias2 = nullptr;
  args->b2_row_exponent = nullptr;
  args->alpha2_dev = nullptr;
  args->d2 = nullptr;
  if (!args->alpha1_dev) args->alpha_stride = 0;
  if (args->c_dtype <= DUALGEMM_DTYPE_FP32 && bytes.one_in(2))
    args->c_add = bytes.one_in(2) ? args->c : far_address(19);
}

void choose_mxfp4(Bytes& bytes, dualgemm_args_t* args) {
  args->a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  args->b_dtype = DUALGEMM_DTYPE_MXFP4;
  args->sfa = nullptr;
  give(bytes, 20, &args->b1_row_exponent);
  give(bytes, 21, &args->b2_row_exponent);
}

void choose_epilogue(Bytes& bytes, dualgemm_args_t* args) {
  args->c_dtype = bytes.below(5);
  if (args->c_dtype == DUALGEMM_DTYPE_NVFP4) args->sfc = far_address(8);
  args->activation = bytes.one_in(2) ? bytes.below(DUALGEMM_ACTIVATION_SITU + 1) : 0;
  args->flags = bytes.raw<uint8_t>() & 0x3F;
  if (bytes.one_in(4)) args->d1 = far_address(9), args->d2 = far_address(10), args->d_dtype = bytes.below(3);
  args->bias_dtype = bytes.one_of<int32_t>({DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32});
  give(bytes, 11, &args->bias1);
  give(bytes, 12, &args->bias2);
  give(bytes, 13, &args->a_row_scale);
  give(bytes, 14, &args->c_row_scale);
  give(bytes, 15, &args->alpha1_dev);
  give(bytes, 16, &args->alpha2_dev);
  give(bytes, 17, &args->amax_out);
  if (args->c_dtype >= DUALGEMM_DTYPE_NVFP4) give(bytes, 18, &args->c_global_scale_dev);
  if (args->alpha1_dev) args->alpha_stride = bytes.one_of({0, 1, 3});
  if (bytes.one_in(3)) choose_one_product(bytes, args);
  if (args->bias1 && bytes.one_in(2)) args->bias_stride = args->n + 8 * bytes.below(3);
}

dualgemm_args_t some_launch(Bytes& bytes) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = 1 + bytes.below(bytes.one_of({16, 300, 8192, 65535}));
  args.n = 32 * (1 + bytes.below(bytes.one_of({8, 64, 1024})));
  args.k = bytes.one_in(16) ? 0 : 32 * (1 + bytes.below(bytes.one_of({8, 64, 512})));
  args.a = far_address(0), args.b1 = far_address(1), args.b2 = far_address(2);
  args.sfa = far_address(3), args.sfb1 = far_address(4), args.sfb2 = far_address(5);
  args.c = far_address(6);
  if (bytes.one_in(8)) {
    choose_mxfp4(bytes, &args);
  } else if (bytes.one_in(4)) {
    args.a_dtype = bytes.one_of<int32_t>({DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16});
    args.sfa = nullptr;
  }
  choose_epilogue(bytes, &args);
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  if (args.groups > 0) args.group_rows = static_cast<const int32_t*>(far_address(7));
  if (args.groups > 0) args.expected_rows = bytes.one_of({0, 1, 100});
  args.max_sms = bytes.one_of({0, 0, 0, 1, 2, 3, 4, 7, 100, 147, 148, 149});
  if (bytes.one_in(4)) args.instance_id = 1 + bytes.below(dualgemm_instance_count());
  if (bytes.one_in(4)) args.lda = args.k + 32 * bytes.below(9);
  if (bytes.one_in(4)) args.ldc = args.n + 32 * bytes.below(9);
  if (args.batch > 1 && bytes.one_in(4))
    args.batch_stride_c = args.m * (args.ldc ? args.ldc : args.n) + 32 * bytes.below(9);
  spoil_some(bytes, &args);
  // K = 0 fills each problem by a call of its own where there are gaps: more of them take too long here.
  if (args.k == 0) args.batch = std::min(args.batch, 4096);
  return args;
}

dualgemm_sf_args_t some_factors(Bytes& bytes) {
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.flags = bytes.one_of<uint32_t>({0, DUALGEMM_FLAG_PDL});
  args.rows = 1 + bytes.below(bytes.one_of({300, 65535}));
  args.k = 16 * bytes.below(bytes.one_of({16, 4096}));
  args.src = far_address(0), args.dst = far_address(1);
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  if (args.groups > 0) args.group_rows = static_cast<const int32_t*>(far_address(2));
  if (bytes.one_in(4)) args.pitch = args.k / 16 + bytes.below(40);
  spoil_some(bytes, &args);
  return args;
}

dualgemm_quantize_args_t some_quantization(Bytes& bytes) {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.flags = bytes.one_of<uint32_t>({0, DUALGEMM_FLAG_PDL});
  args.rows = 1 + bytes.below(bytes.one_of({300, 65535}));
  args.k = 32 * bytes.below(bytes.one_of({8, 2048}));
  args.x_dtype = bytes.below(3);
  args.x = far_address(0), args.q = far_address(1), args.sf = far_address(2);
  if (bytes.one_in(4)) args.q_dtype = DUALGEMM_DTYPE_FP8_E4M3, args.sf = nullptr;
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  if (args.groups > 0) args.group_rows = static_cast<const int32_t*>(far_address(3));
  args.scale_mode = bytes.below(3);
  if (args.scale_mode == DUALGEMM_SCALE_GIVEN) give(bytes, 4, &args.global_scale_dev);
  if (args.scale_mode == DUALGEMM_SCALE_TENSOR) args.tensor_scales = static_cast<float*>(far_address(5));
  if (args.scale_mode == DUALGEMM_SCALE_ROW) args.row_scale = static_cast<float*>(far_address(6));
  if (bytes.one_in(4)) args.ldx = args.k + 8 * bytes.below(9);
  if (bytes.one_in(4)) args.ldq = args.k + 32 * bytes.below(9);
  if (bytes.one_in(4)) {
    args.row_index = static_cast<const int32_t*>(far_address(7));
    args.x_rows = 1 + bytes.below(300);
  }
  spoil_some(bytes, &args);
  return args;
}

dualgemm_moe_permute_args_t some_permutation(Bytes& bytes) {
  dualgemm_moe_permute_args_t args;
  dualgemm_moe_permute_args_init(&args);
  args.flags = bytes.one_of<uint32_t>({0, DUALGEMM_FLAG_PDL});
  args.tokens = bytes.below(bytes.one_of({8, 65535}));
  args.top_k = bytes.below(bytes.one_of({9, 65535}));
  args.experts = 1 + bytes.below(bytes.one_of({8, DUALGEMM_MAX_GROUPS}));
  args.topk_ids = static_cast<const int32_t*>(far_address(0));
  args.group_rows = static_cast<int32_t*>(far_address(1));
  args.row_token = static_cast<int32_t*>(far_address(2));
  args.token_row = static_cast<int32_t*>(far_address(3));
  if (bytes.one_in(2)) {
    args.topk_weights = static_cast<const float*>(far_address(4));
    args.row_weight = static_cast<float*>(far_address(5));
  }
  spoil_some(bytes, &args);
  return args;
}

dualgemm_moe_gather_args_t some_gathering(Bytes& bytes) {
  dualgemm_moe_gather_args_t args;
  dualgemm_moe_gather_args_init(&args);
  args.flags = bytes.one_of<uint32_t>({0, DUALGEMM_FLAG_PDL});
  args.rows = bytes.below(bytes.one_of({8, 65535}));
  args.x_rows = 1 + bytes.below(bytes.one_of({8, 65535}));
  args.k = 8 * bytes.below(bytes.one_of({8, 4096}));
  args.x_dtype = bytes.below(2);
  args.row_index = static_cast<const int32_t*>(far_address(0));
  args.x = far_address(1), args.out = far_address(2);
  if (bytes.one_in(4)) args.ldx = args.k + 8 * bytes.below(9);
  if (bytes.one_in(4)) args.ld_out = args.k + 8 * bytes.below(9);
  spoil_some(bytes, &args);
  return args;
}

dualgemm_moe_combine_args_t some_combination(Bytes& bytes) {
  dualgemm_moe_combine_args_t args;
  dualgemm_moe_combine_args_init(&args);
  args.flags = bytes.one_of<uint32_t>({0, DUALGEMM_FLAG_PDL});
  args.tokens = bytes.below(bytes.one_of({8, 65535}));
  args.top_k = bytes.below(bytes.one_of({9, 65535}));
  args.n = 8 * bytes.below(bytes.one_of({8, 4096}));
  args.c_dtype = bytes.below(3);
  args.out_dtype = bytes.below(3);
  args.token_row = static_cast<const int32_t*>(far_address(0));
  args.c = far_address(1), args.out = far_address(2);
  if (bytes.one_in(2)) args.add = bytes.one_in(2) ? args.out : far_address(3);
  if (bytes.one_in(2)) args.topk_weights = static_cast<const float*>(far_address(4));
  if (bytes.one_in(4)) args.ldc = args.n + 8 * bytes.below(9);
  if (bytes.one_in(4)) args.ld_out = args.n + 8 * bytes.below(9);
  spoil_some(bytes, &args);
  return args;
}

dualgemm_device_t current_device() {
  dualgemm_device_t device = blank_device();
  require(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS, "the device of the stub: %s",
          dualgemm_last_error());
  return device;
}

dualgemm_device_t some_device(Bytes& bytes) {
  dualgemm_device_t device = current_device();
  device.sm_count = bytes.one_of({148, 160, 132, 1, 2, 3, 4, 5, 1000});
  device.clusters_of_2 = bytes.one_of({0, -1, 1, 50, 74});
  device.clusters_of_4 = bytes.one_of({0, -1, 1, 20, 34});
  spoil(bytes, &device);
  if (bytes.one_in(16)) bytes.copy(&device, sizeof device);
  if (bytes.one_in(2)) device.struct_size = sizeof device;
  return device;
}

}  // namespace dualgemm_fuzz
