// options.cpp -- see options.h.
#include "options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>

#include "ablation/tables.h"
#include "names.h"

namespace bench {
namespace {

std::vector<Shape> named_shapes(const Options& options) {
  std::vector<Shape> out;
  for (const std::string& text : options.shapes) out.push_back(parse_shape(text));
  if (!out.empty()) return out;
  for (const std::string& name : options.suites) {
    const auto& all = suites();
    const auto suite = std::find_if(all.begin(), all.end(), [&](const Suite& s) { return s.name == name; });
    if (suite == all.end()) throw std::runtime_error("unknown suite " + name);
    out.insert(out.end(), suite->shapes.begin(), suite->shapes.end());
  }
  const auto other = [&](const Shape& shape) { return shape.products != out.front().products; };
  if (options.products == 0 && std::any_of(out.begin(), out.end(), other))
    throw std::runtime_error("--suite: some have one product, others two: --products says what is run");
  return out;
}

// Adds what says what is run.
void add_problems(CLI::App* app, Options* options) {
  std::vector<std::string> names;
  for (const Suite& suite : suites()) names.push_back(suite.name);
  app->add_option("--suite", options->suites, "named shapes to run")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  app->add_option(
      "--shape", options->shapes,
      "instead of a suite, may be repeated: MxNxK, L*MxNxK, offsets:G~RxNxK; of a chain MxIxK or T,E,topkxIxK");
  app->add_option("--rows", options->rows, "the M of all shapes instead of theirs: 1,16,64")
      ->check(CLI::Range(1, INT32_MAX))
      ->delimiter(',');
  app->add_option("--part", options->part, "I/N: only every Nth of the shapes, from the Ith on");
  app->add_option("--products", options->products, "of A: 2, or 1; otherwise as the suites have them")
      ->check(CLI::Range(1, 2));
  app->add_option("--a-dtype", options->a_dtype, "type of A; bf16, fp16, and fp8 by MXFP4 weights on Hopper")
      ->check(CLI::IsMember(names_of(kTypesOfA)));
  app->add_option("--dtype", options->dtype, "type of C")->check(CLI::IsMember(names_of(kTypes)));
  app->add_option("--activation", options->activation, "with its default parameters")
      ->transform(CLI::IsMember(names_of(kActivations), CLI::ignore_case));
  app->add_option("--linear-activation", options->linear_activation, "of one product")
      ->transform(CLI::IsMember(names_of(kLinearActivations), CLI::ignore_case));
}

// Adds what says how it is run.
void add_effort(CLI::App* app, Options* options) {
  const auto ablation =
      app->add_option("--ablation", options->ablation, "one idea on and off (README.md names them), or all")
          ->check(CLI::IsMember(idea_names()).description("IDEA"));
  app->add_option("--repeats", options->repeats, "timed repeats")->check(CLI::Range(1, 100000));
  app->add_option("--input-sets", options->input_sets, "launches per repeat, each on inputs of its own")
      ->check(CLI::Range(1, 1000));
  app->add_option("--samples", options->samples, "outputs verified per input set")
      ->check(CLI::Range(4, 100000000));
  const auto verify_only =
      app->add_flag("--verify-only", options->verify_only, "verify and stop; runs in the simulator, too");
  app->add_flag("--baseline-only", options->baseline_only,
                "time cuBLASLt and an activation kernel alone; Hopper or newer")
      ->excludes(verify_only)
      ->excludes(ablation);
  app->add_option(
         "--contender", options->contenders,
         "a kernel of somebody else's, timed in turns with the library (contender.h); may be repeated")
      ->excludes(verify_only)
      ->excludes(ablation);
  app->add_flag(
         "--every-instance", options->every_instance,
         "time every instance that takes a shape, instead of the baseline; where nothing is timed, list them")
      ->excludes(verify_only)
      ->excludes(ablation);
  app->add_option("--json", options->json_path, "also write everything to this file");
  app->add_option("--keep", options->keep_paths,
                  "take over the results of such files, if they are there, and run the other shapes")
      ->excludes(ablation)
      ->delimiter(',');
  app->add_option("--compare", options->compare_path, "print how the times differ from those of such a file")
      ->excludes(verify_only)
      ->excludes(ablation);
}

// Adds what prints something else, and stops.
void add_prints(CLI::App* app, Options* options) {
  app->add_flag("--suites", options->suites_only,
                "print the suites and how many problems they have, and stop");
  app->add_flag("--instances", options->instances, "print every instance with its plan as JSON and stop");
  app->add_flag("--errors", options->errors,
                "print how far each activation is off in every type of C, and stop");
  app->add_flag("--cube", options->cube, "print how many combinations a B200 accepts, and stop");
  app->add_flag("--model", options->model,
                "print the choices and the times that the cost model predicts and stop");
  app->add_option(
      "--calibrate", options->calibrate_path,
      "print what first_hour.json says of the cost model, or fit its constants for Hopper to times of "
      "every instance, written by --json; and stop");
}

// Adds the chains, which take some of the options above.
void add_chains(CLI::App* app, Options* options) {
  CLI::Option* const chain =
      app->add_option(
             "--chain", options->chain,
             "in place of launches the layers that they are part of: ffn is gate and up, then down; moe has experts")
          ->check(CLI::IsMember({"ffn", "moe"}));
  for (const char* other :
       {"--suite", "--part", "--products", "--a-dtype", "--dtype", "--activation", "--linear-activation",
        "--ablation", "--baseline-only", "--contender", "--every-instance", "--keep", "--compare"})
    chain->excludes(app->get_option(other));
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options* options) {
  CLI::App app{"Benchmark of libdualgemm: C = silu(A B1^T) * (A B2^T) with FP4 weights, or A B1^T alone"};
  add_problems(&app, options);
  add_effort(&app, options);
  add_prints(&app, options);
  add_chains(&app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return {};
}

dualgemm_dtype_t a_dtype_of(const Options& options) { return number_of(kTypesOfA, options.a_dtype); }

std::vector<Shape> chosen_shapes(const Options& options) {
  std::vector<Shape> out = named_shapes(options);
  for (Shape& shape : out) {
    shape.a_dtype = a_dtype_of(options);
    if (options.products != 0) shape.products = options.products;
  }
  if (!options.rows.empty()) out = with_rows(out, options.rows);
  return options.part.empty() ? out : part_of(out, options.part);
}

Epilogue chosen_epilogue(const Options& options, int32_t products) {
  if (products == 1 && options.activation != "SWIGLU")
    throw std::runtime_error("--activation " + options.activation +
                             ": of two products; one takes --linear-activation");
  if (products == 2 && options.linear_activation != "NONE")
    throw std::runtime_error("--linear-activation " + options.linear_activation +
                             ": of one product; two take --activation");
  return {number_of(kTypes, options.dtype), number_of(kActivations, options.activation),
          number_of(kLinearActivations, options.linear_activation)};
}

std::vector<Layer> chosen_layers(const Options& options) {
  const bool moe = options.chain == "moe";
  std::vector<Layer> out;
  for (const std::string& text : options.shapes)
    out.push_back(moe ? parse_expert_layer(text) : parse_dense_layer(text));
  if (out.empty()) out = moe ? expert_layers() : dense_layers();
  return options.rows.empty() ? out : with_rows(out, options.rows);
}

}  // namespace bench
