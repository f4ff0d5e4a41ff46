// siblings_test.cpp -- whatever belongs to a weight is understood or refused by its name: tensors under its
// stem, entries about quantisation, ComfyUI's marks; what is beside it is listed.
#include "example/checkpoint/siblings.h"

#include <algorithm>
#include <string>

#include "example/checkpoint/made.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

const std::string kGateStem = "l.0.mlp.gate_proj", kUpStem = "l.0.mlp.up_proj";

static Made& mark(Made& made, const std::string& stem, const std::string& json) {
  made.add(stem + ".comfy_quant", "U8", {json.size()}, 1);
  return made.set(stem + ".comfy_quant", json.data(), json.size());
}

// One Linear of ComfyUI with N = 40, K = 96: 6 factors of a row, in two atoms.
static Made comfy(const std::string& json) {
  Made made;
  for (const char* stem : {"m.w1", "m.w3"}) {
    made.add(std::string(stem) + ".weight", "U8", {40, 48}, 1);
    made.add(std::string(stem) + ".weight_scale", "F8_E4M3", {128, 8}, 1);
    made.scale(std::string(stem) + ".weight_scale_2", {2}, {});
    if (!json.empty()) mark(made, stem, json);
  }
  return made;
}

TEST_CASE("checkpoint: every tensor under the stem of a weight is used or refused",
          "[checkpoint][siblings]") {
  const auto [end, what] = GENERATE(table<std::string, std::string>(
      {{".pre_quant_scale", "is AWQ's: activations would have to be multiplied"},
       {".svdquant_lora_a", "is of a low-rank branch"},
       {".lora_B.weight", "is of a low-rank branch"},
       {"_lora_b", "is of a low-rank branch"},
       {".weight_g_idx", "is an order of columns"},
       {".weight_zero_point", "is of zero points"},
       {".input_zero_point", "is of zero points"},
       {".smooth_factor", "is of a smoothing"},
       {".R1.rotation", "is of a rotation"},
       {".convrot", "is of a rotation"},
       {".hadamard", "is of a rotation"},
       {".input_transform.weight", "is of a transform"},
       {".weight_codebook", "is of elements that are numbers of a codebook"},
       {".output_scale", "belongs to a weight, and is not known here"},
       {".weight_global_scale", "belongs to a weight, and is not known here"},
       {":extra", "belongs to a weight, and is not known here"},
       {".weight_scale_3", "belongs to a weight, and is not known here"}}));
  const std::string stem = GENERATE_COPY(kGateStem, kUpStem);
  Made made = plain();
  made.add(stem + end, "BF16", {4}, 2);
  CHECK_THROWS_WITH(made.find(), contains(stem + end + ": BF16 [4] " + what));
}

TEST_CASE("checkpoint: the same of parameters, of each expert, of compressed-tensors and of GGUF",
          "[checkpoint][siblings]") {
  Made made;
  std::string name;
  SECTION("a parameter") {
    made.stacked({2, 32, 16}, {2, 32, 2}, {1, 1});
    name = "m.experts.gate_up_proj_zeros";
  }
  SECTION("an expert's") {
    for (const int e : {0, 1, 2})
      for (const char* leaf : {"w1", "w3"})
        made.modelopt("b.experts." + std::to_string(e) + "." + leaf, 8, 32, 1, 1);
    name = "b.experts.2.w3.weight_zeros";
  }
  SECTION("compressed-tensors'") {
    made.compressed("m.w1", 1).compressed("m.w3", 1);
    name = "m.w1.weight_zero_point";
  }
  SECTION("GGUF's") {
    made.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
    name = "blk.0.ffn_up.zeros";
  }
  SECTION("a scale of MXFP4, which has none") {
    for (const char* stem : {"m.w1", "m.w3"})
      made.add(std::string(stem) + ".weight", "U8", {8, 32}, 1)
          .add(std::string(stem) + ".weight_scale", "U8", {8, 2}, 1);
    name = "m.w3.weight_scale_2";
  }
  CHECK_NOTHROW(made.find());
  made.add(name, "F32", {}, 4);
  if (name.starts_with("blk")) made[name].ggml_type = 0;
  CHECK_THROWS_WITH(made.find(), contains(name + ": F32 [] "));
}

TEST_CASE("checkpoint: names that only begin alike are no siblings, and are listed",
          "[checkpoint][siblings]") {
  Made made;
  made.modelopt("m.w1", 8, 32, 1, 1).modelopt("m.w3", 8, 32, 1, 1).modelopt("m.w2", 32, 16, 1, 1);
  made.add("m.w10.weight", "BF16", {1}, 2).add("elsewhere.w1.zeros", "BF16", {1}, 2);
  made.metadata = {{"format", "pt"}};
  const std::vector<std::string> others = made.find().others;
  CHECK(others == std::vector<std::string>{"m.w10.weight", "m.w2.input_scale", "m.w2.weight",
                                           "m.w2.weight_scale", "m.w2.weight_scale_2",
                                           "metadata \"format\""});

  Made gguf;
  gguf.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
  gguf.add("blk.0.ffn_gate_inp.weight", "F32", {1}, 4)["blk.0.ffn_gate_inp.weight"].ggml_type = 0;
  CHECK(gguf.find().others == std::vector<std::string>{"blk.0.ffn_gate_inp.weight"});
}

TEST_CASE("checkpoint: what a module around or beside the weights has may be about them",
          "[checkpoint][siblings]") {
  const auto [name, what] = GENERATE(table<std::string, std::string>(
      {{"l.3.mlp.experts.1.pre_quant_scale", "is AWQ's"},
       {"l.3.mlp.experts.pre_quant_scale", "is AWQ's"},
       {"l.3.mlp.pre_quant_scale", "is AWQ's"},
       {"l.3.mlp.smooth_scale", "is of a smoothing"},
       {"l.3.smooth_scale", "is of a smoothing"},
       {"rotation", "is of a rotation"},
       {"l.3.mlp.hadamard.weight", "is of a rotation"},
       {"l.3.mlp.gate_up_proj.lora_A.weight", "is of a low-rank branch"},
       {"l.3.mlp.experts.1.gate_up_proj.pre_quant_scale", "is AWQ's"},
       {"base_model.model.l.3.mlp.experts.2.w1.lora_A.weight", "is of a low-rank branch"},
       {"lora_unet_l_3_mlp_experts_2_w3.lora_up.weight", "is of a low-rank branch"},
       // What another weight has is that weight's, and some names only look like it.
       {"l.3.mlp.experts.1.w2.pre_quant_scale", ""},
       {"l.3.mlp.shared.w2.lora_A.weight", ""},
       {"l.3.self_attn.q_proj.lora_A.weight", ""},
       {"l.3.self_attn.rotary_emb.inv_freq", ""},
       {"rotary_emb.inv_freq", ""},
       {"transformer_blocks.0.norm.weight", ""},
       {"l.4.mlp.pre_quant_scale", ""},
       {"base_model.model.l.30.mlp.experts.2.w1.lora_A.weight", ""}}));
  Made made;
  for (const int e : {0, 1, 2})
    for (const char* leaf : {"w1", "w3"})
      made.modelopt("l.3.mlp.experts." + std::to_string(e) + "." + leaf, 8, 32, 1, 1);
  made.add(name, "BF16", {4}, 2);
  if (what.empty()) CHECK_NOTHROW(made.find());
  else CHECK_THROWS_WITH(made.find(), contains(name + ": BF16 [4] " + what));
}

TEST_CASE("checkpoint: beside experts, what the module around them has is listed", "[checkpoint][siblings]") {
  Made made;
  for (const char* leaf : {"w1", "w3"}) made.modelopt(std::string("l.3.mlp.experts.0.") + leaf, 8, 32, 1, 1);
  made.add("l.3.mlp.gate.weight", "BF16", {4}, 2).add("l.3.norm.weight", "BF16", {4}, 2);
  CHECK(made.find().others == std::vector<std::string>{"l.3.mlp.gate.weight"});
}

TEST_CASE("checkpoint: GGUF's pairs are entries, of which the usual ones are harmless",
          "[checkpoint][siblings]") {
  const auto [key, refused] = GENERATE(table<std::string, bool>({{"quantization.rotation", true},
                                                                 {"adapter.lora.alpha", true},
                                                                 {"llama.awq_scales", true},
                                                                 {"general.quantization_version", false},
                                                                 {"general.quantized_by", false},
                                                                 {"quantize.imatrix.file", false},
                                                                 {"deepseek2.attention.q_lora_rank", false},
                                                                 {"general.architecture", false}}));
  Made made;
  made.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
  made.metadata = {{key, "x"}};
  if (refused) CHECK_THROWS_WITH(made.find(), contains("metadata: has \"" + key + "\": \"x\""));
  else CHECK(made.find().others == std::vector<std::string>{"metadata \"" + key + "\""});
}

TEST_CASE("checkpoint: scales of GGUF's activations are refused", "[checkpoint][siblings]") {
  const std::string name =
      GENERATE("blk.0.ffn_act.scales", "blk.0.ffn_gate_act_scale", "blk.0.ffn_gate.weight.lora_a");
  Made made;
  made.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
  made.add(name, "F32", {4}, 4)[name].ggml_type = 0;
  CHECK_THROWS_WITH(made.find(), contains(name + ": F32 [4] is of a "));
}

TEST_CASE("checkpoint: an entry about quantisation or about a weight is refused, others are listed",
          "[checkpoint][siblings]") {
  const std::string key =
      GENERATE("quantization_config", "transform_config", "compression_config", "awq_scales", "modelopt",
               "rotation", "modelspec.Quantized_by", "l.0.mlp.up_proj.weight", "l.0.mlp.up_proj");
  Made made = plain();
  made.metadata = {{"format", "pt"}, {key, "{}"}};
  CHECK_THROWS_WITH(made.find(),
                    contains("metadata: has \"" + key + "\": \"{}\", which is about quantisation"));
  made.metadata.pop_back();
  CHECK(made.find().others == std::vector<std::string>{"metadata \"format\""});
}

TEST_CASE("comfy: the first element comes out of the high nibble, factors out of their atoms",
          "[checkpoint][siblings]") {
  Made made = comfy("{\"format\": \"nvfp4\"}");
  const uint8_t byte = 0x5A;
  made.set("m.w3.weight", &byte, 1, 39 * 48 + 47);
  // Row 39 is in line 7, its second word; column 5 is the second of the second atom.
  const uint8_t factor = 0x31;
  made.set("m.w3.weight_scale", &factor, 1, 512 + 7 * 16 + 4 + 1);
  const Mlp mlp = made.find();
  CHECK(mlp.convention == Convention::kComfyUi);
  CHECK(mlp.n == 40);
  CHECK(mlp.k == 96);
  CHECK(mlp.ups[0].elements[39 * mlp.ups[0].row_bytes + 47] == 0xA5);
  CHECK(mlp.ups[0].factor_row_bytes == 6);
  CHECK(mlp.ups[0].factors[39 * 6 + 5] == 0x31);
  CHECK(std::count(mlp.ups[0].factors, mlp.ups[0].factors + 40 * 6, 0) == 40 * 6 - 1);
}

TEST_CASE("comfy: a factor that is NaN is refused by its row, and padding may hold anything",
          "[checkpoint][siblings]") {
  Made made = comfy("{\"format\": \"nvfp4\"}");
  const uint8_t nan = 0xFF;
  made.set("m.w3.weight_scale", &nan, 1, 8 * 16 + 4);        // row 40
  made.set("m.w3.weight_scale", &nan, 1, 512 + 7 * 16 + 6);  // column 6 of row 39
  CHECK(made.find().n == 40);
  made.set("m.w3.weight_scale", &nan, 1, 512 + 7 * 16 + 5);
  CHECK_THROWS_WITH(made.find(),
                    contains("m.w3.weight_scale: F8_E4M3 [128, 8] has a factor that is NaN in row 39, "
                             "columns 80 to 95"));
}

TEST_CASE("comfy: a mark says what the layer is, and nothing that is not known", "[checkpoint][siblings]") {
  const auto [json, what] = GENERATE(table<std::string, std::string>(
      {{"{\"format\": \"nvfp4\", \"full_precision_matrix_mult\": true, \"convrot\": false}", ""},
       {"{\"format\": \"mxfp8\"}", "m.w1.comfy_quant: has \"format\": \"mxfp8\", of ComfyUI's formats nvfp4"},
       {"{\"format\": \"nvfp4\", \"convrot\": true}", "has \"convrot\": true, a rotation of the activations"},
       {"{\"format\": \"nvfp4\", \"group_size\": 32}", "has \"group_size\": 32, where NVFP4 has 16"},
       {"{\"format\": \"nvfp4\", \"new\": [1]}", "has \"new\": [1], which is not known here"},
       {"{\"convrot\": false}", "m.w1.comfy_quant: has no \"format\""},
       {"[]", "m.w1.comfy_quant: is not an object"},
       {"nvfp4", "m.w1.comfy_quant: is not JSON"},
       {"[[[[[[[[[[[[]]]]]]]]]]]]", "m.w1.comfy_quant: is nested deeper than 8"}}));
  Made made = comfy(json);
  if (what.empty()) CHECK(made.find().convention == Convention::kComfyUi);
  else CHECK_THROWS_WITH(made.find(), contains(what));
}

TEST_CASE("comfy: the mark of the file's metadata, under any prefix of a model", "[checkpoint][siblings]") {
  const auto [text, what] = GENERATE(table<std::string, std::string>(
      {{R"({"format_version": "1.0", "layers": {"m.w1": {"format": "nvfp4"}, "w3": {"format": "nvfp4"}}})",
        ""},
       {R"({"layers": {"m.w1": {"format": "nvfp4"}}})",
        "m.w3: is not among the layers of _quantization_metadata"},
       {R"({"layers": {"w1": {"format": "nvfp4", "convrot": true}}})",
        "_quantization_metadata, m.w1: has \"convrot\": true"},
       {R"({"layers": {}, "smooth": 1})", "_quantization_metadata: has \"smooth\": 1, which is not known"},
       {R"({"m.w1": {"format": "nvfp4"}})", "_quantization_metadata: has no \"layers\""},
       {"{", "_quantization_metadata: is not JSON"}}));
  Made made = comfy("");
  made.metadata = {{"_quantization_metadata", text}};
  if (what.empty()) CHECK(made.find().convention == Convention::kComfyUi);
  else CHECK_THROWS_WITH(made.find(), contains(what));
}

TEST_CASE("comfy: a layer's whole name goes before the end of it", "[checkpoint][siblings]") {
  // The end comes first in the order of keys.
  const std::string end = R"("a.m.w1": {"format": "nvfp4"}, "a.m.w3": {"format": "nvfp4"})";
  const std::string rotated =
      R"("z.a.m.w1": {"format": "nvfp4", "convrot": true}, "z.a.m.w3": {"format": "nvfp4"})";
  Made made;
  for (const char* stem : {"z.a.m.w1", "z.a.m.w3"}) made.modelopt(stem, 128, 64, 1, 1);
  const auto find = [&made](const std::string& layers) {
    made.metadata = {{"_quantization_metadata", "{\"layers\": {" + layers + "}}"}};
    return made.find().convention;
  };
  CHECK(find(end) == Convention::kComfyUi);
  CHECK_THROWS_WITH(find(end + ", " + rotated), contains("z.a.m.w1: has \"convrot\": true"));
  CHECK_THROWS_WITH(
      find(end + R"(, "m.w1": {"format": "nvfp4"})"),
      contains("z.a.m.w1: may be either of _quantization_metadata's layers \"a.m.w1\" and \"m.w1\""));
  made.modelopt("y.w1", 128, 64, 1, 1);
  CHECK_THROWS_WITH(find(R"("w1": {"format": "nvfp4"}, "w3": {"format": "nvfp4"})"),
                    contains("layer \"w1\" may be this one, or "));
}

TEST_CASE("comfy: one side marked and the other not is refused, in either order", "[checkpoint][siblings]") {
  Made made;
  made.modelopt("m.w1", 128, 64, 1, 1).modelopt("m.w3", 128, 64, 1, 1);  // shapes that fit both layouts
  const std::string marked = GENERATE("m.w1", "m.w3");
  mark(made, marked, "{\"format\": \"nvfp4\"}");
  CHECK_THROWS_WITH(made.find(), contains("m.w3.weight: U8 [128, 32] is "));
}

TEST_CASE("comfy: factors of another shape than its atoms are refused", "[checkpoint][siblings]") {
  const std::vector<uint64_t> shape = GENERATE(values<std::vector<uint64_t>>({{40, 6}, {128, 6}, {128, 4}}));
  Made made = comfy("{\"format\": \"nvfp4\"}");
  made["m.w1.weight_scale"].shape = shape;
  CHECK_THROWS_WITH(made.find(),
                    contains("is not the F8_E4M3 factors, in 128x4 atoms, of ComfyUI's U8 [40, 48]"));
}
