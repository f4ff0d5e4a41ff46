#include "example/checkpoint/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace checkpoint {

constexpr size_t kMost = 8;  // two projections, each with its scales

// A line for each, or one for all.
static void print_names(const char* first, const std::vector<std::string>& names) {
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i)
    fmt::print("{:12} {}\n", i == 0 ? first : "", names[i]);
  if (names.size() > kMost) fmt::print("             ... and {} more\n", names.size() - kMost);
}

std::string joined(const std::vector<double>& values) {
  std::string text;
  for (size_t i = 0; i < std::min(kMost, values.size()); ++i) text += fmt::format("{:.9g} ", values[i]);
  return values.size() > kMost ? text + "..." : text;
}

void print_found(const Layer& layer, const std::vector<Matrix>& weights, const Choice& choice,
                 const std::vector<std::string>& unread) {
  fmt::print("found        {}: {}, {}, {}\n", layer.name, name_of(layer.convention),
             name_of(weights[0].encoding), layer.layout);
  print_names("", layer.notes);
  print_names("not read", layer.others);
  print_names("files left", unread);
  fmt::print("problem      N {}, K {}, experts {}", layer.n, layer.k, weights.size());
  if (layer.first_expert > 0)
    fmt::print(" ({} to {})", layer.first_expert, layer.first_expert + weights.size() - 1);
  if (choice.tp_size > 1) fmt::print(", rank {} of {}", choice.tp_rank, choice.tp_size);
  fmt::print("\n");
}

void print_input_scales(const Sides& sides, const std::vector<double>& scales) {
  const bool one = sides.experts() == 1;
  if (scales.empty()) {
    fmt::print("input scale  none: the checkpoint has weights alone, so A gets a scale when it comes, {}\n",
               one ? "one for all rows (DUALGEMM_SCALE_TENSOR)" : "one for each row (DUALGEMM_SCALE_ROW)");
    return;
  }
  bool differ = false;
  for (size_t e = 0; sides.second && e < sides.experts(); ++e)
    differ |= *sides.first[e].input_scale != *(*sides.second)[e].input_scale;
  fmt::print("input scale  {}{}\n", joined(scales),
             differ
                 ? "(gate's and up's differ: A is quantised once, with the larger, which saturates nothing)"
                 : "");
}

void print_activation(const Activation& activation, const std::string& note) {
  const auto& [alpha, beta, limit] = activation;
  if (alpha == 1 && beta == 0 && std::isinf(limit)) fmt::print("activation   silu(g) * u\n");
  else
    fmt::print("activation   g * sigmoid({} * g) * (u + {}), g and u limited to {}: gpt-oss's\n", alpha, beta,
               limit);
  if (!note.empty()) fmt::print("             {}\n", note);
}

// No comparison here can know whether the tensors mean what they were taken for.
void print_verdict(const Verdict& verdict) {
  fmt::print("verdict      {}: {} of {} outputs are outside their bound, the others within {:.0f} % of it\n",
             verdict.wrong ? "WRONG, as read" : "correct, as read", verdict.wrong, verdict.outputs,
             100 * verdict.largest);
  fmt::print(
      "compared     the launch with double precision, both on the tensors as read above; whether the\n"
      "             model means them so, no file says: compare a layer with the model's own\n");
}

}  // namespace checkpoint
