// checkpoint.cpp -- from the tensors that names.cpp found to the matrices of gate and up: fused tensors taken
// apart by address alone.

#include "example/checkpoint/checkpoint.h"

#include "example/checkpoint/stored.h"

namespace checkpoint {

static void add_fused(const Stored& both, bool interleaved, Mlp& mlp) {
  if (both.planes.rows % 2 != 0) refuse(*both.tensor, "has an odd number of rows, so it is not gate and up");
  const uint64_t n = both.planes.rows / 2;
  for (uint64_t e = 0; e < both.planes.experts; ++e) {
    mlp.gates.push_back(make_matrix(both, e, 0, 0, interleaved ? 2 : 1, n));
    mlp.ups.push_back(make_matrix(both, e, 1, interleaved ? 1 : n, interleaved ? 2 : 1, n));
  }
}

static void add_pair(const Stored& gate, const Stored& up, Mlp& mlp) {
  const Planes &g = gate.planes, &u = up.planes;
  if (g.encoding != u.encoding)
    refuse(*up.tensor, std::string("is ") + name_of(u.encoding) + ", but " + printable(gate.tensor->name) +
                           " is " + name_of(g.encoding));
  if (g.experts != u.experts || g.rows != u.rows || g.k != u.k)
    refuse(*up.tensor,
           "is not like " + printable(gate.tensor->name) + ", which is " + describe(*gate.tensor));
  for (uint64_t e = 0; e < g.experts; ++e) {
    mlp.gates.push_back(make_matrix(gate, e, 0, 0, 1, g.rows));
    mlp.ups.push_back(make_matrix(up, e, 1, 0, 1, u.rows));
  }
}

static std::string layout_of(bool transposed, bool fused, bool interleaved) {
  return std::string(transposed ? "transposed, " : "") + (!fused ? "gate and up in tensors of their own"
                                                          : interleaved
                                                              ? "gate and up in one tensor, row by row"
                                                              : "gate and up in one tensor, gate first");
}

// In gpt-oss's own names the rows are in turns, and gate first in llama.cpp's; of other fused tensors the
// caller knows.
static bool is_interleaved(const Gate& gate, bool gpt_oss, const Choice& choice) {
  const std::string leaf = gate.spelling->gate;
  if (choice.interleaved || !gpt_oss || gate.spelling->up || gate.names->convention == Convention::kGguf)
    return choice.interleaved;
  if (leaf != "gate_up_proj")
    refuse(*gate.first,
           "is of gpt-oss by the model's configuration, whose rows are in turns under the name "
           "gate_up_proj; of " +
               leaf + " no file says how they are");
  return true;
}

// A GGUF's own word for its model, or "".
static std::string architecture_of(const Metadata& metadata) {
  for (const auto& [key, value] : metadata)
    if (key == "general.architecture") return value;
  return "";
}

Mlp find_mlp(const Tensors& tensors, const Choice& choice) {
  const Gate gate = choose_gate(tensors, choice.gate);
  const bool fused = gate.spelling->up == nullptr;
  Mlp mlp{};
  mlp.name = printable(gate.label());
  mlp.convention = gate.names->convention;
  const std::string architecture = architecture_of(tensors.metadata());
  mlp.gpt_oss = mlp.convention == Convention::kGptOss || choice.config.gpt_oss || architecture == "gpt-oss";
  if (architecture.starts_with("gemma") || architecture == "grok")
    mlp.activation_note = "NOT the model's: " + printable(architecture) + " has GELU, which is not done here";
  const bool interleaved = is_interleaved(gate, mlp.gpt_oss, choice);
  mlp.first_expert = gate.first_expert;
  if (!fused && choice.interleaved)
    refuse(*gate.first, "is a gate of its own: its rows are not interleaved with others");
  if (gate.end_expert - gate.first_expert > kMostExperts)
    refuse(*gate.first, "is one of more than 1,024 experts");
  Reader reader(tensors, *gate.names, &mlp);
  Stored first{};
  for (uint64_t e = gate.first_expert; e < std::max<uint64_t>(gate.end_expert, 1); ++e) {
    const Stored stored = reader.read(gate.stem(gate.spelling->gate, e), fused);
    if (e == gate.first_expert) first = stored;
    const Planes &x = stored.planes, &y = first.planes;
    if (x.rows != y.rows || x.k != y.k || x.encoding != y.encoding || (gate.numbered() && x.experts != 1))
      refuse(*stored.tensor,
             "is not like " + printable(first.tensor->name) + ", which is " + describe(*first.tensor));
    if (fused) add_fused(stored, interleaved, mlp);
    else add_pair(stored, reader.read(gate.stem(gate.spelling->up, e), fused), mlp);
  }
  reader.finish(choice.config, gate.before);
  mlp.layout = layout_of(first.planes.transposed, fused, interleaved);
  mlp.n = static_cast<int32_t>(fused ? first.planes.rows / 2 : first.planes.rows);
  mlp.k = static_cast<int32_t>(first.planes.k);
  // A rank has its part of the rows of gate and the same part of up's. To cut a fused tensor as if it were
  // one matrix would give the first ranks all of gate and the last ones all of up.
  for (std::vector<Matrix>* side : {&mlp.gates, &mlp.ups}) {
    take_rows(choice, *first.tensor, mlp.n, *side);
    check_input_scales(mlp.gates[0], *side);
    check_biases(*side);
  }
  mlp.n /= choice.tp_size;
  check_extents(mlp, *first.tensor);
  return mlp;
}

}  // namespace checkpoint
