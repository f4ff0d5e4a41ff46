// dualgemm_tune.cpp -- dualgemm-tune: times the instances that may run a launch on the GPU that is there, and
// writes what was fastest into a file that the library chooses by (host/TUNING.md). With --judge it says what
// such a file is worth.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/names.h"
#include "bench/progress.h"
#include "judge.h"
#include "model_config.h"
#include "store.h"
#include "tuner.h"

namespace {

struct Options {
  std::vector<std::string> shapes, lists, configs;
  std::vector<int32_t> tokens{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, rows;
  int32_t gpus = 1, products = 2;
  std::string a_dtype = "nvfp4", dtype = "bf16", activation = "SWIGLU", linear_activation = "NONE", part;
  std::string output = "dualgemm.tuning", judged, json;
  int rounds = 0, launches = 0;
  bool fresh = false, quiet = false;

  bench::Epilogue epilogue() const {
    return {bench::number_of(bench::kTypes, dtype), bench::number_of(bench::kActivations, activation),
            bench::number_of(bench::kLinearActivations, linear_activation)};
  }
  dualgemm_dtype_t type_of_a() const { return bench::number_of(bench::kTypesOfA, a_dtype); }
};

void add_options(CLI::App* app, Options* o) {
  app->add_option("--config", o->configs, "a model's config.json; may be repeated")->check(CLI::ExistingFile);
  app->add_option("--tp", o->gpus, "GPUs among which its layers are divided")->check(CLI::Range(1, 1024));
  app->add_option("--tokens", o->tokens, "for its layers")->check(CLI::Range(1, 1 << 24))->delimiter(',');
  app->add_option("--shape", o->shapes, "MxNxK, L*MxNxK, offsets:G~RxNxK or masked:G~RxNxK; may be repeated");
  app->add_option("--products", o->products, "of the A of these shapes: 2, or 1")->check(CLI::Range(1, 2));
  app->add_option("--shapes", o->lists, "a file with lines of 1 or 2 products, a shape and a label")
      ->check(CLI::ExistingFile);
  app->add_option("--rows", o->rows, "the M of shapes and lists instead of theirs")
      ->check(CLI::Range(1, INT32_MAX))
      ->delimiter(',');
  app->add_option("--part", o->part, "I/N: only every Nth of all shapes, from the Ith on");
  app->add_option("--a-dtype", o->a_dtype, "type of A; bf16, fp16, and fp8 by MXFP4 weights on Hopper")
      ->check(CLI::IsMember(bench::names_of(bench::kTypesOfA)));
  app->add_option("--dtype", o->dtype, "type of C")->check(CLI::IsMember(bench::names_of(bench::kTypes)));
  app->add_option("--activation", o->activation, "of two products")
      ->transform(CLI::IsMember(bench::names_of(bench::kActivations), CLI::ignore_case));
  app->add_option("--linear-activation", o->linear_activation, "of one product")
      ->transform(CLI::IsMember(bench::names_of(bench::kLinearActivations), CLI::ignore_case));
  app->add_option("--output", o->output, "the file; what it has stays, and is not timed again")
      ->capture_default_str();
  app->add_flag("--fresh", o->fresh, "begin a new file in place of the one that is there");
  app->add_option("--judge", o->judged, "write nothing; say what this file is worth for the shapes")
      ->check(CLI::ExistingFile);
  app->add_option("--json", o->json, "with --judge: also write everything to this file");
  app->add_option("--rounds", o->rounds, "at most; with --judge so many")->check(CLI::Range(1, 1000));
  app->add_option("--launches", o->launches, "at most, for one time")->check(CLI::Range(1, 1000));
  app->add_flag("--quiet", o->quiet, "print only what goes wrong");
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return text;
}

// Groups keep the rows that they have.
std::vector<bench::Shape> with_rows_of_dense(const std::vector<bench::Shape>& all,
                                             const std::vector<int32_t>& rows) {
  std::vector<bench::Shape> dense, out;
  for (const bench::Shape& shape : all) (shape.grouped() ? out : dense).push_back(shape);
  dense = bench::with_rows(dense, rows);
  out.insert(out.begin(), dense.begin(), dense.end());
  return out;
}

std::vector<bench::Shape> shapes_of(const Options& o) {
  std::vector<bench::Shape> out;
  for (const std::string& text : o.shapes) {
    out.push_back(bench::parse_shape(text));
    out.back().products = o.products;
  }
  for (const std::string& path : o.lists) {
    try {
      const std::vector<bench::Shape> list = bench::parse_shape_list(text_of(path));
      out.insert(out.end(), list.begin(), list.end());
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }
  if (!o.rows.empty()) out = with_rows_of_dense(out, o.rows);
  for (const std::string& path : o.configs) {
    std::vector<std::string> left_out;
    try {
      const std::string name = std::filesystem::absolute(path).parent_path().filename().string();
      const std::vector<bench::Shape> layers =
          bench::shapes_of_model(text_of(path), name, o.gpus, o.tokens, &left_out);
      out.insert(out.end(), layers.begin(), layers.end());
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
    for (const std::string& what : left_out) fmt::print(stderr, "{}: left out: {}\n", path, what);
  }
  if (out.empty())
    throw std::runtime_error("there is nothing to time: --config, --shape or --shapes says what");
  for (bench::Shape& shape : out) shape.a_dtype = o.type_of_a();
  return o.part.empty() ? out : bench::part_of(out, o.part);
}

// Ctrl-C ends the program where nothing is half done.
volatile std::sig_atomic_t interrupted = 0;
struct Interrupted {};

// A bar for a terminal; elsewhere there are only the lines of what is done.
class Progress {
 public:
  Progress(size_t all, bool quiet) : all_(all), quiet_(quiet) {}

  void begin(const std::string& what) { what_ = what; }
  void show(const std::string& now) const {
    if (interrupted) throw Interrupted();
    if (quiet_) return;
    constexpr size_t kWidth = 20;
    const size_t full = kWidth * done_ / all_;
    bench::show_progress(
        fmt::format("[{:#>{}}{:.>{}}] {}/{} {}: {}", "", full, "", kWidth - full, done_, all_, what_, now));
  }
  void end(const std::string& line) {
    ++done_;
    bench::clear_progress();
    if (quiet_) return;
    fmt::print("{}", line);
    std::fflush(stdout);
  }
  size_t done() const { return done_; }

 private:
  size_t all_, done_ = 0;
  bool quiet_;
  std::string what_;
};

std::string tuned_line(const bench::TunedShape& x) {
  const std::string winner = bench::info_of_instance(x.winner).name;
  if (x.winner == x.usual)
    return fmt::format("{:.2f} us, {} rounds, as the model chooses", x.usual_us, x.rounds);
  return fmt::format("{:.2f} us, {} rounds; the model's {} takes {:.2f} us, {:.1f} % more", x.winner_us,
                     x.rounds, bench::info_of_instance(x.usual).name, x.usual_us,
                     100 * (x.usual_us / x.winner_us - 1));
}

std::string title(const bench::Shape& shape) {
  return fmt::format("{} product{}, {}", shape.products, shape.products == 1 ? "" : "s",
                     bench::shape_text(shape));
}

bench::StorePlace place_of(const dualgemm_device_t& device) {
  dualgemm_tuning_info_t info;
  dualgemm_tuning_info_init(&info);
  bench::check(dualgemm_tuning_info(&info), "dualgemm_tuning_info");
  return {device.name, info.library, device.sm_count, device.driver_version};
}

// Times all shapes and writes each result at once. Returns the exit status.
int run_tuning(const Options& o, const std::vector<bench::Shape>& shapes, const dualgemm_device_t& device) {
  const bench::Epilogue epilogue = o.epilogue();
  bench::Store store(o.output, place_of(device), o.fresh);
  Progress progress(shapes.size(), o.quiet);
  const bench::Tuner tuner(epilogue, o.type_of_a(), {o.rounds, o.launches},
                           [&](const std::string& now) { progress.show(now); });
  bool good = true;
  const auto failed = [&](const bench::Shape& shape, const std::string& why) {
    bench::clear_progress();
    fmt::print(stderr, "dualgemm-tune: {}: {}\n", title(shape), why);
    good = false;
  };
  for (const bench::Shape& shape : shapes) {
    const std::string number = fmt::format("{}/{} {}", progress.done() + 1, shapes.size(), title(shape));
    progress.begin(title(shape));
    try {
      if (store.has(key_of(shape, epilogue, tuner.general(shape)))) {
        progress.end(number + ": is in the file\n");
        continue;
      }
      progress.show("preparing");
      const bench::TunedShape tuned = tuner.tune(shape);
      for (const bench::Timed& one : tuned.instances)
        if (!one.wrong.empty())
          failed(shape, fmt::format("{} is left out: {}", bench::info_of_instance(one.id).name, one.wrong));
      dualgemm::TuningLine line = key_of(shape, epilogue, tuned.general);
      const std::string name = bench::info_of_instance(tuned.winner).name;
      line.instance = name;
      store.add(line, tuned_line(tuned));
      progress.end(fmt::format("{}: {}, {}\n", number, name, tuned_line(tuned)));
    } catch (const Interrupted&) {
      bench::clear_progress();
      fmt::print(stderr,
                 "dualgemm-tune: interrupted: {} has {} entries; the same command goes on from there\n",
                 o.output, store.size());
      return 130;
    } catch (const std::runtime_error& error) {
      failed(shape, error.what());
      progress.end("");
    }
  }
  if (!o.quiet) fmt::print("{} has {} entries\n", o.output, store.size());
  return good ? 0 : 1;
}

void write_judgement(const Options& o, const dualgemm_device_t& device,
                     const std::vector<bench::Judged>& all) {
  if (o.json.empty()) return;
  const bench::StorePlace place = place_of(device);
  std::ofstream file(o.json);
  file << nlohmann::json{{"gpu", place.gpu},
                         {"sms", place.sms},
                         {"driver", place.driver},
                         {"library", place.library},
                         {"file", o.judged},
                         {"dtype", o.dtype},
                         {"a_dtype", o.a_dtype},
                         {"b_dtype", bench::name_in(bench::kTypesOfB, bench::b_dtype_for(o.type_of_a()))},
                         {"results", bench::judge_json(all)}}
              .dump(1)
       << "\n";
  if (!file.flush()) throw std::runtime_error(o.json + ": cannot be written");
}

int run_judgement(const Options& o, const std::vector<bench::Shape>& shapes,
                  const dualgemm_device_t& device) {
  constexpr int kRounds = 21;
  const bench::Epilogue epilogue = o.epilogue();
  bench::check(dualgemm_load_tuning(o.judged.c_str()), "dualgemm_load_tuning");
  const bench::Store store(o.judged, place_of(device), false);
  Progress progress(shapes.size(), o.quiet);
  const bench::Tuner tuner(epilogue, o.type_of_a(), {0, o.launches},
                           [&](const std::string& now) { progress.show(now); });
  std::vector<bench::Judged> all;
  bool good = true;
  if (!o.quiet) fmt::print("{}", bench::judge_heading());
  try {
    for (const bench::Shape& shape : shapes) {
      progress.begin(title(shape));
      progress.show("preparing");
      bench::Judged judged{shape};
      try {
        judged = bench::judge(tuner, store, o.judged, shape, epilogue, o.rounds > 0 ? o.rounds : kRounds);
      } catch (const std::runtime_error& error) {
        judged.error = error.what();
        good = false;
      }
      all.push_back(judged);
      progress.end(bench::judge_row(judged));
      write_judgement(o, device, all);
    }
  } catch (const Interrupted&) {
    bench::clear_progress();
    fmt::print(stderr, "dualgemm-tune: interrupted after {} of {} shapes\n", all.size(), shapes.size());
    return 130;
  }
  fmt::print("\n{}", bench::judge_summary(all));
  return good ? 0 : 1;
}

int run(const Options& o) {
  const std::vector<bench::Shape> shapes = shapes_of(o);
  // Without this the file of the environment would make the choice that others are compared with.
  dualgemm_load_tuning(nullptr);
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  if (dualgemm_current_device(&device) != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string("there is no GPU to time: ") + dualgemm_last_error());
  if (std::string(device.name).find("simulated") != std::string::npos)
    fmt::print(stderr, "dualgemm-tune: {} is no GPU: its times say nothing\n", device.name);
  return o.judged.empty() ? run_tuning(o, shapes, device) : run_judgement(o, shapes, device);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Times the kernel instances of libdualgemm on this GPU, and writes which is fastest for each size"};
  add_options(&app, &options);
  CLI11_PARSE(app, argc, argv);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = 1; });
  try {
    return run(options);
  } catch (const std::exception& error) {
    bench::clear_progress();
    fmt::print(stderr, "dualgemm-tune: {}\n", error.what());
    return 1;
  }
}
