// linear_test.cpp -- one linear layer of a checkpoint: which tensor is the down projection behind a gate,
// what a rank has of it, and what is refused. That the numbers are right, check.py says.
#include "example/checkpoint/linear.h"

#include <string>

#include "example/checkpoint/made.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

constexpr char kDown[] = "l.0.mlp.down_proj";

// Gate and up with N = 128, and down.
static Made whole(uint64_t k_of_down = 128) {
  Made made;
  for (const char* leaf : {"gate_proj", "up_proj"})
    made.modelopt(std::string("l.0.mlp.") + leaf, 128, 64, 0.5f, 0.25f);
  made.modelopt(kDown, 24, k_of_down, 2, 0.125f);
  return made;
}

static Linear down_of(const Made& made, const Choice& choice = {}) {
  const Tensors tensors = made.all();
  Mlp mlp = find_mlp(tensors, choice);
  return find_down(tensors, choice, mlp);
}

static Choice rank(int rank, int size) {
  Choice choice;
  choice.tp_rank = rank;
  choice.tp_size = size;
  return choice;
}

TEST_CASE("linear: down is found behind its gate, with scales of its own", "[checkpoint][linear]") {
  Made made = whole();
  const Linear down = down_of(made);
  CHECK(down.name == "l.0.mlp.down_proj.weight");
  CHECK(down.convention == Convention::kModelOpt);
  CHECK(down.n == 24);
  CHECK(down.k == 128);
  REQUIRE(down.weights.size() == 1);
  const Matrix& weight = down.weights[0];
  CHECK(weight.elements == made["l.0.mlp.down_proj.weight"].bytes.data());
  CHECK(weight.row_bytes == 64);
  CHECK(weight.factors == made["l.0.mlp.down_proj.weight_scale"].bytes.data());
  CHECK(weight.factor_row_bytes == 8);
  CHECK(weight.scale == 2);
  CHECK(weight.input_scale == 0.125);
}

TEST_CASE("linear: each spelling of gate has its down", "[checkpoint][linear]") {
  const auto [gate, up, name] = GENERATE(table<std::string, std::string, std::string>(
      {{"w1", "w3", "w2"}, {"gate_proj", "up_proj", "down_proj"}, {"gate_up_proj", "", "down_proj"}}));
  Made made;
  made.modelopt("m.3." + gate, up.empty() ? 64 : 32, 64, 1, 1).modelopt("m.3." + name, 8, 32, 4, 1);
  if (!up.empty()) made.modelopt("m.3." + up, 32, 64, 1, 1);
  CHECK(down_of(made).name == "m.3." + name + ".weight");
  CHECK(down_of(made).weights.at(0).scale == 4);
}

TEST_CASE("linear: GGUF's down has K in blocks, which a rank gets whole", "[checkpoint][linear]") {
  const std::string end = GENERATE("", "_exps", "_shexp");
  Made made;
  for (const char* leaf : {"gate", "up", "down"}) made.gguf(std::string("blk.0.ffn_") + leaf + end);
  const std::string name = "blk.0.ffn_down" + end + ".weight";
  for (const char* leaf : {"gate", "up"}) {
    StoredTensor& tensor = made[std::string("blk.0.ffn_") + leaf + end + ".weight"];
    tensor.shape = {128, 64};
    tensor.bytes = made.memory.emplace_back(128 / 64 * 64 * 36);
  }
  const Linear second = down_of(made, rank(1, 2));
  CHECK(second.name == name);
  CHECK(second.k == 64);
  CHECK(second.weights[0].elements == made[name].bytes.data() + 36);
  CHECK(second.weights[0].row_bytes == 72);
  CHECK_THROWS_WITH(down_of(made, rank(1, 4)),
                    contains(name + ": NVFP4 [8, 128] has K = 128, of which each of 4 "
                                    "ranks needs a multiple of 64"));
}

TEST_CASE("linear: experts of down are those of gate", "[checkpoint][linear]") {
  Made made;
  for (int e = 4; e < 7; ++e)
    for (const char* leaf : {"w1", "w3", "w2"})
      made.modelopt("b.experts." + std::to_string(e) + "." + leaf, 32, 32, 1 + e, 1);
  const Linear down = down_of(made);
  CHECK(down.name == "b.experts.*.w2.weight");
  CHECK(down.first_expert == 4);
  REQUIRE(down.weights.size() == 3);
  for (int e = 4; e < 7; ++e) {
    CHECK(down.weights[e - 4].elements == made["b.experts." + std::to_string(e) + ".w2.weight"].bytes.data());
    CHECK(down.weights[e - 4].scale == 1 + e);
  }
  made["b.experts.5.w2.weight"].name = "b.experts.9.w2.weight";
  CHECK_THROWS_WITH(down_of(made), contains("b.experts.5.w2.weight: is missing"));
}

TEST_CASE("linear: a rank has columns of down, and the first one its bias", "[checkpoint][linear]") {
  Made made = whole();
  made.add(std::string(kDown) + ".bias", "F32", {24}, 4);
  const Linear all = down_of(made);
  for (int r = 0; r < 4; ++r) {
    const Linear part = down_of(made, rank(r, 4));
    CHECK(part.n == 24);
    CHECK(part.k == 32);
    CHECK(part.weights[0].elements == all.weights[0].elements + r * 32 / 2);
    CHECK(part.weights[0].factors == all.weights[0].factors + r * 32 / 16);
    CHECK(part.weights[0].row_bytes == 64);
    CHECK(part.weights[0].factor_row_bytes == 8);
    CHECK(part.weights[0].bias.size() == (r == 0 ? 24 : 0));
  }
}

TEST_CASE("linear: what is no down for these gate and up is refused", "[checkpoint][linear]") {
  const std::string name = std::string(kDown) + ".weight";
  SECTION("none at all") {
    Made made = whole();
    made[name].name = "l.1.mlp.down_proj.weight";
    CHECK_THROWS_WITH(down_of(made), contains(name + ": is missing"));
  }
  SECTION("of another K") {
    CHECK_THROWS_WITH(down_of(whole(96)),
                      contains(name + ": U8 [24, 48] does not take what gate and up give, which is N = 128"));
  }
  SECTION("not quantised") {
    Made made = whole();
    made[name].dtype = "BF16";
    CHECK_THROWS_WITH(down_of(made), contains(name + ": BF16 [24, 64] is not NVFP4"));
  }
  SECTION("ranks whose parts of K are no whole rows of 16 bytes") {
    CHECK(down_of(whole(), rank(3, 4)).k == 32);
    CHECK_THROWS_WITH(
        down_of(whole(), rank(3, 8)),
        contains(name + ": U8 [24, 64] has K = 128, of which each of 8 ranks needs a multiple of 32"));
  }
  SECTION("with a tensor of its own that is not read") {
    Made made = whole();
    made.add(std::string(kDown) + ".pre_quant_scale", "BF16", {128}, 2);
    CHECK_NOTHROW(made.find());  // gate and up do not have it
    CHECK_THROWS_WITH(down_of(made), contains(std::string(kDown) + ".pre_quant_scale: BF16 [128] is AWQ's"));
  }
  SECTION("something else by the model's configuration") {
    Choice choice;
    choice.config.layers = {{{{"l.0.mlp.gate_proj", "l.0.mlp.up_proj"}, ""}, {{kDown}, "is FP8"}}};
    CHECK_NOTHROW(whole().find(choice));
    CHECK_THROWS_WITH(down_of(whole(), choice), contains("is FP8"));
  }
}

TEST_CASE("linear: what both launches read is not among what was not read", "[checkpoint][linear]") {
  Made made = whole();
  made.add("l.0.mlp.gate.weight", "BF16", {4}, 2);
  const Tensors tensors = made.all();
  Mlp mlp = find_mlp(tensors, {});
  CHECK(mlp.others.size() == 5);
  CHECK(find_down(tensors, {}, mlp).others.empty());
  CHECK(mlp.others == std::vector<std::string>{"l.0.mlp.gate.weight"});
}

TEST_CASE("linear: any weight is taken by its name, and ranks share N or K of it", "[checkpoint][linear]") {
  Made made = whole();
  made.modelopt("l.0.self_attn.q_proj", 48, 128, 0.25f, 1).add("l.0.self_attn.q_proj.bias", "BF16", {48}, 2);
  const Tensors tensors = made.all();
  const std::string name = "l.0.self_attn.q_proj.weight";
  const Linear q = find_linear(tensors, name, Cut::kN, {});
  CHECK(q.name == name);
  CHECK(q.n == 48);
  CHECK(q.k == 128);
  CHECK(q.weights.at(0).scale == 0.25);
  CHECK(q.weights[0].elements == made[name].bytes.data());
  const Linear rows = find_linear(tensors, name, Cut::kN, rank(2, 3));
  CHECK(rows.n == 16);
  CHECK(rows.k == 128);
  CHECK(rows.weights[0].elements == made[name].bytes.data() + 32 * 64);
  CHECK(rows.weights[0].bias.size() == 16);
  const Linear columns = find_linear(tensors, name, Cut::kK, rank(1, 2));
  CHECK(columns.n == 48);
  CHECK(columns.k == 64);
  CHECK(columns.weights[0].elements == made[name].bytes.data() + 32);
  CHECK(columns.weights[0].bias.empty());
  CHECK_THROWS_WITH(find_linear(tensors, name, Cut::kN, rank(0, 5)),
                    contains("has N = 48, which is no multiple of 5"));
  CHECK_THROWS_WITH(find_linear(tensors, "l.0.self_attn.k_proj.weight", Cut::kN, {}), contains("is missing"));
  CHECK_THROWS_WITH(find_linear(tensors, name + "_scale", Cut::kN, {}),
                    contains(name + "_scale: F8_E4M3 [48, 8] is not NVFP4"));
}

TEST_CASE("linear: experts in one tensor are taken by its name", "[checkpoint][linear]") {
  Made made;
  made.add("m.experts.down_proj", "U8", {2, 16, 32}, 1)
      .add("m.experts.down_proj_weight_scale", "F8_E4M3", {2, 16, 4}, 1);
  made.scale("m.experts.down_proj_weight_scale_2", {1, 8}, {2});
  const Linear down = find_linear(made.all(), "m.experts.down_proj", Cut::kN, {});
  CHECK(down.n == 16);
  CHECK(down.k == 64);
  REQUIRE(down.weights.size() == 2);
  CHECK(down.weights[1].elements == made["m.experts.down_proj"].bytes.data() + 16 * 32);
  CHECK(down.weights[1].scale == 8);
  CHECK_FALSE(down.weights[1].input_scale);
}
