// main.cpp -- the readers of checkpoints (test/example/checkpoint) under libFuzzer: any bytes are a file of
// tensors inside these bytes, or an index of files, or are refused with FormatError. Then gate and up, and
// behind them down, are looked for, with options out of the input's last bytes, and any tensor is taken for a
// weight by its name; every byte that they claim is read.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/files.h"
#include "example/checkpoint/gguf.h"
#include "example/checkpoint/linear.h"
#include "example/checkpoint/safetensors.h"

using namespace checkpoint;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

static void require(bool holds) {
  if (!holds) std::abort();
}

static unsigned touch(Bytes bytes) {
  unsigned sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

static unsigned touch(const Matrix& matrix, int32_t n, int32_t k) {
  unsigned sum = 0;
  for (int32_t row = 0; row < n; ++row) {
    const bool blocks = matrix.encoding == Encoding::kGguf;
    sum += touch({matrix.elements + row * matrix.row_bytes, size_t(blocks ? k / 64 * 36 : k / 2)});
    const size_t factors = size_t(k) / (matrix.encoding == Encoding::kMxfp4 ? 32 : 16);
    if (!blocks) sum += touch({matrix.factors + row * matrix.factor_row_bytes, factors});
  }
  return sum;
}

// Every byte of the weights, whose scales and biases are numbers of a launch.
static void look_at(const std::vector<Matrix>& weights, int32_t n, int32_t k) {
  require(!weights.empty() && n > 0 && n % 8 == 0 && k > 0 && k % 32 == 0);
  unsigned sum = 0;
  for (const Matrix& matrix : weights) {
    require(std::isnormal(static_cast<float>(matrix.scale * matrix.input_scale.value_or(1))));
    require(matrix.bias.empty() || matrix.bias.size() == size_t(n));
    sum += touch(matrix, n, k);
  }
  __asm__ volatile("" : : "r"(sum));  // or nothing would have to be read
}

static void look(const Tensors& tensors, Bytes file) {
  Choice choice;
  const uint8_t options = file.empty() ? 0 : file.back();
  choice.interleaved = options & 1;
  choice.tp_size = 1 + (options >> 1 & 3);
  choice.tp_rank = (options >> 3) % choice.tp_size;
  for (const auto& [name, tensor] : tensors.all()) try {
      const Linear one = find_linear(tensors, name, options & 1 ? Cut::kN : Cut::kK, choice);
      look_at(one.weights, one.n, one.k);
      break;  // one is enough, and an input may have thousands
    } catch (const FormatError&) {
    }
  Mlp mlp = find_mlp(tensors, choice);
  require(mlp.gates.size() == mlp.ups.size());
  look_at(mlp.gates, mlp.n, mlp.k);
  look_at(mlp.ups, mlp.n, mlp.k);
  const Linear down = find_down(tensors, choice, mlp);
  require(down.weights.size() == mlp.gates.size() && down.k == mlp.n);
  look_at(down.weights, down.n, down.k);
}

extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:quarantine_size_mb=32";
}

// Most bytes of a file are numbers of tensors, of which any will do, so all changes are made to what comes
// before.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr size_t kMostHead = 2048;
  size_t head = std::min(size, kMostHead);
  uint64_t length;
  if (size > sizeof length && !is_gguf({data, size})) {
    std::memcpy(&length, data, sizeof length);
    if (length <= size - sizeof length) head = sizeof length + length;
  }
  const std::vector<uint8_t> rest(data + head, data + size);
  const size_t changed = LLVMFuzzerMutate(data, head, most - rest.size());
  std::copy(rest.begin(), rest.end(), data + changed);
  // A header of another length is still the header, except once in a while.
  length = changed - std::min(changed, sizeof length);
  if (!is_gguf({data, changed}) && changed > sizeof length && seed % 16 != 0)
    std::memcpy(data, &length, sizeof length);
  return changed + rest.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file(data, size);
  try {
    if (size > 0 && data[0] == '{') {
      Config config;
      read_config(file, config);
      check_layer(config, "model.layers.0.mlp.gate_proj");
      require(!parse_index(file).empty());
    }
    const Contents stored = is_gguf(file) ? read_gguf(file) : read_safetensors(file);
    for (const StoredTensor& tensor : stored.tensors)
      require(tensor.bytes.empty() ||
              (tensor.bytes.data() >= data && tensor.bytes.size() <= size &&
               tensor.bytes.data() - data <= std::ptrdiff_t(size - tensor.bytes.size())));
    Tensors tensors;
    tensors.add(stored);
    look(tensors, file);
  } catch (const FormatError& error) {
    require(std::strlen(error.what()) > 0);
  }
  return 0;
}
