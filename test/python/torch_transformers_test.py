#!/usr/bin/env python3
"""torch_transformers_test.py -- checkpoints in NVFP4 that ModelOpt and compressed-tensors make here, in transformers,
on the CPU and on a GPU if there is one, against transformers' own models in fp64. Exits with 77 where there is no
transformers, or where the operators are not built.

    torch_transformers_test.py MODULE [unittest's arguments]
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoConfig, AutoModelForCausalLM, LlavaConfig, LlavaForConditionalGeneration
    import dualgemm.transformers as ours
    from dualgemm import nn
    from nvfp4_checkpoints import MISSING, EachExpert, by_compressed_tensors, by_modelopt, mtq
    from transformers_models import (BF16, DEVICES, FOLDER, FORMATS, KINDS, MODELS, PACKED, Case, checkpoint, copied,
                                     decoded, kinds, loaded, logits, off, own, quantised, tiny)
except ImportError as error:
    print(f"torch_transformers_test.py: skipped: {error}")
    sys.exit(77)
for package, problem in MISSING.items(): print(f"torch_transformers_test.py: skipped, with {package}: {problem}")


class Loads(Case):
    def check(self, package, kind, *how, **options):
        self.check_path(checkpoint(package, kind, *how, **options), KINDS[kind])

    def check_path(self, path, left):
        """16 bits of A: what transformers' own model is off in bf16 bounds what this is off. The own one rounds the
        same activations in the same places, and the weights besides."""
        wanted = logits(own(path))
        bound = 1.5 * off(logits(own(path, BF16)), wanted)
        self.assertLess(bound, 0.05)
        for device in DEVICES:
            model, info = loaded(path, device, output_loading_info=True)
            with self.subTest(path.name, device=device):
                self.assertEqual({key: value for key, value in info.items() if value}, {})
                self.assertEqual(kinds(model), left)
                self.assertIs(type(model.lm_head), torch.nn.Linear)
                if device == "cpu" or torch.cuda.get_device_capability()[0] < 10:
                    self.assertLess(off(logits(model), wanted), bound)
                self.round_trip(model, path)

    def round_trip(self, model, path, kind=AutoModelForCausalLM):
        """What is saved is what was loaded, bit for bit, and loads again without a word."""
        place = tempfile.mkdtemp(dir=FOLDER)
        model.save_pretrained(place)
        before, after = load_file(path / "model.safetensors"), load_file(place + "/model.safetensors")
        self.assertEqual(after.keys(), before.keys())
        for name in before: self.same(after[name], before[name])
        again = kind.from_pretrained(place, device_map=model.device.type)
        self.same(logits(again), logits(model))

    def test_modelopt(self):
        self.needs("modelopt")
        for kind in MODELS: self.check("modelopt", kind)

    def test_compressed_tensors(self):
        self.needs("compressed-tensors")
        for kind, scheme in (("Qwen3", "NVFP4"), ("Qwen3", "NVFP4A16"), ("Qwen2", "NVFP4"), ("Phi3", "NVFP4")):
            self.check("compressed-tensors", kind, scheme)

    def test_experts_of_compressed_tensors(self):
        """The package quantises linears. It leaves experts in stacks in floats, and does not write that down."""
        self.needs("compressed-tensors")
        for kind, words in (("Qwen3Moe", ("gate_proj", "up_proj", "down_proj")), ("Mixtral", ("w1", "w3", "w2"))):
            without = {name: count for name, count in KINDS[kind].items() if name not in ("Experts", "Weights")}
            if kind == "Qwen3Moe": without["Linear"] = KINDS[kind]["Linear"]
            for quantised, left in ((False, without), (True, KINDS[kind])):
                model, path = tiny(kind), FOLDER / f"experts_{kind}_{quantised}"
                for layer in model.model.layers:
                    if quantised and hasattr(layer.mlp, "experts"):
                        layer.mlp.experts = EachExpert(layer.mlp.experts, words)
                by_compressed_tensors(path, model)
                stored = json.loads((path / "config.json").read_text())["quantization_config"]
                self.assertFalse(any("experts" in name for name in stored["ignore"]))
                self.check_path(path, left)

    def test_each_linear_has_its_own_tensors(self):
        """The sum of a model could hide two that were exchanged."""
        for package in FORMATS:
            if package in MISSING: continue
            path = checkpoint(package)
            weights, model = decoded(load_file(path / "model.safetensors")), loaded(path)
            for name, module in model.named_modules():
                if type(module) is not nn.Linear: continue
                x = torch.eye(module.in_features).to(BF16)
                wanted = weights[name + ".weight"].mT
                self.assertLessEqual(float(((module(x).double() - wanted).abs() - 2.0**-8 * wanted.abs()).max()), 1e-6)

    def test_activations_that_are_quantised(self):
        """By the checkpoint's input scale, and without one by a scale of each row."""
        for package, how in (("modelopt", None), ("compressed-tensors", None), ("compressed-tensors", "NVFP4A16")):
            if package in MISSING: continue
            path = checkpoint(package, "Qwen3", how)
            tensors, plain = load_file(path / "model.safetensors"), own(path)
            for device in DEVICES:
                model = loaded(path, device, "nvfp4")
                with self.subTest(package, how=how, device=device):
                    for name, module in model.named_modules():
                        if type(module) is not nn.Linear: continue
                        self.check_quantised(module, plain.get_submodule(name), tensors.get(
                            f"{name}.{FORMATS[package][3]}"), package == "modelopt")

    def test_accuracy(self):
        """Of both kinds of activations, on a model that is somewhat larger, with numbers for the page."""
        options = dict(hidden_size=256, intermediate_size=768, num_hidden_layers=3, num_attention_heads=8,
                       num_key_value_heads=4, head_dim=32, initializer_range=0.02)
        for package in FORMATS:
            if package in MISSING: continue
            path = checkpoint(package, **options)
            with_floats, wanted = (logits(model) for model in (tiny(**options).double(), own(path)))
            as_they_are, quantised = (logits(loaded(path, a_format=a_format)) for a_format in ("16bit", "nvfp4"))
            for name, reference in (("the same weights", wanted), ("the float weights", with_floats)):
                differ = [off(each, reference) for each in (as_they_are, quantised, logits(own(path, BF16)))]
                print("{}: logits differ from those of {} in fp64 by {:.4f} with activations of 16 bits, by {:.4f} "
                      "with quantised ones; transformers' own in bf16 by {:.4f}".format(package, name, *differ))
            self.assertLess(5 * off(as_they_are, wanted), off(quantised, wanted))
            self.assertLess(off(quantised, with_floats), 0.5)

    def check_quantised(self, module, linear, scale, decodes):
        """A few elements lie so near to a tie that fp32 decides them another way than fp64. That is far less than what
        quantisation costs."""
        x = torch.randn(16, module.in_features, generator=torch.Generator().manual_seed(9)).to(BF16)
        largest = x.double().abs().amax(1, keepdim=True) / 2688  # decode scales, those of each row
        wanted = linear(quantised(x, largest if scale is None else scale.double() ** (1 if decodes else -1)))
        with torch.no_grad(): y = module(x.to(module.device)).double().cpu()
        self.assertLess(off(y, wanted), off(wanted, linear(x.double())) / 2)


class Excluded(Case):
    def test_modelopt(self):
        self.needs("modelopt")
        config = copy.deepcopy(mtq.NVFP4_DEFAULT_CFG)
        config["quant_cfg"] += [{"quantizer_name": name, "enable": False} for name in ("*layers.1.self_attn*",
                                                                                       "*down_proj*")]
        path = FOLDER / "excluded"
        by_modelopt(path, tiny(), config)
        model = loaded(path)
        self.assertEqual(kinds(model), {"Linear": 4 + 4})
        wanted = logits(own(path))
        self.assertLess(off(logits(model), wanted), 1.5 * off(logits(own(path, BF16)), wanted))
        layers = {name[:-len(".weight_scale")]: {"quant_algo": "NVFP4", "group_size": 16}
                  for name in load_file(path / "model.safetensors") if name.endswith(".weight_scale")}
        mixed = loaded(copied(path, quant_algo="MIXED_PRECISION", quantized_layers=layers, ignore=[]))
        self.same(logits(mixed), logits(model))

    def test_compressed_tensors(self):
        self.needs("compressed-tensors")
        for ignore, left in ((["re:.*self_attn.*"], {"GatedMLP": 2, "Linear": 6}),
                             (["model.layers.0.mlp.up_proj"], {"GatedMLP": 1, "Linear": 8 + 2 + 3}),
                             (["model.layers.0.mlp"], {"GatedMLP": 2, "Linear": 8 + 6})):  # which is no linear
            path = FOLDER / f"ignore{len(ignore[0])}"
            by_compressed_tensors(path, tiny(), "NVFP4", ["lm_head", *ignore])
            written = copied(path, ignore=["lm_head", *ignore])  # the package writes names for patterns
            for each in (path, written): self.assertEqual(kinds(loaded(each)), left)

    def test_names_that_transformers_changes(self):
        """The checkpoint calls the vision tower's modules vision_tower.vision_model.*, and the model does not."""
        self.needs("modelopt")
        text = tiny().config.to_dict()
        vision = dict(model_type="clip_vision_model", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                      num_attention_heads=4, image_size=16, patch_size=8)
        torch.manual_seed(3)
        model = LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=1))
        model = model.to(BF16).eval()
        model.config.architectures = [type(model).__name__]
        config = {**mtq.NVFP4_DEFAULT_CFG, "quant_cfg": [*mtq.NVFP4_DEFAULT_CFG["quant_cfg"],
                                                         {"quantizer_name": "*vision_tower*", "enable": False}]}
        path = FOLDER / "llava"
        by_modelopt(path, model, config)
        model, info = LlavaForConditionalGeneration.from_pretrained(path, config=ours.model_config(path),
                                                                    output_loading_info=True)
        self.assertEqual({key: value for key, value in info.items() if value}, {})
        self.assertEqual(kinds(model), KINDS["Qwen3"])
        self.round_trip(model, path, LlavaForConditionalGeneration)

    def test_by_class(self):
        from dualgemm.transformers._checkpoint import reader
        linear = torch.nn.Linear(32, 32)
        group = dict(targets=["Linear"], weights=dict(num_bits=4, type="float", group_size=16), format=PACKED)
        for ignore, stays in ((["Module"], True), (["Linear"], True), (["Embedding"], False), (["re:.*_proj"], True)):
            stored = dict(config_groups={"group_0": group}, ignore=ignore)
            self.assertIs(reader(stored).scheme("model.q_proj", linear) is None, stays)

    def test_tied_embeddings(self):
        for package in FORMATS:
            if package in MISSING: continue
            path = checkpoint(package, tie_word_embeddings=True)
            model = loaded(path)
            self.assertIs(model.lm_head.weight, model.model.embed_tokens.weight)
            Loads.check_path(self, path, KINDS["Qwen3"])

    round_trip = Loads.round_trip


class Rewritten(Case):
    """A checkpoint under this package's quant_method, in its own config.json."""

    def cli(self, *args, ok=True):
        done = subprocess.run([sys.executable, "-m", "dualgemm.transformers", *map(str, args)], capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": sys.argv[1]})
        self.assertEqual(done.returncode == 0, ok, done.stderr)
        return done.stdout + done.stderr

    def test_the_documented_line(self):
        for package in FORMATS:
            if package in MISSING: continue
            path = checkpoint(package)
            place, wanted = copied(path), logits(loaded(path))
            before = json.loads((place / "config.json").read_text())
            self.assertIn("quant_method is dualgemm_nvfp4", self.cli(place))
            model = AutoModelForCausalLM.from_pretrained(place)
            self.same(logits(model), wanted)
            self.assertFalse(model.model.layers[0].mlp.gate_proj.quantises)
            self.cli(place, "--a-format", "nvfp4")
            self.assertTrue(AutoModelForCausalLM.from_pretrained(place).model.layers[0].mlp.gate_proj.quantises)
            self.assertIn(f"quant_method is {package}", self.cli(place, "--restore"))
            self.assertEqual(json.loads((place / "config.json").read_text()), before)
            self.assertIn("was not rewritten", self.cli(place, "--restore", ok=False))
        self.assertIn("no quantization_config", self.cli(checkpoint("float"), ok=False))
        self.assertIn("config.json", self.cli(FOLDER / "nowhere", ok=False))

    def test_restore(self):
        """Each layout of config.json comes back as it was, also behind a save of the loaded model."""
        modelopt = dict(quant_algo="NVFP4", group_size=16)
        producer = dict(name="modelopt", version="0.47.0")
        nested = dict(producer=producer, quantization=dict(modelopt, exclude_modules=["lm_head"]))
        group = dict(targets=["Linear"], weights=dict(num_bits=4, type="float", group_size=16), format=PACKED)
        for name, stored, method in (
                ("flat", dict(modelopt, ignore=["lm_head"], producer=producer, quant_method="modelopt"), "modelopt"),
                ("nested", dict(nested, quant_method="modelopt"), "modelopt"), ("nested, no method", nested, None),
                ("exclude_modules", dict(modelopt, exclude_modules=["lm_head"], quant_method="modelopt"), "modelopt"),
                ("no ignore", dict(modelopt, quant_method="modelopt_fp4"), "modelopt_fp4"),
                ("keys of these names", dict(modelopt, a_format="x", flags=7, quant_method="modelopt"), "modelopt"),
                ("compressed-tensors", dict(config_groups={"group_0": group}, ignore=[],
                                            quant_method="compressed-tensors"), "compressed-tensors"),
                ("legacy", None, None)):
            place = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
            before = {"model_type": "qwen3", **({} if stored is None else {"quantization_config": stored})}
            (place / "config.json").write_text(json.dumps(before))
            if stored is None: (place / "hf_quant_config.json").write_text(json.dumps(nested))
            with self.subTest(name):
                for _ in range(2): self.assertEqual(ours.rewrite(place, "nvfp4", 1), "dualgemm_nvfp4")
                config = AutoConfig.from_pretrained(place)
                quantization = ours.DualGemmConfig.from_dict(config.quantization_config)
                self.assertEqual((quantization.a_format, quantization.flags), ("nvfp4", 1))
                config.quantization_config = quantization
                for each in (config, ours.model_config(place)):  # what save_pretrained of a model writes
                    saved = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
                    each.save_pretrained(saved)
                    if stored is None:
                        self.refused("hf_quant_config.json, which said", ours.rewrite, saved, restore=True)
                        continue
                    self.assertEqual(ours.rewrite(saved, restore=True), method)
                    self.assertEqual(json.loads((saved / "config.json").read_text())["quantization_config"], stored)
                self.assertEqual(ours.rewrite(place, restore=True), method)
                self.assertEqual(json.loads((place / "config.json").read_text()), before)

    def test_the_other_layout_of_modelopt(self):
        self.needs("modelopt")
        path = checkpoint("modelopt")
        place = copied(path)
        config = json.loads((place / "config.json").read_text())
        del config["quantization_config"]
        (place / "config.json").write_text(json.dumps(config))
        self.same(logits(loaded(place)), logits(loaded(path)))
        self.assertEqual(ours.rewrite(place), "dualgemm_nvfp4")
        self.same(logits(AutoModelForCausalLM.from_pretrained(place)), logits(loaded(path)))

    def test_the_cache_of_keys_and_values(self):
        """Its scheme is not read, which is said."""
        self.needs("modelopt")
        config = {**mtq.NVFP4_DEFAULT_CFG, "quant_cfg": [*mtq.NVFP4_DEFAULT_CFG["quant_cfg"],
                                                         *mtq.FP8_KV_CFG["quant_cfg"]]}
        path = FOLDER / "kv"
        by_modelopt(path, tiny(), config)
        self.assertTrue(any("k_scale" in name for name in load_file(path / "model.safetensors")))
        with self.assertLogs("dualgemm.transformers", "WARNING") as said:
            model, info = loaded(path, output_loading_info=True)
        self.assertIn("cache of keys and values stays in 16 bits", said.output[0])
        self.assertEqual({key: value for key, value in info.items() if value}, {})
        self.assertLess(off(logits(model), logits(loaded(checkpoint("modelopt")))), 1e-6)


class Refused(Case):
    def refuses(self, text, path, changes, **options):
        self.refused(text, loaded, copied(path, **changes), **options)

    def test_what_modelopt_writes_besides(self):
        self.needs("modelopt")
        path = checkpoint("modelopt")
        layers = {"model.layers.0.mlp.up_proj": {"quant_algo": "FP8"}}
        group = {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 32}, "targets": ["Linear"]}}
        for text, changes in (
                ("config: quant_algo='FP8': is not read here, and must be 'NVFP4' or", {"quant_algo": "FP8"}),
                ("quantization_config: quant_algo='NVFP4_AWQ': is not", {"quant_algo": "NVFP4_AWQ"}),
                ("model.layers.0.mlp.up_proj: quant_algo='FP8': is not read",
                 {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}),
                ("self_attn.q_proj: group_size=32: is not read here, and must be 16", {"config_groups": group})):
            with self.subTest(text): self.refuses(text, path, changes)
        layers = {f"model.layers.0.self_attn.{name}_proj": {"quant_algo": "NVFP4", "group_size": 16} for name in "qkvo"}
        mixed = copied(path, quant_algo="MIXED_PRECISION", quantized_layers=layers)
        self.refused("size", loaded, mixed)  # its other weights are no floats, as that configuration says

    def test_what_compressed_tensors_writes_besides(self):
        self.needs("compressed-tensors")
        path = checkpoint("compressed-tensors")
        group = json.loads((path / "config.json").read_text())["quantization_config"]["config_groups"]["group_0"]
        for text, changes in (
                ("q_proj: weights.num_bits=8: is not", dict(weights={**group["weights"], "num_bits": 8})),
                ("q_proj: weights.type='int': is not", dict(weights={**group["weights"], "type": "int"})),
                ("q_proj: weights.group_size=32: is", dict(weights={**group["weights"], "group_size": 32})),
                ("q_proj: weights.symmetric=False: is", dict(weights={**group["weights"], "symmetric": False})),
                ("q_proj: input_activations.num_bits=8: is", dict(input_activations={**group["input_activations"],
                                                                                     "num_bits": 8})),
                ("q_proj: format='mxfp4-pack-quantized': is not read here, and must be 'nvfp4-pack-quantized'",
                 dict(format="mxfp4-pack-quantized")),
                ("q_proj: output_activations=", dict(output_activations={"num_bits": 8}))):
            with self.subTest(text): self.refuses(text, path, dict(config_groups={"group_0": {**group, **changes}}))
        self.refuses("quantization_config: transform_config=.*: is not read", path, dict(transform_config={"u": {}}))

    def test_tensors_that_are_not_there_or_not_so(self):
        self.needs("modelopt")
        path, stem = checkpoint("modelopt"), "model.layers.1.self_attn.v_proj."
        for text, name, change in (
                (stem + "weight_scale_2: the checkpoint does not have it, nor 0", "weight_scale_2", None),
                (stem + "weight: the checkpoint does not", "weight", None),
                (stem[:-1] + r": .*weight_scale: is \[32, 2\], and must be \[32, 4\]", "weight_scale",
                 lambda tensor: tensor[:, :2]),
                (stem[:-1] + r": .*weight_scale_2: is torch.float32 \[2\], and must be 1", "weight_scale_2",
                 lambda tensor: tensor.expand(2))):
            tensors = load_file(path / "model.safetensors")
            tensor, place = tensors.pop(stem + name), copied(path)
            if change is not None: tensors[stem + name] = change(tensor).clone()
            save_file(tensors, place / "model.safetensors", {"format": "pt"})
            with self.subTest(text), self.assertRaisesRegex(ValueError, "(?s)" + text): loaded(place)

    def test_experts(self):
        self.needs("modelopt")
        path = checkpoint("modelopt", "Mixtral")
        self.refused("layers.0.mlp.experts: these experts are not quantised, and others are", loaded,
                     copied(path, ignore=["lm_head", "model.layers.0.block_sparse_moe.experts*"]))
        tensors, place = load_file(path / "model.safetensors"), copied(path)
        del tensors["model.layers.1.block_sparse_moe.experts.2.w1.input_scale"]
        save_file(tensors, place / "model.safetensors", {"format": "pt"})
        with self.assertRaisesRegex(ValueError, r"(?s)layers.1.mlp.experts: .*input_scale: is torch.float32 \[3\]"):
            loaded(place)

    def test_shapes(self):
        for text, options in (("down_proj: .*in_features=80: must be a positive multiple of 32|mlp: in_features=80",
                               dict(intermediate_size=80)), ("in_features=48: must be", dict(hidden_size=48))):
            self.refused(text, ours.convert, tiny(**options))
            self.refused(text, AutoModelForCausalLM.from_pretrained, checkpoint("float", **options),
                         quantization_config=ours.DualGemmConfig())

    def test_checkpoints_of_other_kinds(self):
        self.refused("has neither a quantization_config nor hf_quant", ours.model_config, checkpoint("float"))
        self.refused("has no quantization_config", ours.rewrite, checkpoint("float"))
        self.refused("has neither `quant_algo`", ours.DualGemmConfig, bits=4)
        self.needs("modelopt")
        self.refused("_proj.weight_scale: is in the checkpoint, so its weights are quantised already: pass config=",
                     AutoModelForCausalLM.from_pretrained, checkpoint("modelopt"),
                     quantization_config=ours.DualGemmConfig())

    def test_devices(self):
        from dualgemm.transformers._quantizer import DualGemmQuantizer
        for capability, a_format, text in (((8, 9), "auto", "has compute capability 8.9; NVFP4 weights need 9.0, 10"),
                                           ((9, 1), "auto", "9.1"), ((12, 0), "nvfp4", "12.0"), ((9, 0), "16bit", None),
                                           ((10, 3), "auto", None), ((10, 0), "16bit", "a_format='16bit': cuda:1 has")):
            quantizer = DualGemmQuantizer(ours.DualGemmConfig(a_format=a_format), pre_quantized=False)
            for place in ({"": 1}, "cuda:1", torch.device("cuda:1")):
                with mock.patch("torch.cuda.get_device_capability", return_value=capability):
                    if text is None: quantizer.validate_environment(device_map=place)
                    else: self.refused(text, quantizer.validate_environment, device_map=place)
        parallel = SimpleNamespace(config=SimpleNamespace(distributed_config=SimpleNamespace(tp_size=2)))
        self.refused("tp_size=2: this quantizer loads whole weights", quantizer.update_parallel_plan, parallel, {})
        quantizer.validate_environment(device_map="auto")
        self.refused("'disk' is not possible", quantizer.validate_environment, device_map={"model": "disk"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
