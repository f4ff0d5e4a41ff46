// checkpoint_test.cpp -- which tensors are taken for gate and up, where their rows are, and what is
// refused, on the fixtures and on tensors that exist here alone. That the numbers are right, check.py says.
#include "example/checkpoint/checkpoint.h"

#include <string>

#include "example/checkpoint/gguf.h"
#include "example/checkpoint/made.h"
#include "example/checkpoint/safetensors.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

TEST_CASE("checkpoint: gate and up of their own are taken as they lie", "[checkpoint]") {
  Made made = plain();
  const Mlp mlp = made.find();
  CHECK(mlp.name == "l.0.mlp.gate_proj.weight");
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
  CHECK(mlp.name == "b.experts.*.w1.weight");
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
    expected = up +
               ".weight_scale: F8_E4M3 [32, 2] is not NVFP4, which has an F8_E4M3 factor, or its byte, " +
               "for each 16 elements of U8 [32, 32], nor MXFP4";
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
    expected = gate + ".weight: U8 [0, 32] has 0 as its dimension 0";
  }
  SECTION("more rows than an int counts") {  // a cast would make 32 of them
    made[gate + ".weight"].shape = {(uint64_t{1} << 32) + 32, 32};
    expected = gate + ".weight: U8 [4294967328, 32] has 4294967328 as its dimension 0";
  }
  SECTION("a K that is no int, though its bytes are") {
    made[gate + ".weight"].shape = {1, uint64_t{1} << 30};
    made[gate + ".weight_scale"].shape = {1, uint64_t{1} << 27};
    expected = gate + ".weight: U8 [1, 1073741824] has K = 2147483648, more than 2^30";
  }
  SECTION("such a K, transposed") {
    made[gate + ".weight"].shape = {1, uint64_t{1} << 30, 16};
    made[gate + ".weight_scale"].shape = {1, uint64_t{1} << 27, 16};
    expected = gate + ".weight: U8 [1, 1073741824, 16] has K = 2147483648, more than 2^30";
  }
  SECTION("GGUF's weights of another type") {
    made[gate + ".weight"].dtype = "Q4_K";
    made[gate + ".weight"].ggml_type = 12;
    expected = gate + ".weight: Q4_K [32, 32] is ggml's type 12: of a GGUF's weights NVFP4 alone is read";
  }
  SECTION("a gate of a GGUF, and an up of another file") {
    made[gate + ".weight"].name = "x";
    made.gguf(gate);
    expected = up + ".weight: U8 [32, 32] is not NVFP4";
  }
  SECTION("AWQ's scales of activations") {
    const std::string name = GENERATE_COPY(gate, up) + ".pre_quant_scale";
    made.add(name, "BF16", {64}, 2);
    expected = name + ": BF16 [64] is AWQ's: activations would have to be multiplied by it";
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

TEST_CASE("checkpoint: GGUF's shared experts are one dense MLP, beside experts of another type",
          "[checkpoint]") {
  Made made;
  for (const char* leaf : {"gate", "up"}) {
    const std::string before = std::string("blk.0.ffn_") + leaf;
    made.gguf(before + "_shexp").scale(before + "_shexp.scale", {0.5f}, {1});
    made.add(before + "_exps.weight", "Q4_K", {4, 8, 256}, 0)[before + "_exps.weight"].ggml_type = 12;
  }
  const Mlp mlp = made.find();
  CHECK(mlp.name == "blk.0.ffn_gate_shexp.weight");
  CHECK(mlp.gates.size() == 1);
  CHECK(mlp.ups[0].elements == made["blk.0.ffn_up_shexp.weight"].bytes.data());
  CHECK(mlp.ups[0].scale == 0.5);
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
  CHECK(made.find().name == "l.1.mlp.gate_proj.weight");  // the first that is NVFP4
}

TEST_CASE("checkpoint: files of one checkpoint have each name once", "[checkpoint]") {
  const Made made = plain();
  Tensors tensors;
  tensors.add({made.tensors});
  CHECK_THROWS_WITH(tensors.add({made.tensors}),
                    contains("l.0.mlp.gate_proj.weight: two files have this name"));
}

TEST_CASE("checkpoint: cut anywhere, a fixture is refused", "[checkpoint]") {
  const char* const name =
      GENERATE("modelopt_fused.safetensors", "compressed_weights.safetensors", "experts.gguf");
  const MappedFile file(std::string(FIXTURES "/") + name);
  const Bytes bytes = file.bytes();
  const auto read = is_gguf(bytes) ? read_gguf : read_safetensors;
  CHECK_FALSE(read(bytes).tensors.empty());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The end of the last tensor of GGUF is padding.
    if (is_gguf(bytes) && size + 32 > bytes.size()) continue;
    // A copy of that size, so that AddressSanitizer sees what is read behind it, where it is there.
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_THROWS_AS(read(cut), FormatError);
  }
}
