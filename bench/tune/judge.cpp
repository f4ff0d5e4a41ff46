// judge.cpp -- see judge.h.
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/arguments.h"

namespace bench {
namespace {

double us_of(const std::vector<Timed>& all, int32_t id) {
  return std::find_if(all.begin(), all.end(), [&](const Timed& one) { return one.id == id; })->us;
}

// The means are those of the ratios, geometric ones.
std::string summary_of(const std::vector<Judged>& all, bool tuned) {
  double model = 0, file = 0, worst_model = 0, worst_file = 0;
  int count = 0;
  for (const Judged& x : all) {
    if (x.tuned != tuned || !x.error.empty()) continue;
    ++count;
    model += std::log1p(x.model_over()), file += std::log1p(x.file_over());
    worst_model = std::max(worst_model, x.model_over()), worst_file = std::max(worst_file, x.file_over());
  }
  const char* const what = tuned ? "in the file" : "not in the file";
  if (count == 0) return fmt::format("No shape is {}.\n", what);
  return fmt::format(
      "Shapes {}: {}. Chosen over fastest: by the model {:.2f} % in the mean, {:.1f} % at worst; with the file "
      "{:.2f} % and {:.1f} %.\n",
      what, count, 100 * std::expm1(model / count), 100 * worst_model, 100 * std::expm1(file / count),
      100 * worst_file);
}

}  // namespace

Judged judge(const Tuner& tuner, const Store& store, const std::string& path, const Shape& shape,
             const Epilogue& epilogue, int rounds) {
  Judged out{shape};
  dualgemm_load_tuning(nullptr);
  const int32_t by_model = tuner.chosen(shape);
  out.tuned = store.has(key_of(shape, epilogue, tuner.general(shape)));
  check(dualgemm_load_tuning(path.c_str()), "dualgemm_load_tuning");
  const int32_t by_file = tuner.chosen(shape);
  dualgemm_load_tuning(nullptr);
  out.instances = tuner.compare(shape, {by_model, by_file}, rounds);
  const Timed& fastest = *std::min_element(out.instances.begin(), out.instances.end(),
                                           [](const Timed& x, const Timed& y) { return x.us < y.us; });
  out.by_model = info_of_instance(by_model).name;
  out.by_file = info_of_instance(by_file).name;
  out.fastest = info_of_instance(fastest.id).name;
  out.by_model_us = us_of(out.instances, by_model);
  out.by_file_us = us_of(out.instances, by_file);
  out.fastest_us = fastest.us;
  return out;
}

std::string judge_heading() {
  return "| products | M x N x K | in the file | fastest, us | model | file | fastest | chosen by the file |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
}

std::string judge_row(const Judged& x) {
  if (!x.error.empty())
    return fmt::format("| {} | {} | {} |\n", x.shape.products, shape_text(x.shape), x.error);
  return fmt::format("| {} | {} | {} | {:.2f} | +{:.1f} % | +{:.1f} % | {} | {} |\n", x.shape.products,
                     shape_text(x.shape), x.tuned ? "yes" : "no", x.fastest_us, 100 * x.model_over(),
                     100 * x.file_over(), x.fastest, x.by_file);
}

std::string judge_summary(const std::vector<Judged>& all) {
  return summary_of(all, true) + summary_of(all, false);
}

nlohmann::json judge_json(const std::vector<Judged>& all) {
  nlohmann::json out = nlohmann::json::array();
  for (const Judged& x : all) {
    nlohmann::json row{{"products", x.shape.products},
                       {"shape", shape_text(x.shape)},
                       {"label", x.shape.label},
                       {"tuned", x.tuned}};
    if (!x.error.empty()) {
      row["error"] = x.error;
    } else {
      row["by_model"] = {{"name", x.by_model}, {"us", x.by_model_us}};
      row["by_file"] = {{"name", x.by_file}, {"us", x.by_file_us}};
      row["fastest"] = {{"name", x.fastest}, {"us", x.fastest_us}};
      for (const Timed& one : x.instances)
        row["instances"].push_back({{"name", info_of_instance(one.id).name}, {"us", one.us}});
    }
    out.push_back(row);
  }
  return out;
}

}  // namespace bench
