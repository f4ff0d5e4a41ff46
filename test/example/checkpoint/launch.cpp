#include "example/checkpoint/launch.h"

#include <fmt/format.h>

#include <optional>

#include "example/checkpoint/device.h"
#include "example/checkpoint/report.h"
#include "example/checkpoint/weights.h"

namespace checkpoint {
namespace {

// The alphas of one side: the scale of A, where it is known before, times those of the weights.
std::vector<double> alphas_of(const std::vector<Matrix>& matrices, const Weights& weights,
                              const std::vector<double>& input_scales) {
  std::vector<double> alphas;
  for (size_t e = 0; e < matrices.size(); ++e)
    alphas.push_back(matrices[e].scale * weights.scales[e] * (input_scales.empty() ? 1 : input_scales[e]));
  return alphas;
}

// A weight on the device, with its alphas and bias.
struct Side {
  Weights weights;
  std::vector<double> alphas;
  DeviceBuffer alphas_dev, bias;
};

Side make_side(const std::vector<Matrix>& matrices, const Sides& sides, const std::vector<double>& scales) {
  Weights weights = upload(matrices, sides.n, sides.k);
  const std::vector<double> alphas = alphas_of(matrices, weights, scales);
  std::vector<float> bias;
  for (const Matrix& matrix : matrices) bias.insert(bias.end(), matrix.bias.begin(), matrix.bias.end());
  if (bias.empty()) bias.push_back(0);  // a buffer that no launch sees
  return {std::move(weights), alphas, DeviceBuffer(std::vector<float>(alphas.begin(), alphas.end())),
          DeviceBuffer(bias)};
}

// B1, SFB1 and what belongs to them.
void set_first(const Side& side, const std::vector<Matrix>& matrices, dualgemm_args_t& args) {
  args.b1 = side.weights.elements.as(), args.sfb1 = side.weights.factors.as();
  if (matrices.size() == 1) args.alpha1 = static_cast<float>(side.alphas[0]);
  else args.alpha1_dev = side.alphas_dev.as<float>();
  if (!matrices[0].bias.empty()) args.bias1 = side.bias.as();
}

// The same of the second product.
void set_second(const Side& side, const std::vector<Matrix>& matrices, dualgemm_args_t& args) {
  args.b2 = side.weights.elements.as(), args.sfb2 = side.weights.factors.as();
  if (matrices.size() == 1) args.alpha2 = static_cast<float>(side.alphas[0]);
  else args.alpha2_dev = side.alphas_dev.as<float>();
  if (!matrices[0].bias.empty()) args.bias2 = side.bias.as();
}

Verdict verify(const Sides& sides, const Input& input, const Activations& a,
               const std::vector<double>& scales, const std::vector<uint16_t>& c,
               const Activation& activation) {
  const auto elements = a.elements.read<uint8_t>(), factors = a.factors.read<uint8_t>();
  const auto written = a.scales.read<float>();
  const size_t experts = sides.experts();
  Verdict verdict;
  size_t block = 0;
  for (size_t e = 0; e < experts; ++e) {
    const int32_t first = input.first[e], rows = input.first[e + 1] - first;
    Problem problem{&sides.first[e],
                    sides.second ? &(*sides.second)[e] : nullptr,
                    sides.n,
                    sides.k,
                    std::vector<float>(size_t(rows) * sides.k),
                    {},
                    &c[size_t(first) * sides.n],
                    activation};
    if (rows == 0) continue;
    check(dualgemm_dequantize_host(&elements[size_t(first) * sides.k / 2], 0,
                                   &factors[block * dualgemm_sf_size(128, sides.k)], rows, sides.k, 1.0f,
                                   problem.a.data(), 0),
          "dualgemm_dequantize_host");
    block += (rows + 127) / 128;
    for (int32_t row = first; row < first + rows; ++row)
      problem.row_scales.push_back(!scales.empty() ? scales[e] : written[experts == 1 ? 2 : row]);
    verdict.add(problem);
  }
  return verdict;
}

}  // namespace

Launched launch(const Sides& sides, const Input& input, const Activation& activation) {
  const DeviceBuffer first(input.first);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.products = sides.second ? 2 : 1;
  args.m = input.rows(), args.n = sides.n, args.k = sides.k;

  const std::vector<double> scales = input_scales(sides);
  print_input_scales(sides, scales);
  const Activations a = quantise(input, sides, scales, first, args);
  fmt::print("rows         {}\n", fmt::join(input.first, " "));
  const Side one = make_side(sides.first, sides, scales);
  set_first(one, sides.first, args);
  fmt::print("alpha1       {}\n", joined(one.alphas));
  std::optional<Side> two;
  if (sides.second) {
    two.emplace(make_side(*sides.second, sides, scales));
    set_second(*two, *sides.second, args);
    fmt::print("alpha2       {}\n", joined(two->alphas));
    args.swiglu_alpha = activation.alpha, args.swiglu_beta = activation.beta,
    args.swiglu_limit = activation.limit;
  }
  args.bias_dtype = DUALGEMM_DTYPE_FP32;
  if (sides.experts() > 1) {
    args.group_mode = DUALGEMM_GROUP_OFFSETS;
    args.groups = static_cast<int32_t>(sides.experts());
    args.group_rows = first.as<int32_t>();
    args.alpha_stride = 1;
    if (args.bias1 || args.bias2) args.bias_stride = sides.n;
  }

  // NaN: an output that is not written cannot pass.
  const DeviceBuffer c(std::vector<uint16_t>(size_t(args.m) * args.n, 0xFFFF));
  args.c = c.as();
  check(dualgemm_launch_ex(&args, nullptr), "dualgemm_launch_ex");
  check(cudaDeviceSynchronize(), "the kernel");
  Launched launched{c.read<uint16_t>(), {}};
  launched.verdict = verify(sides, input, a, scales, launched.c, activation);
  print_verdict(launched.verdict);
  return launched;
}

}  // namespace checkpoint
