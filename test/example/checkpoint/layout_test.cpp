// layout_test.cpp -- the same elements and factors in other types, shapes and names are the same matrices;
// what types and shapes do not determine is refused.
#include "example/checkpoint/layout.h"

#include <string>

#include "example/checkpoint/made.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

namespace {

const std::string kGate = "l.0.mlp.gate_proj.weight", kUp = "l.0.mlp.up_proj.weight";

// gate_up_proj of two experts with N = 16 and K = 64, as gpt-oss has it.
Made gpt_oss() {
  Made made;
  made.add("m.experts.gate_up_proj_blocks", "U8", {2, 32, 2, 16}, 1);
  made.add("m.experts.gate_up_proj_scales", "U8", {2, 32, 2}, 1);
  return made;
}

}  // namespace

TEST_CASE("checkpoint: bytes are what they are under each type that they may have", "[checkpoint][layout]") {
  Made made = plain();
  SECTION("factors as U8") { made[kUp + "_scale"].dtype = "U8"; }
  SECTION("elements as I8") { made[kUp].dtype = "I8"; }
  SECTION("elements as F4, whose shape counts them") {
    made[kUp].dtype = "F4";
    made[kUp].shape = {32, 64};
  }
  SECTION("both sides, both types") {
    for (const std::string& name : {kGate, kUp}) {
      made[name].dtype = "F4";
      made[name].shape = {32, 64};
      made[name + "_scale"].dtype = "U8";
    }
  }
  const Mlp mlp = made.find();
  CHECK(mlp.n == 32);
  CHECK(mlp.k == 64);
  CHECK(mlp.ups[0].encoding == Encoding::kNvfp4);
  CHECK(mlp.ups[0].elements == made[kUp].bytes.data());
  CHECK(mlp.ups[0].factors == made[kUp + "_scale"].bytes.data());
  CHECK(mlp.ups[0].row_bytes == 32);
  CHECK(mlp.ups[0].factor_row_bytes == 4);
}

TEST_CASE("checkpoint: a factor for each 32 elements is MXFP4's, whoever names it", "[checkpoint][layout]") {
  const std::string dtype = GENERATE("U8", "F8_E8M0");
  Made made;
  SECTION("ModelOpt's names") {
    for (const char* leaf : {"m.w1", "m.w3"})
      made.add(std::string(leaf) + ".weight", "U8", {8, 32}, 1)
          .add(std::string(leaf) + ".weight_scale", dtype, {8, 2}, 1);
  }
  SECTION("compressed-tensors'") {
    for (const char* leaf : {"m.w1", "m.w3"})
      made.add(std::string(leaf) + ".weight_packed", "U8", {8, 32}, 1)
          .add(std::string(leaf) + ".weight_scale", dtype, {8, 2}, 1);
  }
  const Mlp mlp = made.find();
  CHECK(mlp.ups[0].encoding == Encoding::kMxfp4);
  CHECK(mlp.ups[0].factor_row_bytes == 2);
  CHECK(mlp.ups[0].scale == 1);
  CHECK_FALSE(mlp.ups[0].input_scale);
}

TEST_CASE("checkpoint: gpt-oss as shipped has gate and up in turns", "[checkpoint][layout]") {
  Made made = gpt_oss();
  made.add("m.experts.gate_up_proj_bias", "BF16", {2, 32}, 2);
  const uint16_t one = 0x3F80;
  made.set("m.experts.gate_up_proj_bias", &one, 2, 2 * (32 + 5));  // up's row 2 of expert 1
  const uint8_t* const blocks = made["m.experts.gate_up_proj_blocks"].bytes.data();
  const uint8_t* const scales = made["m.experts.gate_up_proj_scales"].bytes.data();
  const Mlp mlp = made.find();
  CHECK(mlp.convention == Convention::kGptOss);
  CHECK(mlp.layout == "gate and up in one tensor, row by row");
  CHECK(mlp.n == 16);
  CHECK(mlp.k == 64);
  REQUIRE(mlp.ups.size() == 2);
  CHECK(mlp.gates[1].elements == blocks + 32 * 32);
  CHECK(mlp.ups[1].elements == blocks + 33 * 32);
  CHECK(mlp.ups[1].row_bytes == 64);
  CHECK(mlp.ups[1].factors == scales + 33 * 2);
  CHECK(mlp.ups[1].factor_row_bytes == 4);
  CHECK(mlp.ups[1].bias[2] == 1);
}

TEST_CASE("checkpoint: a factor of MXFP4 that no launch can use is refused, and its place named",
          "[checkpoint][layout]") {
  Made made = gpt_oss();
  const std::string scales = "m.experts.gate_up_proj_scales";
  const uint8_t six = 0x07, nan = 0xFF, large = 127 + 28, good = 127 + 27;
  made.set(scales, &nan, 1, (32 + 9) * 2 + 1);
  CHECK_THROWS_WITH(made.find(), contains(scales + ": U8 [2, 32, 2] has a factor that is NaN in row 9 of "
                                                   "expert 1, columns 32 to 63"));
  made.set(scales, &large, 1, (32 + 9) * 2 + 1);
  CHECK(made.find().n == 16);  // its elements are zero
  made.set("m.experts.gate_up_proj_blocks", &six, 1, ((32 + 9) * 2 + 1) * 16 + 15);
  CHECK_THROWS_WITH(made.find(),
                    contains(scales + ": U8 [2, 32, 2] has the factor 2^28 in row 9 of expert 1"));
  made.set(scales, &good, 1, (32 + 9) * 2 + 1);
  CHECK(made.find().n == 16);
}

TEST_CASE("checkpoint: experts in w13_weight, with a scale each or two", "[checkpoint][layout]") {
  Made made;
  made.add("m.experts.w13_weight", "U8", {3, 16, 16}, 1)
      .add("m.experts.w13_weight_scale", "U8", {3, 16, 2}, 1);
  const std::string scale = "m.experts.w13_weight_scale_2";
  std::vector<double> expected;
  SECTION("[3, 2]") {
    made.scale(scale, {1, 2, 3, 4, 5, 6}, {3, 2});
    expected = {1, 2, 3, 4, 5, 6};
  }
  SECTION("[3]") {
    made.scale(scale, {1, 2, 3}, {3});
    expected = {1, 1, 2, 2, 3, 3};
  }
  SECTION("[3, 1]") {
    made.scale(scale, {1, 2, 3}, {3, 1});
    expected = {1, 1, 2, 2, 3, 3};
  }
  SECTION("[]") {
    made.scale(scale, {4}, {});
    expected = {4, 4, 4, 4, 4, 4};
  }
  const Mlp mlp = made.find();
  CHECK(mlp.n == 8);
  for (size_t e = 0; e < 3; ++e) {
    CHECK(mlp.gates[e].scale == expected[2 * e]);
    CHECK(mlp.ups[e].scale == expected[2 * e + 1]);
    CHECK(mlp.ups[e].elements == made["m.experts.w13_weight"].bytes.data() + (16 * e + 8) * 16);
  }
}

TEST_CASE("checkpoint: two scales of gate and up in one matrix", "[checkpoint][layout]") {
  Made made;
  made.add("m.gate_up_proj.weight", "U8", {16, 16}, 1)
      .add("m.gate_up_proj.weight_scale", "F8_E4M3", {16, 2}, 1);
  made.scale("m.gate_up_proj.weight_scale_2", {3, 5}, {2}).scale("m.gate_up_proj.input_scale", {1, 2}, {2});
  const Mlp mlp = made.find();
  CHECK(mlp.gates[0].scale == 3);
  CHECK(mlp.ups[0].scale == 5);
  CHECK(mlp.gates[0].input_scale == 1);
  CHECK(mlp.ups[0].input_scale == 2);
}

TEST_CASE("checkpoint: scales whose shape leaves open whose they are are refused", "[checkpoint][layout]") {
  const std::vector<uint64_t> shape =
      GENERATE(values<std::vector<uint64_t>>({{2, 3}, {6}, {1, 3}, {2}, {3, 3}}));
  Made made;
  made.add("m.experts.w13_weight", "U8", {3, 16, 16}, 1)
      .add("m.experts.w13_weight_scale", "U8", {3, 16, 2}, 1);
  made.add("m.experts.w13_weight_scale_2", "F32", shape, 4);
  CHECK_THROWS_WITH(made.find(),
                    contains("m.experts.w13_weight_scale_2: F32 [") &&
                        contains("is not one F32, or one for each of 3 experts, or two for each"));
}

TEST_CASE("checkpoint: GGUF's gate and up in one tensor have gate's rows first", "[checkpoint][layout]") {
  Made made;
  made.gguf("blk.0.ffn_gate_up_exps");
  made["blk.0.ffn_gate_up_exps.weight"].shape = {1, 16, 64};  // as many blocks
  made.scale("blk.0.ffn_gate_up_exps.scale", {3}, {1});
  const Mlp mlp = made.find();
  CHECK(mlp.n == 8);
  CHECK(mlp.layout == "gate and up in one tensor, gate first");
  CHECK(mlp.ups[0].elements == made["blk.0.ffn_gate_up_exps.weight"].bytes.data() + 8 * 36);
  CHECK(mlp.ups[0].scale == 3);
}

TEST_CASE("checkpoint: a rank's experts begin with any number, and have no hole", "[checkpoint][layout]") {
  Made made;
  for (const int e : {4, 5, 6, 7})
    for (const char* leaf : {"w1", "w3"})
      made.modelopt("b.experts." + std::to_string(e) + "." + leaf, 8, 32, 1, 1);
  SECTION("all") {
    const Mlp mlp = made.find();
    CHECK(mlp.first_expert == 4);
    REQUIRE(mlp.gates.size() == 4);
    CHECK(mlp.gates[0].elements == made["b.experts.4.w1.weight"].bytes.data());
  }
  SECTION("a hole") {
    made["b.experts.6.w1.weight"].name = "x";
    CHECK_THROWS_WITH(made.find(), contains("b.experts.6.w1.weight: is missing"));
  }
  SECTION("an up whose gate is in no file") {
    made.modelopt("b.experts.8.w3", 8, 32, 1, 1);
    CHECK_THROWS_WITH(made.find(), contains("b.experts.8.w1.weight: is missing"));
  }
  SECTION("a gate whose up is in no file") {
    made.modelopt("b.experts.3.w1", 8, 32, 1, 1);
    CHECK_THROWS_WITH(made.find(), contains("b.experts.3.w3.weight: is missing"));
  }
}

TEST_CASE("checkpoint: experts that have gate and up in one each are one layer", "[checkpoint][layout]") {
  Made made;
  for (const int e : {0, 1}) made.modelopt("b.experts." + std::to_string(e) + ".gate_up_proj", 16, 32, 1, 1);
  const Mlp mlp = made.find();
  CHECK(mlp.layout == "gate and up in one tensor, gate first");
  CHECK(mlp.n == 8);
  CHECK(mlp.ups[1].elements == made["b.experts.1.gate_up_proj.weight"].bytes.data() + 8 * 16);
}

TEST_CASE("checkpoint: types and shapes that do not fit each other are refused", "[checkpoint][layout]") {
  Made made = plain();
  std::string expected;
  SECTION("E4M3 for each 32") {
    made[kUp + "_scale"].shape = {32, 2};
    expected = kUp + "_scale: F8_E4M3 [32, 2] is not NVFP4";
  }
  SECTION("E8M0 for each 16") {
    made[kUp + "_scale"].dtype = "F8_E8M0";
    expected = kUp + "_scale: F8_E8M0 [32, 4] is not NVFP4";
  }
  SECTION("bytes for each 64") {
    made[kUp + "_scale"].dtype = "U8";
    made[kUp + "_scale"].shape = {32, 1};
    expected = kUp + "_scale: U8 [32, 1] is not NVFP4";
  }
  SECTION("one side of another encoding") {
    made[kUp + "_scale"].dtype = "U8";
    made[kUp + "_scale"].shape = {32, 2};
    made[kUp + "_scale_2"].name = "other";
    made["l.0.mlp.up_proj.input_scale"].name = "more";
    expected = kUp + ": U8 [32, 32] is MXFP4, but " + kGate + " is NVFP4";
  }
  SECTION("elements of an unknown type") {
    made[kGate].dtype = "F4_NEW";
    expected = kGate + ": F4_NEW [32, 32] is not NVFP4 or MXFP4";
  }
  SECTION("F4 with an odd K") {
    made[kGate].dtype = "F4";
    made[kGate].shape = {32, 63};
    expected = kGate + ": F4 [32, 63] has an odd K";
  }
  SECTION("factors in atoms that nothing marks") {
    made[kGate + "_scale"].shape = {128, 4};
    expected = "its shape is that of 128x4 atoms, as in ComfyUI's files, but nothing marks them";
  }
  CHECK_THROWS_WITH(made.find(), contains(expected));
}

TEST_CASE("checkpoint: formats that a name gives away are called by it", "[checkpoint][layout]") {
  const auto [name, what] = GENERATE(table<std::string, std::string>(
      {{"m.gate_proj.qweight", "has the name of GPTQ's and AWQ's integers"},
       {"block.0.mlp.mlp1_weight.blocks", "take its files with gate_up_proj_blocks"},
       {"m.gate_proj.weight:_qdata", "torchao's"},
       {"m.gate_proj.weight._data", "optimum-quanto's"}}));
  Made made;
  made.add(name, "U8", {4, 4}, 1);
  CHECK_THROWS_WITH(made.find(), contains(name + ": U8 [4, 4] ") && contains(what));
}
