// config_test.cpp -- what a model's configuration says has to be NVFP4 or MXFP4, wherever it stands, and by
// value.
#include "example/checkpoint/config.h"

#include <string>

#include "example/checkpoint/made.h"
#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;

const std::string kLayer = "model.layers.0.mlp.gate_proj";

static Config config_of(const std::string& text) {
  Config config;
  read_config({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, config);
  return config;
}

// Is the layer read? Throws if not.
static void check(const std::string& text, const std::string& stem = kLayer) {
  check_layer(config_of(text), stem);
}

static std::string group(const std::string& weights, const std::string& besides = "") {
  return R"({"quantization_config": {"config_groups": {"group_0": {"targets": ["Linear"], "weights": {)" +
         weights + "}" + besides + "}}}}";
}

TEST_CASE("config: entries about quantisation are found at any depth", "[checkpoint][config]") {
  const std::string around = GENERATE(
      "{\"quantization_config\": @}", "{\"compression_config\": @}", "{\"quantization\": @}",
      "{\"text_config\": {\"quantization_config\": @}}", "{\"llm_config\": {\"quantization_config\": @}}",
      "{\"thinker_config\": {\"text_config\": {\"compression_config\": @}}}",
      "{\"parts\": [{\"quant_config\": @}]}");
  const auto check_in = [&around](const std::string& quantisation) {
    std::string text = around;
    check(text.replace(text.find('@'), 1, quantisation));
  };
  CHECK_NOTHROW(check_in("null"));
  CHECK_NOTHROW(check_in(R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]})"));
  CHECK_NOTHROW(check_in(R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})"));
  CHECK_NOTHROW(
      check_in(R"({"quant_method": "compressed-tensors", "transform_config": {}, "has_zero_point": false,
                   "sparsity_config": {"format": "dense", "ignore": []}, "pre_quant_scale": null})"));
  CHECK_THROWS_WITH(check_in(R"({"transform_config": {"config_groups": {"u": {"type": "hadamard"}}}})"),
                    contains("has \"transform_config\": {") && contains("which is not done here"));
  CHECK_THROWS_WITH(check_in(R"([{"transform_config": 1}])"), contains("is not an object"));
  CHECK_THROWS_WITH(check(R"({"text_config": {"transform_config": {"a": 1}}})"),
                    contains("text_config: has \"transform_config\": {\"a\":1}, which is not done here"));
  CHECK_THROWS_WITH(check_in(R"("awq")"), contains("\"awq\" is not an object"));
}

TEST_CASE("config: a value that is not that of NVFP4 or MXFP4 is refused with its key",
          "[checkpoint][config]") {
  const auto [entry, what] = GENERATE(table<std::string, std::string>(
      {{R"("quant_method": "awq", "group_size": 16)",
        "quantization_config: has \"quant_method\": \"awq\", of which is"},
       {R"("quant_method": "gptq")", "has \"quant_method\": \"gptq\""},
       {R"("quant_method": "modelopt", "group_size": 128)",
        "has \"group_size\": 128, of which is read: 16, 32"},
       {R"("quant_algo": "W4A16_AWQ")", "has \"quant_algo\": \"W4A16_AWQ\""},
       {R"("quant_algo": "NVFP4_AWQ")", "has \"quant_algo\": \"NVFP4_AWQ\""},
       {R"("format": "pack-quantized")", "has \"format\": \"pack-quantized\""},
       {R"("pre_quant_scale": true)", "has \"pre_quant_scale\": true, which is not done here"},
       {R"("has_zero_point": true)", "has \"has_zero_point\": true, which is not done here"},
       {R"("desc_act": true)", "has \"desc_act\": true, which is not done here"},
       {R"("rotated": 1)", "has \"rotated\": 1, which is not known here"}}));
  CHECK_THROWS_WITH(check("{\"quantization_config\": {" + entry + "}}"), contains(what));
}

TEST_CASE("config: what is no entry about quantisation is left alone", "[checkpoint][config]") {
  CHECK_NOTHROW(
      check(R"({"hidden_size": 8, "new": true, "codec": {"num_quantizers": 8, "quantizer_type": "a"}})"));
  CHECK_THROWS_WITH(check("[]"), contains("is not an object"));
  CHECK_THROWS_WITH(check("{"), contains("is not JSON"));
  CHECK_THROWS_WITH(check(std::string(100, '[')), contains("is nested deeper than 32"));
}

TEST_CASE("config: a group of compressed-tensors is checked by value", "[checkpoint][config]") {
  CHECK_NOTHROW(
      check(group(R"("num_bits": 4, "type": "float", "group_size": 16, "symmetric": true, "dynamic": false,
                               "strategy": "tensor_group", "actorder": null, "observer": "minmax")",
                  R"(, "input_activations": {"num_bits": 4, "dynamic": "local"}, "output_activations": null,
                               "format": "nvfp4-pack-quantized")")));
  const auto [weights, besides, what] = GENERATE(table<std::string, std::string, std::string>(
      {{R"("actorder": "group")", "", ".group_0.weights: has \"actorder\": \"group\""},
       {R"("symmetric": false)", "", ".group_0.weights: has \"symmetric\": false"},
       {R"("num_bits": 8)", "", "has \"num_bits\": 8, of which is read: 4"},
       {R"("group_size": 128)", "", "has \"group_size\": 128"},
       {R"("type": "int")", "", "has \"type\": \"int\""},
       {R"("scale_format": "ue5m3")", "", "has \"scale_format\": \"ue5m3\", which is not known here"},
       {"", R"(, "format": "float-quantized")", "group_0: has \"format\": \"float-quantized\""},
       {"", R"(, "input_activations": {"num_bits": 8})",
        ".group_0.input_activations: has \"num_bits\": 8"}}));
  CHECK_THROWS_WITH(
      check(group(weights, besides)),
      contains(kLayer + ": by the model's configuration it is not what is read here: ") && contains(what));
}

TEST_CASE("config: of several groups and layers the one that is about the weight counts",
          "[checkpoint][config]") {
  const std::string groups = R"({"quantization_config": {"config_groups": {
      "a": {"targets": ["re:.*mlp[.](gate|up)_proj$", "model.layers.1.mlp"], "weights": {"num_bits": 4}},
      "b": {"targets": ["Linear"], "weights": {"num_bits": 8}}}}})";
  CHECK_NOTHROW(check(groups));
  CHECK_NOTHROW(check(groups, "model.layers.1.mlp.experts.0.w1"));
  CHECK_THROWS_WITH(check(groups, "model.layers.2.mlp.w1"),
                    contains("config_groups.b.weights: has \"num_bits\": 8"));
  const std::string layers = R"({"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": {
      "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
      "model.layers.0.mlp.gate_proj": {"quant_algo": "NVFP4", "group_size": 16},
      "model.layers.1.mlp*": {"quant_algo": "NVFP4", "pre_quant_scale": true},
      "model.layers.2.mlp.gate_proj": {"quant_algo": "W4A8_AWQ", "has_zero_point": true}}}})";
  CHECK_NOTHROW(check(layers));
  CHECK_NOTHROW(check(layers, "language." + kLayer));
  CHECK_THROWS_WITH(check(layers, "model.layers.1.mlp.gate_proj"), contains("has \"pre_quant_scale\": true"));
  CHECK_THROWS_WITH(check(layers, "model.layers.2.mlp.gate_proj"), contains("has \"has_zero_point\": true"));
  CHECK_THROWS_WITH(check(layers, "elsewhere.gate_proj"), contains("q_proj: has \"quant_algo\": \"FP8\""));
}

TEST_CASE("config: its layers are those that find_mlp reads", "[checkpoint][config]") {
  Choice choice;
  choice.config = config_of(R"({"quantization": {"quantized_layers": {
      "l.0.mlp.gate_proj": {"quant_algo": "NVFP4"}, "l.0.mlp.up_proj": {"quant_algo": "FP8"}}}})");
  CHECK_THROWS_WITH(plain().find(choice), contains("l.0.mlp.up_proj: by the model's configuration"));
}

TEST_CASE("config: gpt-oss has its rows in turns and its own activation", "[checkpoint][config]") {
  Made made;
  made.stacked({2, 32, 16}, {2, 32, 2}, {1, 1});
  CHECK_FALSE(made.find().gpt_oss);
  CHECK(made.find().layout == "gate and up in one tensor, gate first");
  Choice choice;
  choice.config = config_of(GENERATE(R"({"model_type": "gpt_oss", "hidden_act": "silu", "swiglu_limit": 6})",
                                     R"({"architectures": ["GptOssForCausalLM"], "swiglu_limit": 6})"));
  CHECK(choice.config.swiglu_limit == 6);
  CHECK(made.find(choice).gpt_oss);
  CHECK(made.find(choice).layout == "gate and up in one tensor, row by row");
  CHECK(plain().find(choice).gpt_oss);  // with rows of its own
  for (StoredTensor& tensor : made.tensors) tensor.name.replace(tensor.name.find("gate_up_proj"), 12, "w13");
  made["m.experts.w13"].name += "_weight";
  CHECK_THROWS_WITH(made.find(choice), contains("m.experts.w13_weight: U8 [2, 32, 16] is of gpt-oss"));
  choice.interleaved = true;
  CHECK(made.find(choice).gpt_oss);
}

TEST_CASE("config: an activation that is not done here is refused", "[checkpoint][config]") {
  const std::string around =
      GENERATE("@", "{\"text_config\": @}", "{\"thinker_config\": {\"text_config\": @}}");
  const auto check_in = [&around](const std::string& model) {
    std::string text = around;
    check(text.replace(text.find('@'), 1, model));
  };
  CHECK_NOTHROW(check_in(R"({"hidden_act": "silu", "vision_config": {"hidden_act": "gelu"}})"));
  CHECK_THROWS_WITH(check_in(R"({"hidden_act": "gelu_pytorch_tanh"})"),
                    contains("has \"hidden_act\": \"gelu_pytorch_tanh\", and of activations silu alone"));
  CHECK_THROWS_WITH(check_in(R"({"model_type": "other", "swiglu_limit": 10})"),
                    contains("has \"swiglu_limit\": 10"));
  CHECK_THROWS_WITH(check_in(R"({"model_type": "gpt_oss", "swiglu_limit": -1})"),
                    contains("has \"swiglu_limit\": -1"));
}

TEST_CASE("config: a GGUF's architecture says which activation its model has", "[checkpoint][config]") {
  Made made;
  made.gguf("blk.0.ffn_gate").gguf("blk.0.ffn_up");
  made.metadata = {{"general.architecture", "gpt-oss"}};
  CHECK(made.find().gpt_oss);
  made.metadata = {{"general.architecture", "llama"}};
  CHECK_FALSE(made.find().gpt_oss);
  CHECK(made.find().activation_note.empty());
  made.metadata = {{"general.architecture", "gemma3"}};
  CHECK(made.find().activation_note == "NOT the model's: gemma3 has GELU, which is not done here");
}
