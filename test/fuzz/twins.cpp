// twins.cpp -- moving factors, quantising, and what stands around a layer of experts, in host memory. The
// function for the device, which follows no address on the stub, says whether its twin may refuse: both
// have the same rules. What the twin accepts is tried in blocks of the size that the manual asks for, and
// gives the same bytes twice.

#include "fuzz/answer.h"
#include "fuzz/extents.h"
#include "fuzz/memory.h"
#include "fuzz/problems.h"
#include "fuzz/targets.h"

namespace dualgemm_fuzz {

// Changes what is no address.
template <class Args>
static void spoil_numbers(Bytes& bytes, Args* args) {
  if (bytes.one_in(2)) spoil(bytes, args, false);
  args->struct_size = sizeof *args;
}

template <class Args, class Device, class Host>
static void run_twin(const Args& args, Memory* memory, Device device, Host host) {
  const Answer expected = answer_of(device(&args, nullptr));
  if (expected.good() && !memory->fits()) return;
  require_same(expected, answer_of(host(&args)), "the function for the device and its twin");
  if (!expected.good())
    return require(memory->unchanged(), "a refusal writes: \"%s\"", expected.text.c_str());
  const auto first = memory->contents();
  memory->restore();
  require_same(expected, answer_of(host(&args)), "the same call again");
  require(first == memory->contents(), "the same call writes something else");
}

void move_factors_on_host(Bytes& bytes) {
  const bool swizzle = bytes.one_in(2);
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.rows = 1 + bytes.below(bytes.one_of({8, 300}));
  args.k = 16 * (1 + bytes.below(20));
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  if (bytes.one_in(2)) args.pitch = args.k / 16 + bytes.below(8);
  spoil_numbers(bytes, &args);
  const bool offsets = args.group_mode == DUALGEMM_GROUP_OFFSETS;
  const int64_t problems = args.group_mode ? args.groups : std::max(args.batch, 1);
  const int64_t row_stride = swizzle ? args.batch_stride_src : args.batch_stride_dst;
  const int64_t atom_stride = swizzle ? args.batch_stride_dst : args.batch_stride_src;
  const size_t rows = Rows{offsets ? 1 : problems, args.rows, args.k / 16, args.pitch, row_stride, 8}.bytes();
  const size_t atoms = Factors{problems, args.rows, args.k, atom_stride, offsets}.bytes();

  Memory memory(bytes);
  memory.give(&args.src, swizzle ? rows : atoms);
  memory.give(&args.dst, swizzle ? atoms : rows);
  if (bytes.one_in(64)) args.dst = const_cast<void*>(args.src);
  memory.give_rows(&args.group_rows, args.group_mode, args.groups, args.rows);
  if (swizzle) run_twin(args, &memory, dualgemm_sf_swizzle, dualgemm_sf_swizzle_host);
  else run_twin(args, &memory, dualgemm_sf_unswizzle, dualgemm_sf_unswizzle_host);
}

void quantize_on_host(Bytes& bytes) {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = 1 + bytes.below(bytes.one_of({8, 300}));
  args.k = 32 * (1 + bytes.below(8));
  args.x_dtype = bytes.below(3);
  if (bytes.one_in(4)) args.q_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  args.scale_mode = bytes.below(3);
  if (bytes.one_in(2)) args.ldx = args.k + 8 * bytes.below(4);
  if (bytes.one_in(2)) args.ldq = args.k + 32 * bytes.below(4);
  if (bytes.one_in(4)) {
    args.row_index = static_cast<const int32_t*>(far_address(0));
    args.x_rows = 1 + bytes.below(300);
  }
  spoil_numbers(bytes, &args);
  const bool offsets = args.group_mode == DUALGEMM_GROUP_OFFSETS;
  const int64_t problems = args.group_mode ? args.groups : std::max(args.batch, 1);
  const int64_t matrices = offsets ? 1 : problems, x_bits = args.x_dtype == DUALGEMM_DTYPE_FP32 ? 32 : 16;

  Memory memory(bytes);
  const bool gathers = args.row_index != nullptr;
  memory.give(&args.x,
              Rows{matrices, gathers ? args.x_rows : args.rows, args.k, args.ldx, args.batch_stride_x, x_bits}
                  .bytes());
  if (gathers) memory.give(&args.row_index, Rows{1, 1, args.rows, 0, 0, 32}.bytes());
  const bool fp8 = args.q_dtype == DUALGEMM_DTYPE_FP8_E4M3;
  memory.give(&args.q, Rows{matrices, args.rows, args.k, args.ldq, args.batch_stride_q, fp8 ? 8 : 4}.bytes());
  if (!fp8)
    memory.give(&args.sf, Factors{problems, args.rows, args.k, args.batch_stride_sf, offsets}.bytes());
  memory.give_rows(&args.group_rows, args.group_mode, args.groups, args.rows);
  if (args.scale_mode == DUALGEMM_SCALE_TENSOR) memory.give(&args.tensor_scales, 3 * sizeof(float));
  if (args.scale_mode == DUALGEMM_SCALE_ROW)
    memory.give(&args.row_scale, Rows{matrices, 1, args.rows, 0, args.batch_stride_row_scale, 32}.bytes());
  if (args.scale_mode == DUALGEMM_SCALE_GIVEN && bytes.one_in(4))
    memory.give(
        &args.global_scale_dev,
        Rows{args.global_scale_stride == 0 ? 1 : problems, 1, 1, 0, args.global_scale_stride, 32}.bytes());
  if (bytes.one_in(64)) args.q = const_cast<void*>(args.x);
  run_twin(args, &memory, dualgemm_quantize, dualgemm_quantize_host_ex);
}

void prepare_mxfp4_on_host(Bytes& bytes) {
  dualgemm_prepare_mxfp4_args_t args;
  dualgemm_prepare_mxfp4_args_init(&args);
  args.rows = 1 + bytes.below(bytes.one_of({8, 200}));
  args.k = 32 * (1 + bytes.below(6));
  if (bytes.one_in(2)) args.batch = bytes.below(4);
  if (bytes.one_in(2)) args.ldq = args.k + 32 * bytes.below(3);
  if (bytes.one_in(2)) args.pitch = args.k / 32 + bytes.below(4);
  spoil_numbers(bytes, &args);
  const int64_t batch = std::max(args.batch, 1);

  Memory memory(bytes);
  memory.give(&args.q, Rows{batch, args.rows, args.k, args.ldq, args.batch_stride_q, 4}.bytes());
  memory.give(&args.scales,
              Rows{batch, args.rows, args.k / 32, args.pitch, args.batch_stride_scales, 8}.bytes());
  // MXFP4 has as many factors as NVFP4 of half the elements.
  memory.give(&args.sf, Factors{batch, args.rows, args.k / 2, args.batch_stride_sf, false}.bytes());
  memory.give(&args.row_exponent, Rows{batch, 1, args.rows, 0, args.batch_stride_row_exponent, 16}.bytes());
  if (bytes.one_in(2)) memory.give(&args.counts, 4 * sizeof *args.counts);
  if (bytes.one_in(64)) args.sf = const_cast<void*>(args.q);
  run_twin(args, &memory, dualgemm_prepare_mxfp4, dualgemm_prepare_mxfp4_host);
}

void permute_on_host(Bytes& bytes) {
  dualgemm_moe_permute_args_t args;
  dualgemm_moe_permute_args_init(&args);
  args.tokens = bytes.below(40), args.top_k = bytes.below(9);
  args.experts = 1 + bytes.below(bytes.one_of({4, DUALGEMM_MAX_GROUPS}));
  const bool weighted = bytes.one_in(2);
  spoil_numbers(bytes, &args);
  const size_t choices = Rows{1, args.tokens, args.top_k, 0, 0, 32}.bytes();

  Memory memory(bytes);
  memory.give(&args.topk_ids, choices);
  memory.give(&args.group_rows, Rows{1, 1, int64_t{args.experts} + 1, 0, 0, 32}.bytes());
  memory.give(&args.row_token, choices);
  memory.give(&args.token_row, choices);
  if (weighted) memory.give(&args.topk_weights, choices);
  if (weighted) memory.give(&args.row_weight, choices);
  // Small ids, of which some are experts.
  if (args.topk_ids && choices <= kMostBytes)
    for (size_t byte = 1; byte < 4 && byte < choices; ++byte)
      memory.mask(reinterpret_cast<const uint8_t*>(args.topk_ids) + byte, 4, 0);
  if (bytes.one_in(64)) args.token_row = const_cast<int32_t*>(args.topk_ids);
  run_twin(args, &memory, dualgemm_moe_permute, dualgemm_moe_permute_host);
}

void gather_on_host(Bytes& bytes) {
  dualgemm_moe_gather_args_t args;
  dualgemm_moe_gather_args_init(&args);
  args.rows = bytes.below(20), args.x_rows = 1 + bytes.below(20), args.k = 8 * bytes.below(8);
  args.x_dtype = bytes.below(2);
  if (bytes.one_in(2)) args.ldx = args.k + 8 * bytes.below(4);
  if (bytes.one_in(2)) args.ld_out = args.k + 8 * bytes.below(4);
  spoil_numbers(bytes, &args);

  Memory memory(bytes);
  memory.give(&args.row_index, Rows{1, 1, args.rows, 0, 0, 32}.bytes());
  memory.give(&args.x, Rows{1, args.x_rows, args.k, args.ldx, 0, 16}.bytes());
  memory.give(&args.out, Rows{1, args.rows, args.k, args.ld_out, 0, 16}.bytes());
  // Small numbers of rows, of which some are rows.
  if (args.row_index && args.rows > 0 && memory.fits())
    for (size_t byte = 1; byte < 4; ++byte)
      memory.mask(reinterpret_cast<const uint8_t*>(args.row_index) + byte, 4, 0);
  if (bytes.one_in(64)) args.out = const_cast<void*>(args.x);
  run_twin(args, &memory, dualgemm_moe_gather, dualgemm_moe_gather_host);
}

void combine_on_host(Bytes& bytes) {
  dualgemm_moe_combine_args_t args;
  dualgemm_moe_combine_args_init(&args);
  args.tokens = bytes.below(8), args.top_k = bytes.below(5), args.n = 8 * bytes.below(8);
  args.c_dtype = bytes.below(3), args.out_dtype = bytes.below(3);
  if (bytes.one_in(2)) args.ldc = args.n + 8 * bytes.below(4);
  if (bytes.one_in(2)) args.ld_out = args.n + 8 * bytes.below(4);
  const bool adds = bytes.one_in(2), weighted = bytes.one_in(2);
  if (adds && bytes.one_in(2)) args.ld_add = args.n + 8 * bytes.below(4);
  spoil_numbers(bytes, &args);
  const int64_t rows = int64_t{args.tokens} * args.top_k;
  const auto bits = [](int32_t dtype) { return dtype == DUALGEMM_DTYPE_FP32 ? 32 : 16; };

  Memory memory(bytes);
  memory.give(&args.token_row, Rows{1, args.tokens, args.top_k, 0, 0, 32}.bytes());
  if (weighted) memory.give(&args.topk_weights, Rows{1, args.tokens, args.top_k, 0, 0, 32}.bytes());
  memory.give(&args.c, Rows{1, rows, args.n, args.ldc, 0, bits(args.c_dtype)}.bytes());
  memory.give(&args.out, Rows{1, args.tokens, args.n, args.ld_out, 0, bits(args.out_dtype)}.bytes());
  if (adds)
    memory.give(&args.add, Rows{1, args.tokens, args.n, args.ld_add, 0, bits(args.out_dtype)}.bytes());
  // Small numbers of rows, of which some are rows.
  if (args.token_row && memory.fits())
    for (size_t byte = 1; byte < 4; ++byte)
      memory.mask(reinterpret_cast<const uint8_t*>(args.token_row) + byte, 4, 0);
  if (adds && bytes.one_in(4)) args.add = args.out, args.ld_add = args.ld_out;
  run_twin(args, &memory, dualgemm_moe_combine, dualgemm_moe_combine_host);
}

}  // namespace dualgemm_fuzz
