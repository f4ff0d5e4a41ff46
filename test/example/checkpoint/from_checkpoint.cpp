// from_checkpoint.cpp -- from the files of a checkpoint to C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T):
// finds gate and up, quantises activations, launches once for all experts, and compares every output with
// double precision. README.md has the commands. The exit status is the verdict: of the launch, on the tensors
// as they were read.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "example/checkpoint/activations.h"
#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/files.h"
#include "example/checkpoint/report.h"
#include "example/checkpoint/weights.h"

namespace {

using namespace checkpoint;

struct Options {
  std::vector<std::string> files;
  Choice choice;
  int rows = 24;
  bool list = false, gpt_oss = false;
  std::string dump;
};

// The alphas of one side: the scale of A, where it is known before, times those of the weights.
std::vector<double> alphas_of(const std::vector<Matrix>& matrices, const Weights& weights,
                              const std::vector<double>& input_scales) {
  std::vector<double> alphas;
  for (size_t e = 0; e < matrices.size(); ++e)
    alphas.push_back(matrices[e].scale * weights.scales[e] * (input_scales.empty() ? 1 : input_scales[e]));
  return alphas;
}

std::vector<float> biases_of(const std::vector<Matrix>& matrices) {
  std::vector<float> all;
  for (const Matrix& matrix : matrices) all.insert(all.end(), matrix.bias.begin(), matrix.bias.end());
  if (all.empty()) all.push_back(0);  // a buffer that no launch sees
  return all;
}

Verdict verify(const Mlp& mlp, const Input& input, const Activations& a, const std::vector<double>& scales,
               const std::vector<uint16_t>& c, const Activation& activation) {
  const auto elements = a.elements.read<uint8_t>(), factors = a.factors.read<uint8_t>();
  const auto written = a.scales.read<float>();
  const size_t experts = mlp.gates.size();
  Verdict verdict;
  size_t block = 0;
  for (size_t e = 0; e < experts; ++e) {
    const int32_t first = input.first[e], rows = input.first[e + 1] - first;
    Problem problem{&mlp.gates[e],
                    &mlp.ups[e],
                    mlp.n,
                    mlp.k,
                    std::vector<float>(size_t(rows) * mlp.k),
                    {},
                    &c[size_t(first) * mlp.n],
                    activation};
    if (rows == 0) continue;
    check(dualgemm_dequantize_host(&elements[size_t(first) * mlp.k / 2], 0,
                                   &factors[block * dualgemm_sf_size(128, mlp.k)], rows, mlp.k, 1.0f,
                                   problem.a.data(), 0),
          "dualgemm_dequantize_host");
    block += (rows + 127) / 128;
    for (int32_t row = first; row < first + rows; ++row)
      problem.row_scales.push_back(!scales.empty() ? scales[e] : written[experts == 1 ? 2 : row]);
    verdict.add(problem);
  }
  return verdict;
}

void dump(const std::string& name, const std::vector<uint16_t>& values) {
  std::ofstream file(name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(2 * values.size()));
  if (!file) throw std::runtime_error(name + ": cannot be written");
}

bool run(const Mlp& mlp, const Options& options) {
  const size_t experts = mlp.gates.size();
  const Input input = make_input(options.rows, mlp.k, experts);
  const DeviceBuffer first(input.first);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = options.rows, args.n = mlp.n, args.k = mlp.k;

  const std::vector<double> scales = input_scales(mlp);
  print_input_scales(mlp, scales);
  const Activations a = quantise(input, options.rows, mlp, scales, first, args);
  const Weights gate = upload(mlp.gates, mlp.n, mlp.k), up = upload(mlp.ups, mlp.n, mlp.k);
  args.b1 = gate.elements.as(), args.sfb1 = gate.factors.as();
  args.b2 = up.elements.as(), args.sfb2 = up.factors.as();

  const std::vector<double> alpha1 = alphas_of(mlp.gates, gate, scales),
                            alpha2 = alphas_of(mlp.ups, up, scales);
  const DeviceBuffer alpha1_dev(std::vector<float>(alpha1.begin(), alpha1.end()));
  const DeviceBuffer alpha2_dev(std::vector<float>(alpha2.begin(), alpha2.end()));
  if (experts == 1) {
    args.alpha1 = static_cast<float>(alpha1[0]), args.alpha2 = static_cast<float>(alpha2[0]);
  } else {
    args.group_mode = DUALGEMM_GROUP_OFFSETS;
    args.groups = static_cast<int32_t>(experts);
    args.group_rows = first.as<int32_t>();
    args.alpha1_dev = alpha1_dev.as<float>(), args.alpha2_dev = alpha2_dev.as<float>();
    args.alpha_stride = 1;
  }
  fmt::print("rows         {}\nalpha1       {}\nalpha2       {}\n", fmt::join(input.first, " "),
             joined(alpha1), joined(alpha2));

  const DeviceBuffer bias1(biases_of(mlp.gates)), bias2(biases_of(mlp.ups));
  if (!mlp.gates[0].bias.empty()) args.bias1 = bias1.as();
  if (!mlp.ups[0].bias.empty()) args.bias2 = bias2.as();
  args.bias_dtype = DUALGEMM_DTYPE_FP32;
  if (args.bias1 || args.bias2) args.bias_stride = mlp.n;
  const bool gpt_oss = options.gpt_oss || mlp.gpt_oss;
  const Activation activation =
      gpt_oss ? Activation{1.702f, 1, options.choice.config.swiglu_limit} : Activation{};
  print_activation(activation, mlp.activation_note);
  args.swiglu_alpha = activation.alpha, args.swiglu_beta = activation.beta,
  args.swiglu_limit = activation.limit;

  // NaN: an output that is not written cannot pass.
  const DeviceBuffer c(std::vector<uint16_t>(size_t(options.rows) * mlp.n, 0xFFFF));
  args.c = c.as();
  check(dualgemm_launch_ex(&args, nullptr), "dualgemm_launch_ex");
  check(cudaDeviceSynchronize(), "the kernel");

  const std::vector<uint16_t> result = c.read<uint16_t>();
  if (!options.dump.empty()) {
    dump(options.dump + ".x", input.x);
    dump(options.dump + ".c", result);
  }
  const Verdict verdict = verify(mlp, input, a, scales, result, activation);
  print_verdict(verdict);
  return verdict.wrong == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The SwiGLU half of an MLP, from .safetensors or .gguf files");
  app.add_option("files", options.files, "all files that have tensors of the layer, or an index, or a folder")
      ->required();
  app.add_flag("--list", options.list, "names every gate there is, and does nothing else");
  app.add_option("--gate", options.choice.gate, "the gate to take, as --list names it");
  app.add_option("--rows", options.rows, "rows of A, of all experts together")->check(CLI::Range(1, 1 << 20));
  app.add_option("--tp-rank", options.choice.tp_rank, "this rank of a tensor-parallel layer");
  app.add_option("--tp-size", options.choice.tp_size, "ranks that share the rows of gate and up")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--interleaved", options.choice.interleaved, "a fused tensor has rows g0, u0, g1, u1, ...");
  app.add_flag("--gpt-oss", options.gpt_oss, "--interleaved, and the activation of gpt-oss");
  app.add_option("--dump", options.dump,
                 "writes A before it was quantised and C, BF16, to NAME.x and NAME.c");
  CLI11_PARSE(app, argc, argv);
  options.choice.interleaved |= options.gpt_oss;

  try {
    if (options.choice.tp_rank < 0 || options.choice.tp_rank >= options.choice.tp_size)
      throw std::runtime_error("--tp-rank is one of 0 to --tp-size - 1");
    Files files;
    for (const std::string& name : options.files) files.read(name);
    if (options.list) {
      for (const std::string& name : list_gates(files.tensors)) fmt::print("{}\n", name);
      return EXIT_SUCCESS;
    }
    options.choice.config = files.config;
    const Mlp mlp = find_mlp(files.tensors, options.choice);
    print_found(mlp, options.choice, files.unread);
    return run(mlp, options) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& e) {
    fmt::print(stderr, "from_checkpoint: {}\n", e.what());
    return EXIT_FAILURE;
  }
}
