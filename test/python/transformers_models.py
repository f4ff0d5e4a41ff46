"""Small models of transformers, their checkpoints, and a decoder of those in NVFP4 in fp64, which shares nothing with
the library. Raises ImportError where there is no torch, no transformers, or nothing that can be tested."""
import json
import pathlib
import shutil
import tempfile
import unittest

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

import dualgemm.transformers as ours

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
BF16, FP64, E4M3 = torch.bfloat16, torch.float64, torch.float8_e4m3fn
VOCABULARY = 128
MODELS = {"Qwen3": {}, "Qwen2": {}, "Phi3": dict(head_dim=None),  # Qwen2 has biases; Phi3 has gate_up_proj
          "Qwen3Moe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, mlp_only_layers=[1]),
          "Mixtral": dict(num_local_experts=4, num_experts_per_tok=2)}
# Models with a router, or a gate of one row, that is a torch.nn.Linear.
ROUTED = {"Qwen2Moe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                           shared_expert_intermediate_size=96),
          "HunYuanMoEV1": dict(num_experts=4, moe_topk=2),
          "Afmoe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, num_dense_layers=1)}
# What replaces its linears: one layer has 4 linears of attention, and in GatedMLP there are three more.
KINDS = {"Qwen3": {"GatedMLP": 2, "Linear": 8 + 6}, "Qwen2": {"GatedMLP": 2, "Linear": 8 + 6},
         "Phi3": {"GatedMLP": 2, "Linear": 4 + 6},  # q, k and v are one
         "Qwen3Moe": {"Experts": 1, "Weights": 3, "GatedMLP": 1, "Linear": 8 + 3},
         "Mixtral": {"Experts": 2, "Weights": 6, "Linear": 8}}
FORMATS = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
           "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
PACKED = "nvfp4-pack-quantized"
_FOLDER = tempfile.TemporaryDirectory()  # removed when the process ends
FOLDER = pathlib.Path(_FOLDER.name)


# ---- checkpoints ----

def tiny(kind="Qwen3", dtype=BF16, **options):
    """A model of two layers with random weights."""
    config = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, vocab_size=VOCABULARY, head_dim=16, max_position_embeddings=64, pad_token_id=0,
                  bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, initializer_range=0.1)
    config = {**config, **{**MODELS, **ROUTED}[kind], **options}
    config = {key: value for key, value in config.items() if value is not None}
    torch.manual_seed(3)
    model = getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**config)).to(dtype)
    model.config.architectures = [type(model).__name__]
    for name, parameter in model.named_parameters():
        if name.endswith("bias"): torch.nn.init.normal_(parameter)
    return model.eval()


def tokens(rows=2, length=7):
    return torch.randint(3, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(5))


MAKERS = {"float": lambda path, model: model.save_pretrained(path)}  # nvfp4_checkpoints.py has more


def checkpoint(package, kind="Qwen3", how=None, **options):
    """The folder of a checkpoint, which is made once. `how` is a further argument of its maker."""
    path = FOLDER / "_".join([package, kind, *(str(value) for value in options.values()),
                              *(() if how is None else [str(how)[:40].replace("/", "")])])
    if path.exists(): return path
    model = tiny(kind, **options)
    MAKERS[package](path, model, *(() if how is None else (how,)))
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
        if package not in MAKERS: self.skipTest(f"there is no {package}")

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(got.cpu().contiguous().flatten().view(torch.uint8),
                                    wanted.cpu().contiguous().flatten().view(torch.uint8)))

    def refused(self, text, function, *args, kind=(ValueError, RuntimeError), **named):
        with self.assertRaisesRegex(kind, text): function(*args, **named)
