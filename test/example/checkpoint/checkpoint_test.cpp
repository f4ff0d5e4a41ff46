// checkpoint_test.cpp -- which tensors are taken for gate and up, where their rows are, and what is
// refused, on the fixtures and on tensors that exist here alone. That the numbers are right, check.py says.
#include "example/checkpoint/checkpoint.h"

#include <cstring>
#include <deque>
#include <string>

#include "example/checkpoint/gguf.h"
#include "example/checkpoint/safetensors.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

namespace {

// Tensors without a file.
struct Made {
  std::deque<std::vector<uint8_t>> memory;
  std::vector<StoredTensor> tensors;

  Made() = default;
  Made(Made&&) = default;  // a copy's tensors would be in the memory of the first

  Made& add(const std::string& name, const std::string& dtype, std::vector<uint64_t> shape, size_t element) {
    size_t bytes = element;
    for (const uint64_t extent : shape) bytes *= extent;
    tensors.push_back({name, dtype, std::move(shape), memory.emplace_back(bytes)});
    return *this;
  }
  Made& scale(const std::string& name, std::vector<float> values, std::vector<uint64_t> shape) {
    add(name, "F32", std::move(shape), 4);
    std::memcpy(memory.back().data(), values.data(), values.size() * 4);
    return *this;
  }
  Made& modelopt(const std::string& stem, uint64_t n, uint64_t k, float scale_2, float input) {
    add(stem + ".weight", "U8", {n, k / 2}, 1).add(stem + ".weight_scale", "F8_E4M3", {n, k / 16}, 1);
    return scale(stem + ".weight_scale_2", {scale_2}, {}).scale(stem + ".input_scale", {input}, {});
  }
  // One expert's gate and up in [e, rows, k / 2].
  Made& stacked(std::vector<uint64_t> elements, std::vector<uint64_t> factors, std::vector<float> scale_2) {
    const std::string stem = "m.experts.gate_up_proj";
    add(stem, "U8", std::move(elements), 1).add(stem + "_weight_scale", "F8_E4M3", std::move(factors), 1);
    const uint64_t count = scale_2.size();
    return scale(stem + "_weight_scale_2", std::move(scale_2), {count});
  }
  StoredTensor& operator[](const std::string& name) {
    for (StoredTensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw std::out_of_range(name);
  }
  Tensors all() const {
    Tensors result;
    result.add(tensors);
    return result;
  }
  Mlp find(const Choice& choice = {}) const { return find_mlp(all(), choice); }
};

Made plain() {
  Made made;
  made.modelopt("l.0.mlp.gate_proj", 32, 64, 0.5f, 0.25f).modelopt("l.0.mlp.up_proj", 32, 64, 2, 0.25f);
  return made;
}

}  // namespace

TEST_CASE("checkpoint: gate and up of their own are taken as they lie", "[checkpoint]") {
  Made made = plain();
  const Mlp mlp = made.find();
  CHECK(mlp.gate == "l.0.mlp.gate_proj.weight");
  CHECK(mlp.convention == Convention::kModelOpt);
  CHECK(mlp.n == 32);
  CHECK(mlp.k == 64);
  REQUIRE(mlp.gates.size() == 1);
  REQUIRE(mlp.ups.size() == 1);
  CHECK(mlp.gates[0].elements == made["l.0.mlp.gate_proj.weight"].bytes.data());
  CHECK(mlp.gates[0].row_bytes == 32);
  CHECK(mlp.gates[0].factor_row_bytes == 4);
  CHECK(mlp.ups[0].factors == made["l.0.mlp.up_proj.weight_scale"].bytes.data());
  CHECK(mlp.gates[0].scale == 0.5);
  CHECK(mlp.ups[0].scale == 2);
  CHECK(mlp.ups[0].input_scale == 0.25);
}

TEST_CASE("checkpoint: w1 is the gate and w3 the value, of experts in the order of their numbers",
          "[checkpoint]") {
  Made made;
  for (int e = 11; e >= 0; --e)
    for (const char* leaf : {"w3", "w1", "w2"})
      made.modelopt("b.experts." + std::to_string(e) + "." + leaf, 8, 32, 1, 1);
  const Mlp mlp = made.find();
  CHECK(mlp.gate == "b.experts.*.w1.weight");
  REQUIRE(mlp.gates.size() == 12);
  for (int e = 0; e < 12; ++e) {
    const std::string before = "b.experts." + std::to_string(e);
    CHECK(mlp.gates[e].elements == made[before + ".w1.weight"].bytes.data());
    CHECK(mlp.ups[e].elements == made[before + ".w3.weight"].bytes.data());
  }
}

TEST_CASE("checkpoint: a fused tensor is taken apart by address", "[checkpoint]") {
  Made made;
  made.stacked({2, 32, 16}, {2, 32, 2}, {0.5f, 4});
  const uint8_t* const base = made["m.experts.gate_up_proj"].bytes.data();
  const uint8_t* const factors = made["m.experts.gate_up_proj_weight_scale"].bytes.data();
  Choice choice;
  SECTION("gate first") {
    const Mlp mlp = made.find(choice);
    CHECK(mlp.n == 16);
    CHECK(mlp.gates[1].elements == base + 32 * 16);
    CHECK(mlp.ups[1].elements == base + 48 * 16);
    CHECK(mlp.ups[1].factors == factors + 48 * 2);
    CHECK(mlp.ups[1].row_bytes == 16);
    CHECK(mlp.gates[1].scale == 4);
    CHECK_FALSE(mlp.gates[1].input_scale);
  }
  SECTION("row by row") {
    choice.interleaved = true;
    const Mlp mlp = made.find(choice);
    CHECK(mlp.gates[1].elements == base + 32 * 16);
    CHECK(mlp.ups[1].elements == base + 33 * 16);
    CHECK(mlp.ups[1].row_bytes == 32);
    CHECK(mlp.ups[1].factors == factors + 33 * 2);
    CHECK(mlp.ups[1].factor_row_bytes == 4);
  }
  SECTION("a rank has its rows of gate and of up") {
    choice.tp_rank = 1;
    choice.tp_size = 2;
    const Mlp mlp = made.find(choice);
    CHECK(mlp.n == 8);
    CHECK(mlp.gates[0].elements == base + 8 * 16);
    CHECK(mlp.ups[0].elements == base + 24 * 16);
    CHECK(mlp.ups[0].factors == factors + 24 * 2);
  }
}

TEST_CASE("checkpoint: the factors say which dimension is K", "[checkpoint]") {
  Made made;
  made.stacked({1, 16, 32}, {1, 2, 32}, {1});  // K = 32, two halves of N = 16
  std::vector<uint8_t>& bytes = made.memory[0];
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  const Mlp mlp = made.find();
  CHECK(mlp.n == 16);
  CHECK(mlp.k == 32);
  CHECK(mlp.layout == "transposed, gate and up in one tensor, gate first");
  CHECK(mlp.ups[0].elements[3 * mlp.ups[0].row_bytes + 5] == bytes[5 * 32 + 16 + 3]);
}

TEST_CASE("checkpoint: what is no NVFP4 layer is refused, and the tensor named", "[checkpoint]") {
  Made made = plain();
  Choice choice;
  const std::string gate = "l.0.mlp.gate_proj", up = "l.0.mlp.up_proj";
  std::string expected;
  const auto retype = [&](const std::string& name, const char* dtype, const char* why) {
    made[name].dtype = dtype;
    expected = name + ": " + why;
  };
  SECTION("bf16 weights") { retype(gate + ".weight", "BF16", "BF16 [32, 32] is not NVFP4"); }
  SECTION("FP8 weights") { retype(up + ".weight", "F8_E4M3", "F8_E4M3 [32, 32] is not NVFP4"); }
  SECTION("E8M0 factors") { retype(up + ".weight_scale", "F8_E8M0", "F8_E8M0 [32, 4] is not NVFP4"); }
  SECTION("a scale of another type") { retype(up + ".weight_scale_2", "BF16", "BF16 [] is not one F32"); }
  SECTION("blocks of 32") {
    made[up + ".weight_scale"].shape = {32, 2};
    expected =
        up + ".weight_scale: F8_E4M3 [32, 2] does not have a factor for each 16 elements of U8 [32, 32]";
  }
  SECTION("no second scale") {
    made[up + ".weight_scale_2"].name = "other";
    expected = up + ".weight_scale_2: is missing";
  }
  SECTION("no up") {
    made[up + ".weight"].name = "other";
    expected = up + ".weight: is missing";
  }
  SECTION("an input scale of one alone") {
    made[up + ".input_scale"].name = "other";
    expected = up + ".weight: has no input scale, but " + gate + ".weight has one";
  }
  SECTION("another shape of up") {
    made[up + ".weight"].shape = {16, 64};
    made[up + ".weight_scale"].shape = {16, 8};
    expected = up + ".weight: U8 [16, 64] is not like " + gate + ".weight, which is U8 [32, 32]";
  }
  SECTION("four dimensions") {
    made[gate + ".weight"].shape = {1, 1, 32, 32};
    expected = gate + ".weight: U8 [1, 1, 32, 32] has neither 2 nor 3 dimensions";
  }
  SECTION("nothing") {
    made[gate + ".weight"].shape = {0, 32};
    expected = gate + ".weight: U8 [0, 32] is empty";
  }
  SECTION("ranks that do not divide N") {
    choice.tp_size = 5;
    expected = gate + ".weight: U8 [32, 32] has N = 32, which is no multiple of 5 ranks";
  }
  SECTION("a rank with too few rows") {
    choice.tp_size = 8;
    expected = gate + ".weight: U8 [32, 32] gives a rank N = 4, no multiple of 8";
  }
  SECTION("rows of two tensors interleaved") {
    choice.interleaved = true;
    expected = gate + ".weight: U8 [32, 32] is a gate of its own";
  }
  SECTION("a gate that is not there") {
    choice.gate = "l.1.mlp.gate_proj.weight";
    expected = "l.1.mlp.gate_proj.weight: there is no such gate";
  }
  CHECK_THROWS_AS(made.find(choice), FormatError);
  CHECK_THROWS_WITH(made.find(choice), contains(expected));
}

TEST_CASE("checkpoint: a number that is no scale is refused", "[checkpoint]") {
  const float bad = GENERATE(0.0f, -1.0f, INFINITY, NAN, 1e-45f);
  Made made = plain();
  std::memcpy(made.memory[2].data(), &bad, sizeof bad);
  CHECK_THROWS_WITH(made.find(), contains("l.0.mlp.gate_proj.weight_scale_2: F32 [] is "));
}

TEST_CASE("checkpoint: one layer is chosen of several", "[checkpoint]") {
  Made made = plain();
  made.modelopt("l.1.mlp.gate_proj", 8, 32, 1, 1).modelopt("l.1.mlp.up_proj", 8, 32, 1, 1);
  made.add("l.00.mlp.gate_proj.weight", "BF16", {8, 32}, 2);
  CHECK(list_gates(made.all()) == std::vector<std::string>{"l.0.mlp.gate_proj.weight",
                                                           "l.00.mlp.gate_proj.weight",
                                                           "l.1.mlp.gate_proj.weight"});
  Choice choice;
  choice.gate = "l.1.mlp.gate_proj.weight";
  CHECK(made.find(choice).k == 32);
  made["l.0.mlp.gate_proj.weight"].name = "l.000.mlp.other.weight";
  CHECK(made.find().gate == "l.1.mlp.gate_proj.weight");  // the first that is NVFP4
}

TEST_CASE("checkpoint: files of one checkpoint have each name once", "[checkpoint]") {
  const Made made = plain();
  Tensors tensors;
  tensors.add(made.tensors);
  CHECK_THROWS_WITH(tensors.add(made.tensors),
                    contains("l.0.mlp.gate_proj.weight: two files have this name"));
}

TEST_CASE("checkpoint: cut anywhere, a fixture is refused", "[checkpoint]") {
  const char* const name =
      GENERATE("modelopt_fused.safetensors", "compressed_weights.safetensors", "experts.gguf");
  const MappedFile file(std::string(FIXTURES "/") + name);
  const Bytes bytes = file.bytes();
  const auto read = is_gguf(bytes) ? read_gguf : read_safetensors;
  CHECK_FALSE(read(bytes).empty());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The end of the last tensor of GGUF is padding.
    if (is_gguf(bytes) && size + 32 > bytes.size()) continue;
    // A copy of that size, so that AddressSanitizer sees what is read behind it, where it is there.
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_THROWS_AS(read(cut), FormatError);
  }
}
