#!/usr/bin/env python3
"""torch_transformers_test.py -- models of transformers with NVFP4 weights: checkpoints that ModelOpt and
compressed-tensors make here, on the CPU and on a GPU if there is one, against transformers' own models in fp64 with the
weights that a decoder written here makes. Exits with 77 where there is no torch or transformers, or no operators.

    torch_transformers_test.py MODULE [unittest's arguments]
"""
import contextlib
import copy
import importlib
import io
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

sys.path.insert(0, sys.argv[1])
try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    import dualgemm as d
    from dualgemm import nn
    import dualgemm.transformers as ours
except ImportError as error:
    print(f"torch_transformers_test.py: skipped: {error}")
    sys.exit(77)
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
MISSING = {}
try:
    import compressed_tensors.quantization as ct
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
except ImportError as error:
    MISSING["compressed-tensors"] = str(error)
try:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import modelopt.torch.quantization as mtq
        from modelopt.torch.export import export_hf_checkpoint
except ImportError as error:
    MISSING["modelopt"] = str(error)
for package, problem in MISSING.items(): print(f"torch_transformers_test.py: skipped, with {package}: {problem}")

DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
BF16, FP64, E4M3 = torch.bfloat16, torch.float64, torch.float8_e4m3fn
VOCABULARY = 128
MODELS = {"Qwen3": {}, "Qwen2": {}, "Phi3": dict(head_dim=None),  # Qwen2 has biases; Phi3 has gate_up_proj
          "Qwen3Moe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, mlp_only_layers=[1]),
          "Mixtral": dict(num_local_experts=4, num_experts_per_tok=2)}
FORMATS = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
           "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
PACKED = "nvfp4-pack-quantized"
FOLDER = None  # of all checkpoints


def setUpModule():
    global FOLDER, CLEANUP
    CLEANUP = tempfile.TemporaryDirectory()
    FOLDER = pathlib.Path(CLEANUP.name)


def tearDownModule():
    CLEANUP.cleanup()


# ---- checkpoints ----

def tiny(kind="Qwen3", dtype=BF16, **options):
    """A model of two layers with random weights."""
    config = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, vocab_size=VOCABULARY, head_dim=16, max_position_embeddings=64, pad_token_id=0,
                  bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, initializer_range=0.1)
    config = {key: value for key, value in {**config, **MODELS[kind], **options}.items() if value is not None}
    torch.manual_seed(3)
    model = getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**config)).to(dtype)
    model.config.architectures = [type(model).__name__]
    for name, parameter in model.named_parameters():
        if name.endswith("bias"): torch.nn.init.normal_(parameter)
    return model.eval()


def tokens(rows=2, length=7):
    return torch.randint(3, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(5))


def by_modelopt(path, model, config=None):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        mtq.quantize(model, config or mtq.NVFP4_DEFAULT_CFG, lambda model: model(tokens(8, 16)))
        export_hf_checkpoint(model, dtype=BF16, export_dir=path)


@torch.no_grad()
def by_compressed_tensors(path, model, scheme="NVFP4", ignore=("lm_head",)):
    with contextlib.redirect_stderr(io.StringIO()):
        ct.apply_quantization_config(model, ct.QuantizationConfig(
            config_groups={"group_0": ct.preset_name_to_scheme(scheme, ["Linear"])}, ignore=list(ignore)))
        modules = [module for module in model.modules() if getattr(module, "quantization_scheme", None)]
        seen = {module: [] for module in modules}
        model.apply(ct.disable_quantization)
        hooks = [module.register_forward_pre_hook(lambda module, x: seen[module].append(x[0].aminmax()))
                 for module in modules]
        model(tokens(8, 16))
        for hook in hooks: hook.remove()
        for module in modules:
            weight = module.weight.float()
            scale = generate_gparam(*weight.aminmax())
            blocks = weight.unflatten(-1, (-1, 16))
            factors, _ = calculate_qparams(blocks.amin(-1), blocks.amax(-1), module.quantization_scheme.weights, scale)
            module.weight_global_scale.copy_(scale)
            module.weight_scale.copy_(factors)
            if module.quantization_scheme.input_activations is not None:
                module.input_global_scale.copy_(generate_gparam(min(low for low, _ in seen[module]).float(),
                                                                max(high for _, high in seen[module]).float()))
        compressor = ModelCompressor.from_pretrained_model(model)
        compressor.compress_model(model)
    model.save_pretrained(path)
    compressor.update_config(path)


def checkpoint(package, kind="Qwen3", how=None, **options):
    """The folder of a checkpoint, which is made once. `how` is a further argument of its maker."""
    path = FOLDER / "_".join([package, kind, *(str(value) for value in options.values()),
                              *(() if how is None else [str(how)[:40].replace("/", "")])])
    if path.exists(): return path
    model = tiny(kind, **options)
    maker = {"modelopt": by_modelopt, "compressed-tensors": by_compressed_tensors,
             "float": lambda path, model: model.save_pretrained(path)}[package]
    maker(path, model, *(() if how is None else (how,)))
    return path


def copied(path, **changes):
    """A copy of a checkpoint, whose quantization_config has changes."""
    place = pathlib.Path(tempfile.mkdtemp(dir=FOLDER)) / "checkpoint"
    shutil.copytree(path, place)
    config = json.loads((place / "config.json").read_text())
    for key, value in changes.items(): config["quantization_config"][key] = value
    (place / "config.json").write_text(json.dumps(config))
    return place


def loaded(path, device="cpu", a_format="auto", **options):
    return AutoModelForCausalLM.from_pretrained(path, config=ours.model_config(path, a_format), device_map=device,
                                                **options)


# ---- an oracle ----

CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=FP64)
FACTORS = torch.tensor([(8 + b % 8) * 2.0**(b // 8 - 10) if b > 7 else b * 2.0**-9 for b in range(127)], dtype=FP64)


def decoded(tensors):
    """A checkpoint's tensors with every NVFP4 weight as numbers, in fp64."""
    held = dict(tensors)
    for format, (elements, factors, scale, input_scale) in FORMATS.items():
        for key in [key for key in held if key.endswith(f".{scale}")]:
            stem = key[:-len(scale)]
            packed, number = held.pop(stem + elements).long(), held.pop(key).double()
            codes = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
            steps = FACTORS[held.pop(stem + factors).view(torch.uint8).long()].repeat_interleave(16, -1)
            held.pop(stem + input_scale, None)
            held[stem + "weight"] = CODES[codes] * steps * (number if format == "modelopt" else 1 / number)
    return {key: tensor.double() for key, tensor in held.items()}


def own(path, dtype=FP64):
    """transformers' own model with a checkpoint's decoded weights."""
    place = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    config = AutoConfig.from_pretrained(path)
    if hasattr(config, "quantization_config"): del config.quantization_config
    config.save_pretrained(place)
    save_file(decoded(load_file(path / "model.safetensors")), place / "model.safetensors", {"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(place, dtype=dtype, experts_implementation="eager")  # as fp64 needs it


@torch.no_grad()
def logits(model, ids=None):
    return model((tokens() if ids is None else ids).to(model.device)).logits.double().cpu()


def quantised(x, decode):
    """x as NVFP4 holds it with this decode scale, in fp64: factors and elements are rounded to nearest."""
    blocks = (x.double() / decode).unflatten(-1, (-1, 16))
    factors = (blocks.abs().amax(-1) / 6).clamp(max=448).to(E4M3).double()[..., None]
    nearest = (blocks.abs() / factors).nan_to_num()[..., None].sub(CODES[:8]).abs().argmin(-1)
    return (CODES[nearest] * blocks.sign() * factors).flatten(-2) * decode


@torch.no_grad()
def off(got, wanted):
    return float((got - wanted).norm() / wanted.norm())


def kinds(model):
    """How many modules there are of each kind that counts here."""
    names = [type(module).__name__ for module in model.modules() if type(module).__module__.startswith("dualgemm")]
    return {name: names.count(name) for name in set(names)}


class Case(unittest.TestCase):
    def needs(self, package):
        if package in MISSING: self.skipTest(f"there is no {package}")

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(got.cpu().contiguous().flatten().view(torch.uint8),
                                    wanted.cpu().contiguous().flatten().view(torch.uint8)))

    def refused(self, text, function, *args, kind=(ValueError, RuntimeError), **named):
        with self.assertRaisesRegex(kind, text): function(*args, **named)


class Loads(Case):
    """One layer of each model has 4 linears of attention. In GatedMLP there are three more."""
    KINDS = {"Qwen3": {"GatedMLP": 2, "Linear": 8 + 6}, "Qwen2": {"GatedMLP": 2, "Linear": 8 + 6},
             "Phi3": {"GatedMLP": 2, "Linear": 4 + 6},  # q, k and v are one
             "Qwen3Moe": {"Experts": 1, "Weights": 3, "GatedMLP": 1, "Linear": 8 + 3},
             "Mixtral": {"Experts": 2, "Weights": 6, "Linear": 8}}

    def check(self, package, kind, *how, **options):
        """16 bits of A: what transformers' own model is off in bf16 bounds what this is off. The own one rounds the
        same activations in the same places, and the weights besides."""
        path = checkpoint(package, kind, *how, **options)
        wanted = logits(own(path))
        bound = 1.5 * off(logits(own(path, BF16)), wanted)
        self.assertLess(bound, 0.05)
        for device in DEVICES:
            model, info = loaded(path, device, output_loading_info=True)
            with self.subTest(package, kind=kind, device=device, options=options):
                self.assertEqual({key: value for key, value in info.items() if value}, {})
                self.assertEqual(kinds(model), self.KINDS[kind])
                self.assertIs(type(model.lm_head), torch.nn.Linear)
                if device == "cpu" or torch.cuda.get_device_capability()[0] < 10:
                    self.assertLess(off(logits(model), wanted), bound)
                self.round_trip(model, path)

    def round_trip(self, model, path):
        """What is saved is what was loaded, bit for bit, and loads again without a word."""
        place = tempfile.mkdtemp(dir=FOLDER)
        model.save_pretrained(place)
        before, after = load_file(path / "model.safetensors"), load_file(place + "/model.safetensors")
        self.assertEqual(after.keys(), before.keys())
        for name in before: self.same(after[name], before[name])
        again = AutoModelForCausalLM.from_pretrained(place, device_map=model.device.type)
        self.same(logits(again), logits(model))

    def test_modelopt(self):
        self.needs("modelopt")
        for kind in MODELS: self.check("modelopt", kind)

    def test_compressed_tensors(self):
        self.needs("compressed-tensors")
        for kind, scheme in (("Qwen3", "NVFP4"), ("Qwen3", "NVFP4A16"), ("Qwen2", "NVFP4"), ("Phi3", "NVFP4")):
            self.check("compressed-tensors", kind, scheme)

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
                    quantised, as_they_are = (off(logits(each), logits(plain)) for each in (model, loaded(path)))
                    print(f"{package} {how or 'NVFP4'}: logits are off by {as_they_are:.4f} with activations of 16 bits, "
                          f"and by {quantised:.4f} with quantised ones, of transformers' own in fp64")
                    self.assertLess(5 * as_they_are, quantised)
                    self.assertLess(quantised, 0.5)

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

    def test_compressed_tensors(self):
        self.needs("compressed-tensors")
        for ignore, left in ((["re:.*self_attn.*"], {"GatedMLP": 2, "Linear": 6}),
                             (["model.layers.0.mlp.up_proj"], {"GatedMLP": 1, "Linear": 8 + 2 + 3}),
                             (["model.layers.0.mlp"], {"GatedMLP": 2, "Linear": 8 + 6})):  # which is no linear
            path = FOLDER / f"ignore{len(ignore[0])}"
            by_compressed_tensors(path, tiny(), "NVFP4", ["lm_head", *ignore])
            self.assertEqual(kinds(loaded(path)), left)

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
            Loads.check(self, package, "Qwen3", tie_word_embeddings=True)

    KINDS, round_trip = Loads.KINDS, Loads.round_trip


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
            after = json.loads((place / "config.json").read_text())
            self.assertEqual(after["quantization_config"].pop("ignore"), before["quantization_config"].pop("ignore"))
            self.assertEqual(after, before)
            self.assertIn("was not rewritten", self.cli(place, "--restore", ok=False))
        self.assertIn("no quantization_config", self.cli(checkpoint("float"), ok=False))
        self.assertIn("config.json", self.cli(FOLDER / "nowhere", ok=False))

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


class Registered(Case):
    def test_once(self):
        from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
        import dualgemm.transformers._quantizer as module
        for known in (AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING):
            first = known["dualgemm_nvfp4"]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                importlib.reload(module)
            self.assertIs(known["dualgemm_nvfp4"], first)

            class Other(first): pass
            with mock.patch.dict(known, {"dualgemm_nvfp4": Other}), self.assertWarnsRegex(UserWarning, "which stays"):
                importlib.reload(module)

    def test_names_of_others_stay(self):
        """In a fresh process: whatever transformers has registered is what it was."""
        script = ("from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING as known; before = dict(known); "
                  "import dualgemm.transformers; assert {k: v for k, v in known.items() if k in before} == before; "
                  "assert known.keys() - before.keys() == {'dualgemm_nvfp4'}")
        subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": sys.argv[1]})

    def test_a_configuration_survives_json(self):
        config = ours.DualGemmConfig(ignore=["lm_head", "re:.*q_proj"], a_format="nvfp4", flags=1)
        again = ours.DualGemmConfig.from_dict(json.loads(config.to_json_string()))
        self.assertEqual(again.to_dict(), config.to_dict())
        self.assertEqual((again.a_format, again.flags), ("nvfp4", 1))


class Floats(Case):
    def test_while_loading_as_in_place(self):
        """from_pretrained quantises tensor by tensor what convert quantises in a model."""
        for kind in MODELS:
            path = checkpoint("float", kind)
            with self.subTest(kind):
                model, info = AutoModelForCausalLM.from_pretrained(path, quantization_config=ours.DualGemmConfig(),
                                                                   output_loading_info=True)
                self.assertEqual({key: value for key, value in info.items() if value}, {})
                converted = ours.convert(AutoModelForCausalLM.from_pretrained(path))
                self.assertEqual(kinds(model), Loads.KINDS[kind])
                self.assertEqual(kinds(converted), Loads.KINDS[kind])
                self.same(logits(model), logits(converted))
                self.assertLess(off(logits(model), logits(AutoModelForCausalLM.from_pretrained(path))), 0.5)
                for each in (model, converted):
                    place = tempfile.mkdtemp(dir=FOLDER)
                    each.save_pretrained(place)
                    again = AutoModelForCausalLM.from_pretrained(place)
                    self.assertEqual(kinds(again), Loads.KINDS[kind])
                    self.same(logits(again), logits(model))

    def test_devices(self):
        for device in DEVICES:
            model = ours.convert(tiny().to(device), a_format="nvfp4", flags=d.FLAG_BATCH_INVARIANT)
            mlp = model.model.layers[0].mlp
            self.assertEqual((mlp.down_proj.device.type, mlp.gate_proj.a_format, mlp.flags),
                             (device, "nvfp4", d.FLAG_BATCH_INVARIANT))
            logits(model)

    def test_float32_is_loaded_as_bfloat16(self):
        with self.assertLogs("dualgemm.transformers", "WARNING"):
            model = AutoModelForCausalLM.from_pretrained(checkpoint("float"), dtype=torch.float32,
                                                         quantization_config=ours.DualGemmConfig())
        self.assertEqual(model.dtype, BF16)

    def test_what_stays(self):
        for ignore, left in ((("lm_head", "self_attn"), {"GatedMLP": 2, "Linear": 6}),
                             (("lm_head", "layers.1.*"), {"GatedMLP": 1, "Linear": 4 + 3}),
                             (("lm_head", "Qwen3MLP"), {"Linear": 8}),
                             (("lm_head", "re:model.layers.0.mlp.(gate|up)"), {"GatedMLP": 1, "Linear": 8 + 1 + 3}),
                             ((), {"GatedMLP": 2, "Linear": 8 + 6 + 1})):
            with self.subTest(ignore): self.assertEqual(kinds(ours.convert(tiny(), ignore=ignore)), left)
        tied = ours.convert(tiny(tie_word_embeddings=True), ignore=())
        self.assertIs(tied.lm_head.weight, tied.model.embed_tokens.weight)
        self.assertEqual(kinds(ours.convert(tiny("Mixtral"), ignore=("lm_head", "experts"))), {"Linear": 8})

    def test_refusals(self):
        model = ours.convert(tiny())
        self.refused("has a quantization_config, so its weights are quantised already", ours.convert, model)
        model = tiny()
        model.model.layers[0].mlp.up_proj.register_forward_hook(lambda *_: None)
        self.refused("layers.0.mlp: has a hook", ours.convert, model)
        model = tiny("Mixtral")
        model.model.layers[1].mlp.experts.act_fn = torch.nn.Mish()
        self.refused("layers.1.mlp.experts: experts of the class MixtralExperts are no gated MLPs", ours.convert, model)


class Recognised(Case):
    """A module is a GatedMLP by what its forward computes."""

    def module(self, forward, act=torch.nn.SiLU(), **others):
        class Mlp(torch.nn.Module):
            pass
        made = Mlp()
        Mlp.forward = forward
        made.gate_proj, made.up_proj, made.down_proj = (torch.nn.Linear(n, k, False) for n, k in ((64, 96), (64, 96),
                                                                                                  (96, 64)))
        made.act_fn = act
        for name, value in others.items(): setattr(made, name, value)
        return torch.nn.Sequential(made)

    def test_forwards(self):
        def plain(self, x): return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

        def turned(self, x): return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))

        def clamped(self, x): return self.down_proj(self.act_fn(self.gate_proj(x)).clamp(max=7) * self.up_proj(x))

        def scaled(self, x): return 2 * plain(self, x)

        def added(self, x): return self.down_proj(self.act_fn(self.gate_proj(x)) + self.up_proj(x))

        def of_two(self, x, y): return plain(self, x * y)

        def flat(self, x): return plain(self, x).flatten(0, 1)
        random, state = torch.get_rng_state(), torch.nn
        for forward, is_gated in ((plain, True), (turned, False), (clamped, False), (scaled, False), (added, False),
                                  (of_two, False), (flat, False)):
            with self.subTest(forward.__name__):
                self.assertEqual("GatedMLP" in kinds(ours.convert(self.module(forward), ignore=())), is_gated)
        for act, is_gated in ((state.GELU(), True), (state.GELU(approximate="tanh"), True), (state.ReLU(), True),
                              (state.functional.silu, True), (state.Mish(), False), (state.ReLU6(), False),
                              (transformers.activations.ACT2FN["gelu_fast"], True),
                              (transformers.activations.ACT2FN["quick_gelu"], False)):
            self.assertEqual("GatedMLP" in kinds(ours.convert(self.module(plain, act), ignore=())), is_gated)
        self.assertNotIn("GatedMLP", kinds(ours.convert(self.module(plain, norm=state.LayerNorm(64)), ignore=())))
        self.assertNotIn("GatedMLP", kinds(ours.convert(self.module(plain, up_proj=state.Linear(64, 96)), ignore=())))
        torch.set_rng_state(random)

    def test_random_numbers_are_left_alone(self):
        model = tiny()
        before = torch.get_rng_state()
        ours.convert(model)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))


class Running(Case):
    """Whole models, with a static cache and under torch.compile."""

    def models(self):
        for kind, a_format, device in itertools.product(("Qwen3", "Mixtral"), ("auto", "nvfp4"), DEVICES):
            model = AutoModelForCausalLM.from_pretrained(checkpoint("float", kind), device_map=device,
                                                         quantization_config=ours.DualGemmConfig(a_format=a_format))
            with self.subTest(kind, a_format=a_format, device=device): yield model

    def test_generate_with_a_static_cache(self):
        for model in self.models():
            ids = tokens().to(model.device)
            options = dict(max_new_tokens=6, do_sample=False, attention_mask=torch.ones_like(ids))
            got = model.generate(ids, cache_implementation="static", **options)
            self.assertTrue(torch.equal(got, model.generate(ids, **options)))
            self.assertEqual(got.shape, (2, 13))

    def test_one_graph(self):
        for model in self.models():
            torch._dynamo.reset()
            graphs = []

            def backend(graph, inputs):
                graphs.append(graph)
                return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)
            compiled = torch.compile(model, backend=backend, fullgraph=True)
            for ids in (tokens(), tokens().flip(1).contiguous()):
                cache = transformers.StaticCache(config=model.config, max_cache_len=16)
                with torch.no_grad(): got = compiled(ids.to(model.device), past_key_values=cache).logits
                self.assertLess(off(got.double().cpu(), logits(model, ids)), 0.01)
            self.assertEqual(len(graphs), 1)


class Refused(Case):
    def refuses(self, text, path, changes, **options):
        self.refused(text, loaded, copied(path, **changes), **options)

    def test_what_modelopt_writes_besides(self):
        self.needs("modelopt")
        path = checkpoint("modelopt")
        layers = {"model.layers.0.mlp.up_proj": {"quant_algo": "FP8"}}
        group = {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 32}, "targets": ["Linear"]}}
        for text, changes in (
                ("quantization_config: quant_algo='FP8': is not read here, and must be 'NVFP4' or", {"quant_algo": "FP8"}),
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
        self.refused("_proj.weight_scale, so its weights are quantised already: pass config=",
                     AutoModelForCausalLM.from_pretrained, checkpoint("modelopt"),
                     quantization_config=ours.DualGemmConfig())

    def test_devices(self):
        from dualgemm.transformers._quantizer import DualGemmQuantizer
        for capability, a_format, text in (((8, 9), "auto", "has compute capability 8.9; NVFP4 weights need 9.0 or 10.x"),
                                           ((9, 1), "auto", "9.1"), ((12, 0), "nvfp4", "12.0"), ((9, 0), "16bit", None),
                                           ((10, 3), "auto", None), ((10, 0), "16bit", "a_format='16bit': cuda:1 has")):
            quantizer = DualGemmQuantizer(ours.DualGemmConfig(a_format=a_format), pre_quantized=False)
            for place in ({"": 1}, "cuda:1", torch.device("cuda:1")):
                with mock.patch("torch.cuda.get_device_capability", return_value=capability):
                    if text is None: quantizer.validate_environment(device_map=place)
                    else: self.refused(text, quantizer.validate_environment, device_map=place)
        quantizer.validate_environment(device_map="auto")
        self.refused("'disk' is not possible", quantizer.validate_environment, device_map={"model": "disk"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
