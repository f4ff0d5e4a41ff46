#include "example/checkpoint/stored.h"

#include "example/checkpoint/comfy.h"
#include "example/checkpoint/numbers.h"
#include "example/checkpoint/siblings.h"

namespace checkpoint {

void Reader::read_gguf(Stored& stored, const std::string& stem, bool fused) {
  const StoredTensor& elements = *stored.tensor;
  if (elements.dtype != "NVFP4")
    refuse(elements, elements.ggml_type ? "is ggml's type " + std::to_string(*elements.ggml_type) +
                                              ": of a GGUF's weights NVFP4 alone is read, type 40"
                                        : "is not NVFP4 of a GGUF, as others of its layer are");
  stored.planes = read_gguf_planes(elements);
  if (const StoredTensor* scale = tensors_.find(stem + names_.scale))
    stored.scales = read_scales(use(*scale), stored.planes.experts, fused, false);
  else stored.scales.assign(stored.planes.experts, {1, 1});  // llama.cpp multiplies by it where it is there
}

void Reader::read_rows(Stored& stored, const std::string& stem, bool fused) {
  const bool comfy = is_comfy(tensors_, stem);
  if (comfy) {
    if (stems_.size() == 1 && names_.convention == Convention::kModelOpt)
      layer_.convention = Convention::kComfyUi;
    if (layer_.convention != Convention::kComfyUi)
      refuse(*stored.tensor, "is marked as ComfyUI's, with names or beside tensors that are not");
    if (const StoredTensor* mark = tensors_.find(stem + ".comfy_quant")) use(*mark);
  } else if (layer_.convention == Convention::kComfyUi) {
    refuse(*stored.tensor, "is not marked as ComfyUI's NVFP4, but others of its layer are");
  }
  const Form form = comfy                                      ? Form::kComfyUi
                    : names_.convention == Convention::kGptOss ? Form::kBlocks
                                                               : Form::kPlain;
  check_elements(*stored.tensor, form);
  stored.planes = read_planes(*stored.tensor, use(tensors_.need(stem + names_.factors)), form, layer_.moved);
  if (stored.planes.encoding == Encoding::kMxfp4) {
    stored.scales.assign(stored.planes.experts, {1, 1});
    return;
  }
  const bool encode = names_.convention == Convention::kCompressedTensors;
  stored.scales = read_scales(use(tensors_.need(stem + names_.scale)), stored.planes.experts, fused, encode);
}

Stored Reader::read(const std::string& stem, bool fused) {
  stems_.push_back(stem);
  Stored stored{};
  stored.tensor = &use(tensors_.need(stem + names_.elements));
  if (names_.convention == Convention::kGguf) read_gguf(stored, stem, fused);
  else read_rows(stored, stem, fused);
  const Planes& planes = stored.planes;
  const bool encode = names_.convention == Convention::kCompressedTensors;
  if (const StoredTensor* scale = names_.input_scale && planes.encoding != Encoding::kMxfp4
                                      ? tensors_.find(stem + names_.input_scale)
                                      : nullptr)
    stored.input_scales = read_scales(use(*scale), planes.experts, fused, encode);
  stored.bias = tensors_.find(stem + names_.bias);
  if (stored.bias) use(*stored.bias);
  return stored;
}

void Reader::finish(const Config& config, const std::string& before) {
  for (const std::string& stem : stems_) check_layer(config, stem);
  check_siblings(tensors_, stems_, used_);
  layer_.others = others(tensors_, before, used_);
}

const StoredTensor& Reader::use(const StoredTensor& tensor) {
  if (used_.insert(tensor.name).second)
    layer_.notes.push_back(printable(tensor.name) + "  " + describe(tensor));
  return tensor;
}

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

void check_biases(const std::vector<Matrix>& matrices) {
  for (const Matrix& matrix : matrices)
    if (matrix.bias.empty() != matrices[0].bias.empty())
      throw FormatError((matrix.bias.empty() ? matrix : matrices[0]).name + ": has no bias, but others do");
}

void check_input_scales(const Matrix& first, const std::vector<Matrix>& matrices) {
  for (const Matrix& matrix : matrices)
    if (matrix.input_scale.has_value() != first.input_scale.has_value()) {
      const bool here = matrix.input_scale.has_value();
      throw FormatError((here ? first : matrix).name + ": has no input scale, but " +
                        (here ? matrix : first).name + " has one");
    }
}

void take_rows(const Choice& choice, const StoredTensor& first, int32_t n, std::vector<Matrix>& matrices) {
  const int32_t rows = n / choice.tp_size, row = rows * choice.tp_rank;
  if (n % choice.tp_size != 0)
    refuse(first, "has N = " + std::to_string(n) + ", which is no multiple of " +
                      std::to_string(choice.tp_size) + " ranks");
  for (Matrix& matrix : matrices) {
    matrix.elements += row * matrix.row_bytes;
    if (matrix.factors) matrix.factors += row * matrix.factor_row_bytes;
    if (!matrix.bias.empty()) matrix.bias = {matrix.bias.begin() + row, matrix.bias.begin() + row + rows};
  }
}

void check_extents(const Layer& layer, const StoredTensor& first) {
  if (layer.k % 32 != 0) refuse(first, "has K = " + std::to_string(layer.k) + ", no multiple of 32");
  if (layer.n % 8 != 0) refuse(first, "gives a rank N = " + std::to_string(layer.n) + ", no multiple of 8");
}

}  // namespace checkpoint
