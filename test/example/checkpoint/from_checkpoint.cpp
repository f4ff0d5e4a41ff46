// from_checkpoint.cpp -- from the files of a checkpoint to C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T):
// finds gate and up, quantises activations, launches once for all experts, and compares every output with
// double precision. The down projection, or any other linear layer, is a launch of one product. README.md has
// the commands. The exit status is the verdict: of the launches, on the tensors as they were read.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <optional>

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/files.h"
#include "example/checkpoint/launch.h"
#include "example/checkpoint/linear.h"
#include "example/checkpoint/report.h"

namespace {

using namespace checkpoint;

struct Options {
  std::vector<std::string> files;
  Choice choice;
  int rows = 24;
  bool list = false, gpt_oss = false, down = false, cut_k = false;
  std::string linear, dump;
};

void dump(const std::string& name, const std::vector<uint16_t>& values) {
  std::ofstream file(name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(2 * values.size()));
  if (!file) throw std::runtime_error(name + ": cannot be written");
}

// Gate and up, and behind them down, if asked for.
bool run_mlp(const Files& files, const Options& options) {
  Mlp mlp = find_mlp(files.tensors, options.choice);
  std::optional<Linear> down;
  if (options.down) down = find_down(files.tensors, options.choice, mlp);
  print_found(mlp, mlp.gates, options.choice, files.unread);
  const Activation activation = options.gpt_oss || mlp.gpt_oss
                                    ? Activation{1.702f, 1, options.choice.config.swiglu_limit}
                                    : Activation{};
  print_activation(activation, mlp.activation_note);
  const Input input = make_input(options.rows, mlp.k, mlp.gates.size());
  const Launched launched = launch({mlp.gates, &mlp.ups, mlp.n, mlp.k}, input, activation);
  if (!options.dump.empty()) {
    dump(options.dump + ".x", input.x);
    dump(options.dump + ".c", launched.c);
  }
  if (!down) return launched.verdict.wrong == 0;
  fmt::print("\n");
  print_found(*down, down->weights, options.choice, {});
  const Launched last = launch({down->weights, nullptr, down->n, down->k}, {launched.c, input.first}, {});
  if (!options.dump.empty()) dump(options.dump + ".down", last.c);
  return launched.verdict.wrong == 0 && last.verdict.wrong == 0;
}

bool run_linear(const Files& files, const Options& options) {
  const Linear linear =
      find_linear(files.tensors, options.linear, options.cut_k ? Cut::kK : Cut::kN, options.choice);
  print_found(linear, linear.weights, options.choice, files.unread);
  const Input input = make_input(options.rows, linear.k, linear.weights.size());
  const Launched launched = launch({linear.weights, nullptr, linear.n, linear.k}, input, {});
  if (!options.dump.empty()) {
    dump(options.dump + ".x", input.x);
    dump(options.dump + ".c", launched.c);
  }
  return launched.verdict.wrong == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "The SwiGLU half of an MLP, its other half, or any linear layer, from .safetensors or .gguf files");
  app.add_option("files", options.files, "all files that have tensors of the layer, or an index, or a folder")
      ->required();
  app.add_flag("--list", options.list, "names every gate there is, and does nothing else");
  auto* gate = app.add_option("--gate", options.choice.gate, "the gate to take, as --list names it");
  auto* down = app.add_flag("--down", options.down, "also the down projection, of what gate and up give");
  auto* linear = app.add_option("--linear", options.linear,
                                "instead one product: the weight whose tensor of elements has this name");
  app.add_flag("--cut-k", options.cut_k, "with --linear: the ranks share K, as of o_proj and down_proj")
      ->needs(linear);
  app.add_option("--rows", options.rows, "rows of A, of all experts together")->check(CLI::Range(1, 1 << 20));
  app.add_option("--tp-rank", options.choice.tp_rank, "this rank of a tensor-parallel layer");
  app.add_option("--tp-size", options.choice.tp_size,
                 "ranks that share the rows of gate and up, and K of down")
      ->check(CLI::Range(1, 1 << 20));
  auto* interleaved = app.add_flag("--interleaved", options.choice.interleaved,
                                   "a fused tensor has rows g0, u0, g1, u1, ...");
  auto* gpt_oss = app.add_flag("--gpt-oss", options.gpt_oss, "--interleaved, and the activation of gpt-oss");
  for (CLI::Option* other : {gate, down, interleaved, gpt_oss}) linear->excludes(other);
  app.add_option(
      "--dump", options.dump,
      "writes A before it was quantised and C, BF16, to NAME.x and NAME.c, and C of --down to NAME.down");
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
    const bool correct = options.linear.empty() ? run_mlp(files, options) : run_linear(files, options);
    return correct ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& e) {
    fmt::print(stderr, "from_checkpoint: {}\n", e.what());
    return EXIT_FAILURE;
  }
}
