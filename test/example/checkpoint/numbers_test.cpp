// numbers_test.cpp -- scales, biases and factors that are refused, each with its tensor and its place, and
// those at the edge that are not.
#include "example/checkpoint/numbers.h"

#include <cfloat>
#include <cmath>

#include "example/checkpoint/made.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

static Made of_gguf() {
  Made made;
  made.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
  return made;
}

TEST_CASE("checkpoint: a number that is no scale is refused, and the tensor and the number named",
          "[checkpoint]") {
  const auto [bad, text] = GENERATE(table<float, const char*>({{0.0f, "0"},
                                                               {-1.0f, "-1"},
                                                               {INFINITY, "inf"},
                                                               {NAN, "nan"},
                                                               {1e-45f, "1.40129846e-45"},
                                                               {0x1p-42f, "2.27373675e-13"},
                                                               {0x1p19f, "524288"},
                                                               {FLT_MAX, "3.40282347e+38"}}));
  const std::string is = std::string(" is ") + text + ", which is no scale";
  SECTION("ModelOpt's, of weights and of activations") {
    Made made = plain();
    const std::string name = GENERATE("l.0.mlp.up_proj.weight_scale_2", "l.0.mlp.gate_proj.input_scale");
    made.set(name, &bad, sizeof bad);
    CHECK_THROWS_WITH(made.find(), contains(name + ": F32 []" + is));
  }
  SECTION("one of experts") {
    Made made;
    made.stacked({2, 32, 16}, {2, 32, 2}, {0.5f, bad});
    CHECK_THROWS_WITH(made.find(), contains("m.experts.gate_up_proj_weight_scale_2: F32 [2] is " +
                                            std::string(text) + " for expert 1, which is no scale"));
  }
}

TEST_CASE("checkpoint: scales of either convention have one range, in which an alpha is a float",
          "[checkpoint]") {
  const float scale = GENERATE(0x1p-41f, 0x1p18f);
  CHECK(std::isnormal(scale * scale));
  Made made;
  made.modelopt("m.w1", 8, 32, scale, scale).modelopt("m.w3", 8, 32, scale, scale);
  CHECK(made.find().ups[0].scale == scale);

  // compressed-tensors has the reciprocals.
  Made other;
  other.compressed("m.w1", 1 / scale).compressed("m.w3", 1 / scale);
  CHECK(other.find().gates[0].scale == scale);
  const float beyond = scale < 1 ? 2 / scale : 0.25f / scale;
  other.set("m.w3.weight_global_scale", &beyond, sizeof beyond);
  CHECK_THROWS_WITH(other.find(), contains("m.w3.weight_global_scale: F32 [1] is "));
}

TEST_CASE("checkpoint: a bias that is no finite number is refused", "[checkpoint]") {
  const float bad = GENERATE(INFINITY, -INFINITY, NAN, 0x1p31f);
  Made made = plain();
  made.scale("l.0.mlp.up_proj.bias", std::vector<float>(32), {32});
  CHECK(made.find().ups[0].bias.size() == 32);
  std::memcpy(made.memory.back().data() + 4 * 31, &bad, sizeof bad);
  CHECK_THROWS_WITH(made.find(), contains("l.0.mlp.up_proj.bias: F32 [32] has ") &&
                                     contains(" as its number 31, which is no bias"));
}

TEST_CASE("checkpoint: a factor that is negative or NaN is refused, and its place named", "[checkpoint]") {
  const auto [factor, what] = GENERATE(table<int, std::string>(
      {{0x7F, "NaN"}, {0xFF, "NaN"}, {0x81, "negative"}, {0xB8, "negative"}, {0xFE, "negative"}}));
  const uint8_t bad = static_cast<uint8_t>(factor);
  SECTION("of a matrix") {
    Made made = plain();
    made.set("l.0.mlp.up_proj.weight_scale", &bad, 1, 31 * 4 + 3);
    CHECK_THROWS_WITH(made.find(),
                      contains("l.0.mlp.up_proj.weight_scale: F8_E4M3 [32, 4] has a factor that is " + what +
                               " in row 31, columns 48 to 63"));
  }
  SECTION("of experts, transposed") {
    Made made;
    made.stacked({2, 16, 32}, {2, 2, 32}, {1, 1})
        .set("m.experts.gate_up_proj_weight_scale", &bad, 1, 64 + 32 + 5);
    CHECK_THROWS_WITH(made.find(),
                      contains("m.experts.gate_up_proj_weight_scale: F8_E4M3 [2, 2, 32] has a factor "
                               "that is " +
                               what + " in row 5 of expert 1, columns 16 to 31"));
  }
}

TEST_CASE("checkpoint: the largest factor and either zero are taken, of GGUF 0x7F, which is its other zero",
          "[checkpoint]") {
  const auto [blocks, factor] = GENERATE(table<bool, int>(
      {{false, 0x00}, {false, 0x7E}, {false, 0x80}, {true, 0x00}, {true, 0x7E}, {true, 0x7F}}));
  const uint8_t good = static_cast<uint8_t>(factor);
  Made made = blocks ? of_gguf() : plain();
  made.set(blocks ? "blk.0.ffn_gate.weight" : "l.0.mlp.gate_proj.weight_scale", &good, 1, 2);
  CHECK(made.find().gates.size() == 1);
}

TEST_CASE("checkpoint: of GGUF's blocks the first four bytes are factors, which have no sign",
          "[checkpoint]") {
  const uint8_t bad = 0x80;
  const size_t at = GENERATE(range(size_t{0}, size_t{72}));
  Made made = of_gguf();
  made.set("blk.0.ffn_up.weight", &bad, 1, 5 * 72 + at);
  if (at % 36 >= 4) {
    CHECK(made.find().k == 128);
    return;
  }
  const size_t column = at / 36 * 64 + at % 36 * 16;
  CHECK_THROWS_WITH(made.find(),
                    contains("blk.0.ffn_up.weight: NVFP4 [8, 128] has a factor that is negative in "
                             "row 5, columns " +
                             std::to_string(column) + " to "));
}
