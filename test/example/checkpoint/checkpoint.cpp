// checkpoint.cpp -- from the tensors that names.cpp found to the matrices of gate and up: fused tensors taken
// apart by address alone, scales turned to one convention, and nothing beside them left unread that may
// change what they mean.

#include "example/checkpoint/checkpoint.h"

#include "example/checkpoint/comfy.h"
#include "example/checkpoint/numbers.h"
#include "example/checkpoint/siblings.h"

namespace checkpoint {
namespace {

// One tensor of elements, with all that belongs to it.
struct Stored {
  const StoredTensor* tensor;
  const StoredTensor* bias;
  Planes planes;
  std::vector<TwoScales> scales, input_scales;  // the latter may be empty
};

// Reads tensors by their stems, and remembers which.
class Reader {
 public:
  Reader(const Tensors& tensors, const Gate& gate, Mlp* mlp) : tensors_(tensors), gate_(gate), mlp_(*mlp) {}

  Stored read(const char* leaf, uint64_t expert);
  // After all was read: refuses what belongs to it and was not.
  void finish(const Config& config) {
    for (const std::string& stem : stems_) check_layer(config, stem);
    check_siblings(tensors_, stems_, used_);
    mlp_.others = others(tensors_, gate_.before, used_);
  }

 private:
  const StoredTensor& use(const StoredTensor& tensor) {
    if (used_.insert(tensor.name).second)
      mlp_.notes.push_back(printable(tensor.name) + "  " + describe(tensor));
    return tensor;
  }
  void read_gguf(Stored& stored, const std::string& stem);
  void read_rows(Stored& stored, const std::string& stem);

  const Tensors& tensors_;
  const Gate& gate_;
  Mlp& mlp_;
  std::vector<std::string> stems_;
  std::set<std::string> used_;
};

void Reader::read_gguf(Stored& stored, const std::string& stem) {
  const StoredTensor& elements = *stored.tensor;
  if (elements.dtype != "NVFP4")
    refuse(elements, elements.ggml_type ? "is ggml's type " + std::to_string(*elements.ggml_type) +
                                              ": of a GGUF's weights NVFP4 alone is read, type 40"
                                        : "is not NVFP4 of a GGUF, as its gate is");
  stored.planes = read_gguf_planes(elements);
  const Names& names = *gate_.names;
  const bool fused = !gate_.spelling->up;
  if (const StoredTensor* scale = tensors_.find(stem + names.scale))
    stored.scales = read_scales(use(*scale), stored.planes.experts, fused, false);
  else stored.scales.assign(stored.planes.experts, {1, 1});  // llama.cpp multiplies by it where it is there
}

void Reader::read_rows(Stored& stored, const std::string& stem) {
  const Names& names = *gate_.names;
  const bool comfy = is_comfy(tensors_, stem), fused = !gate_.spelling->up;
  if (comfy) {
    if (stems_.size() == 1 && names.convention == Convention::kModelOpt)
      mlp_.convention = Convention::kComfyUi;
    if (mlp_.convention != Convention::kComfyUi)
      refuse(*stored.tensor, "is marked as ComfyUI's, with names or beside tensors that are not");
    if (const StoredTensor* mark = tensors_.find(stem + ".comfy_quant")) use(*mark);
  } else if (mlp_.convention == Convention::kComfyUi) {
    refuse(*stored.tensor, "is not marked as ComfyUI's NVFP4, but others of its layer are");
  }
  const Form form = comfy                                     ? Form::kComfyUi
                    : names.convention == Convention::kGptOss ? Form::kBlocks
                                                              : Form::kPlain;
  check_elements(*stored.tensor, form);
  stored.planes = read_planes(*stored.tensor, use(tensors_.need(stem + names.factors)), form, mlp_.moved);
  if (stored.planes.encoding == Encoding::kMxfp4) {
    stored.scales.assign(stored.planes.experts, {1, 1});
    return;
  }
  const bool encode = names.convention == Convention::kCompressedTensors;
  stored.scales = read_scales(use(tensors_.need(stem + names.scale)), stored.planes.experts, fused, encode);
}

Stored Reader::read(const char* leaf, uint64_t expert) {
  const Names& names = *gate_.names;
  const std::string stem = stems_.emplace_back(gate_.stem(leaf, expert));
  Stored stored{};
  stored.tensor = &use(tensors_.need(stem + names.elements));
  if (names.convention == Convention::kGguf) read_gguf(stored, stem);
  else read_rows(stored, stem);
  const Planes& planes = stored.planes;
  const bool encode = names.convention == Convention::kCompressedTensors;
  if (const StoredTensor* scale = names.input_scale && planes.encoding != Encoding::kMxfp4
                                      ? tensors_.find(stem + names.input_scale)
                                      : nullptr)
    stored.input_scales = read_scales(use(*scale), planes.experts, !gate_.spelling->up, encode);
  stored.bias = tensors_.find(stem + names.bias);
  if (stored.bias) use(*stored.bias);
  return stored;
}

// n rows of one expert: `first` is the first of them, `step` the distance of two, `side` 0 for gate, 1 for
// up.
Matrix make_matrix(const Stored& stored, uint64_t expert, size_t side, uint64_t first, uint64_t step,
                   uint64_t n) {
  const Planes& planes = stored.planes;
  Matrix matrix{};
  matrix.name = printable(stored.tensor->name);
  matrix.encoding = planes.encoding;
  const uint64_t row = expert * planes.rows + first;
  matrix.elements = planes.elements + row * planes.element_bytes();
  matrix.row_bytes = static_cast<int64_t>(step * planes.element_bytes());
  if (planes.factors) matrix.factors = planes.factors + row * planes.factor_bytes();
  matrix.factor_row_bytes = static_cast<int64_t>(step * planes.factor_bytes());
  matrix.scale = stored.scales[expert][side];
  if (!stored.input_scales.empty()) matrix.input_scale = stored.input_scales[expert][side];
  if (stored.bias) {
    const StoredTensor& bias = *stored.bias;
    if ((bias.dtype != "BF16" && bias.dtype != "F32") ||
        element_count(bias.name, bias.shape) != planes.experts * planes.rows)
      refuse(bias, "is not one BF16 or F32 for each row of " + describe(*stored.tensor));
    for (uint64_t i = 0; i < n; ++i) matrix.bias.push_back(read_bias(bias, row + i * step));
  }
  return matrix;
}

void add_fused(const Stored& both, bool interleaved, Mlp& mlp) {
  if (both.planes.rows % 2 != 0) refuse(*both.tensor, "has an odd number of rows, so it is not gate and up");
  const uint64_t n = both.planes.rows / 2;
  for (uint64_t e = 0; e < both.planes.experts; ++e) {
    mlp.gates.push_back(make_matrix(both, e, 0, 0, interleaved ? 2 : 1, n));
    mlp.ups.push_back(make_matrix(both, e, 1, interleaved ? 1 : n, interleaved ? 2 : 1, n));
  }
}

void add_pair(const Stored& gate, const Stored& up, Mlp& mlp) {
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

std::string layout_of(bool transposed, bool fused, bool interleaved) {
  return std::string(transposed ? "transposed, " : "") + (!fused ? "gate and up in tensors of their own"
                                                          : interleaved
                                                              ? "gate and up in one tensor, row by row"
                                                              : "gate and up in one tensor, gate first");
}

// A rank has its part of the rows of gate and the same part of up's. To cut a fused tensor as if it were
// one matrix would give the first ranks all of gate and the last ones all of up.
void take_rank(Mlp& mlp, const StoredTensor& first, const Choice& choice) {
  if (mlp.n % choice.tp_size != 0)
    refuse(first, "has N = " + std::to_string(mlp.n) + ", which is no multiple of " +
                      std::to_string(choice.tp_size) + " ranks");
  mlp.n /= choice.tp_size;
  const int64_t row = int64_t{mlp.n} * choice.tp_rank;
  for (std::vector<Matrix>* side : {&mlp.gates, &mlp.ups})
    for (Matrix& matrix : *side) {
      matrix.elements += row * matrix.row_bytes;
      if (matrix.factors) matrix.factors += row * matrix.factor_row_bytes;
      if (!matrix.bias.empty()) matrix.bias = {matrix.bias.begin() + row, matrix.bias.begin() + row + mlp.n};
    }
}

// One launch adds a bias in all groups or in none.
void check_biases(const std::vector<Matrix>& matrices) {
  for (const Matrix& matrix : matrices)
    if (matrix.bias.empty() != matrices[0].bias.empty())
      throw FormatError((matrix.bias.empty() ? matrix : matrices[0]).name + ": has no bias, but others do");
}

// Either all have an input scale or none has. A checkpoint may lack that of an expert which calibration
// never reached; what to quantise its rows with is then nobody's knowledge.
void check_input_scales(const Mlp& mlp) {
  const Matrix& first = mlp.gates[0];
  for (const std::vector<Matrix>* side : {&mlp.gates, &mlp.ups})
    for (const Matrix& matrix : *side)
      if (matrix.input_scale.has_value() != first.input_scale.has_value()) {
        const bool here = matrix.input_scale.has_value();
        throw FormatError((here ? first : matrix).name + ": has no input scale, but " +
                          (here ? matrix : first).name + " has one");
      }
}

// In gpt-oss's own names the rows are in turns, and gate first in llama.cpp's; of other fused tensors the
// caller knows.
bool is_interleaved(const Gate& gate, bool gpt_oss, const Choice& choice) {
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
std::string architecture_of(const Metadata& metadata) {
  for (const auto& [key, value] : metadata)
    if (key == "general.architecture") return value;
  return "";
}

}  // namespace

Mlp find_mlp(const Tensors& tensors, const Choice& choice) {
  const Gate gate = choose_gate(tensors, choice.gate);
  const bool fused = gate.spelling->up == nullptr;
  Mlp mlp{};
  mlp.gate = printable(gate.label());
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
  Reader reader(tensors, gate, &mlp);
  Stored first{};
  for (uint64_t e = gate.first_expert; e < std::max<uint64_t>(gate.end_expert, 1); ++e) {
    const Stored stored = reader.read(gate.spelling->gate, e);
    if (e == gate.first_expert) first = stored;
    const Planes &x = stored.planes, &y = first.planes;
    if (x.rows != y.rows || x.k != y.k || x.encoding != y.encoding || (gate.numbered() && x.experts != 1))
      refuse(*stored.tensor,
             "is not like " + printable(first.tensor->name) + ", which is " + describe(*first.tensor));
    if (fused) add_fused(stored, interleaved, mlp);
    else add_pair(stored, reader.read(gate.spelling->up, e), mlp);
  }
  reader.finish(choice.config);
  mlp.layout = layout_of(first.planes.transposed, fused, interleaved);
  mlp.n = static_cast<int32_t>(fused ? first.planes.rows / 2 : first.planes.rows);
  mlp.k = static_cast<int32_t>(first.planes.k);
  take_rank(mlp, *first.tensor, choice);
  check_input_scales(mlp);
  check_biases(mlp.gates);
  check_biases(mlp.ups);
  // What this library asks for, with compact tensors and a BF16 output.
  if (mlp.k % 32 != 0) refuse(*first.tensor, "has K = " + std::to_string(mlp.k) + ", no multiple of 32");
  if (mlp.n % 8 != 0)
    refuse(*first.tensor, "gives a rank N = " + std::to_string(mlp.n) + ", no multiple of 8");
  return mlp;
}

}  // namespace checkpoint
