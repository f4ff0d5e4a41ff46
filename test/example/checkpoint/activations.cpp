#include "example/checkpoint/activations.h"

#include <algorithm>
#include <bit>

namespace checkpoint {

static uint64_t random_bits(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// SFA of groups whose rows follow each other: each begins at a block of 128 rows of its own.
static size_t blocks_of_rows(int32_t rows, size_t experts) {
  return experts == 1 ? (rows + 127) / 128 : (rows + 127 * std::min<size_t>(experts, rows)) / 128;
}

Input make_input(int32_t rows, int32_t k, size_t experts) {
  Input input;
  uint64_t state = 1;
  for (int64_t i = 0; i < int64_t{rows} * k; ++i) {
    float sum = 0;  // of four uniform numbers: nearly normal, of variance 1, below 3.5
    for (int j = 0; j < 4; ++j) sum += static_cast<float>(random_bits(state)) * 0x1p-31f - 0.5f;
    input.x.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(sum * 1.7320508f) >> 16));
  }
  input.first.assign(experts + 1, 0);
  for (int32_t row = 0; row < rows; ++row)
    for (size_t e = random_bits(state) % experts; e < experts; ++e) ++input.first[e + 1];
  return input;
}

// A is quantised once and multiplied with both gate and up, so it has one scale even where calibration
// found two. The larger decode scale reaches as far as either range, so it saturates nothing that the other
// would not; what it costs is a part of a bit in the factors. (Loaders that take the largest *encode* scale
// choose the smaller range.) Both alphas then contain this scale, and neither projection's own.
std::vector<double> input_scales(const Sides& sides) {
  std::vector<double> scales;
  for (size_t e = 0; e < sides.experts() && sides.first[e].input_scale; ++e) {
    const double first = *sides.first[e].input_scale;
    scales.push_back(sides.second ? std::max(first, *(*sides.second)[e].input_scale) : first);
  }
  return scales;
}

Activations quantise(const Input& input, const Sides& sides, const std::vector<double>& scales,
                     const DeviceBuffer& first, dualgemm_args_t& launch) {
  const size_t experts = sides.experts();
  const int32_t rows = input.rows();
  const DeviceBuffer x(input.x);
  std::vector<float> encode(std::max<size_t>({experts, size_t(rows), 3}), 1.0f);
  for (size_t e = 0; e < scales.size(); ++e) encode[e] = static_cast<float>(1 / scales[e]);
  Activations a{DeviceBuffer(size_t(rows) * sides.k / 2),
                DeviceBuffer(blocks_of_rows(rows, experts) * dualgemm_sf_size(128, sides.k)),
                DeviceBuffer(encode)};
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = rows, args.k = sides.k;
  if (experts > 1) {
    args.group_mode = DUALGEMM_GROUP_OFFSETS;
    args.groups = static_cast<int32_t>(experts);
    args.group_rows = first.as<int32_t>();
  }
  args.x = x.as();
  args.q = a.elements.as();
  args.sf = a.factors.as();
  if (!scales.empty()) {  // the checkpoint's: static, and in the alphas
    args.global_scale_dev = a.scales.as<float>();
    args.global_scale_stride = experts > 1 ? 1 : 0;
  } else if (experts == 1) {  // the launch takes it from where it is written
    args.scale_mode = DUALGEMM_SCALE_TENSOR;
    args.tensor_scales = a.scales.as<float>();
    launch.alpha1_dev = args.tensor_scales + 2;
    if (sides.second) launch.alpha2_dev = launch.alpha1_dev;
  } else {  // alpha1_dev is taken by the experts' own alphas, so A has a factor for each row
    args.scale_mode = DUALGEMM_SCALE_ROW;
    args.row_scale = a.scales.as<float>();
    launch.a_row_scale = args.row_scale;
  }
  launch.a = args.q, launch.sfa = args.sf;
  check(dualgemm_quantize(&args, nullptr), "dualgemm_quantize");
  check(cudaDeviceSynchronize(), "the quantisation");  // x goes away
  return a;
}

}  // namespace checkpoint
