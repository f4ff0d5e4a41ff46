#!/usr/bin/env python3
"""torch_transformers_shared_test.py -- models of transformers whose query, key and value share a launch, on the CPU and
on a GPU if there is one: against the same models where each has its own. Exits with 77 where there is no transformers,
or where the operators are not built.

    torch_transformers_shared_test.py MODULE [unittest's arguments]
"""
import copy
import itertools
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, sys.argv[1])
try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM
    import dualgemm.transformers as ours
    from dualgemm import nn, torch_op
    from nvfp4_checkpoints import MISSING
    from transformers_models import (BF16, DEVICES, FOLDER, VOCABULARY, Case, checkpoint, copied, loaded, logits, off,
                                     tokens)
except ImportError as error:
    print(f"torch_transformers_shared_test.py: skipped: {error}")
    sys.exit(77)

LAYERS = 2
WIDE = dict(hidden_size=256, head_dim=64)  # 4 heads, and 2 of keys and values: 256 and 128 rows
# How many launches a layer has less, and what a configuration needs besides.
FAMILIES = {
    "Llama": (2, {}), "Mistral": (2, {}), "Qwen2": (2, {}), "Qwen3": (2, {}), "SmolLM3": (2, {}), "Granite": (2, {}),
    "Gemma": (2, {}), "Gemma2": (2, {}), "Gemma3": (2, {}), "Olmo2": (2, {}), "Cohere": (2, {}), "Starcoder2": (2, {}),
    "StableLm": (2, {}), "Phi": (2, {}), "Ministral3": (2, {}), "OPT": (2, dict(ffn_dim=96, word_embed_proj_dim=256)),
    "Qwen3Moe": (2, dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)),
    "Mixtral": (2, dict(num_local_experts=4, num_experts_per_tok=2)),
    "Glm4": (2, {}),
    # q_a_proj and kv_a_proj_with_mqa, of 128 and 80 rows
    "DeepseekV3": (1, dict(num_key_value_heads=4, q_lora_rank=128, kv_lora_rank=64, qk_rope_head_dim=16,
                           qk_nope_head_dim=16, v_head_dim=32, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
                           topk_group=1, moe_intermediate_size=32, head_dim=16, rope_interleave=True)),
    "Phi3": (0, dict(head_dim=None)), "GPTNeoX": (0, {})}  # whose q, k and v are one linear


def built(kind, **options):
    config = dict(hidden_size=256, head_dim=64, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=4,
                  num_key_value_heads=2, vocab_size=VOCABULARY, max_position_embeddings=64, pad_token_id=0,
                  bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, initializer_range=0.1)
    config = {key: value for key, value in {**config, **options}.items() if value is not None}
    names = [kind + "Config", kind + "TextConfig"]
    kind_of_config = next(getattr(transformers, name) for name in reversed(names) if hasattr(transformers, name))
    torch.manual_seed(3)
    model = getattr(transformers, kind + "ForCausalLM")(kind_of_config(**config)).to(BF16)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"): torch.nn.init.normal_(parameter)
    return model.eval()


def shared(model):
    """Those that do, by name."""
    return {name: module for name, module in model.named_modules()
            if isinstance(module, nn.Linear) and module.shared is not None}


def apart(model):
    """A copy with the same numbers, each of whose linears has its own launch."""
    model = copy.deepcopy(model)
    for module in shared(model).values(): module.shared = None
    return model


def run(function):
    """What it returns, and its launches. They are not counted by a TorchDispatchMode: flex_attention compiles itself,
    and torch.compile of PyTorch 2.15 runs under no such mode."""
    ops, direct = torch.ops.dualgemm, torch_op.direct
    with mock.patch.object(ops, "linear", wraps=ops.linear) as traced, \
         mock.patch.object(direct, "linear", wraps=direct.linear) as linear: y = function()
    return y, traced.call_count + linear.call_count


class Models(Case):
    def check(self, model, less, run_it=logits):
        """Bits on the CPU, and so many launches less."""
        with self.assertNoLogs("dualgemm.nn", "WARNING"):
            for _ in range(2): y, count = run(lambda: run_it(model))
        wanted, all_of_them = run(lambda: run_it(apart(model)))
        self.assertEqual(all_of_them - count, less)
        if model.device.type == "cpu": self.same(y, wanted)
        else: torch.testing.assert_close(y, wanted, rtol=0.1, atol=0.05 * float(wanted.abs().max()))

    def test_families(self):
        for kind, (less, options) in FAMILIES.items():
            for device in DEVICES if kind in ("Qwen3", "Qwen2") else ("cpu",):
                with self.subTest(kind, device=device):
                    model = built(kind, **options).to(device)
                    self.check(ours.convert(model), less * LAYERS)
                    self.assertTrue(all(module.shared.joined for module in shared(model).values()))

    def test_attention_implementations(self):
        for implementation in ("eager", "sdpa", "flex_attention"):
            model = ours.convert(built("Qwen3", attn_implementation=implementation))
            self.assertEqual(model.config._attn_implementation, implementation)
            self.check(model, 2 * LAYERS, lambda model: logits(model, tokens(3, 5)))

    def test_generate(self):
        for kind in ("Qwen3", "Gemma2"):
            model = ours.convert(built(kind))
            ids = tokens()
            options = dict(max_new_tokens=5, do_sample=False, attention_mask=torch.ones_like(ids))
            self.check(model, 2 * LAYERS * 5, lambda model: model.generate(ids, **options))
            for layer in model.model.layers: self.assertIsNone(layer.self_attn.q_proj.shared.kept)

    def test_keys_and_values_of_an_encoder(self):
        """One class is for both kinds of attention, so q has its own launch in both. A decoder computes the encoder's
        keys and values once."""
        config = transformers.BartConfig(
            vocab_size=VOCABULARY, d_model=128, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None)
        torch.manual_seed(3)
        model = ours.convert(transformers.BartForConditionalGeneration(config).to(BF16).eval())
        self.assertEqual({name.rpartition(".")[2] for name in shared(model)}, {"k_proj", "v_proj"})
        self.assertEqual(len(shared(model)), 3 * 2)
        ids = tokens()
        self.check(model, 3, lambda model: model(ids, decoder_input_ids=ids[:, :3]).logits)
        options = dict(max_new_tokens=4, min_new_tokens=4, do_sample=False, num_beams=1)
        self.check(model, 1 + 1 + 4, lambda model: model.generate(ids, attention_mask=torch.ones_like(ids), **options))

    def test_hooks(self):
        """As accelerate adds them for a device_map."""
        from accelerate.hooks import AlignDevicesHook, add_hook_to_module
        model = ours.convert(built("Qwen3"))
        wanted, count = run(lambda: logits(model))
        for name, module in model.named_modules():
            add_hook_to_module(module, AlignDevicesHook(execution_device="cpu", io_same_device=not name))
        y, hooked = run(lambda: logits(model))
        self.same(y, wanted)
        self.assertEqual(hooked, count)

    @torch.no_grad()
    def test_one_graph(self):
        for device, name in itertools.product(DEVICES, ("eager", "aot_eager")):
            torch._dynamo.reset()
            model, launches = ours.convert(built("Qwen3").to(device)), []

            def backend(graph, inputs):
                launches.append(sum(str(node.target).startswith("dualgemm.linear") for node in graph.graph.nodes))
                return torch._dynamo.lookup_backend(name)(graph, inputs)
            compiled, others = (torch.compile(each, backend=backend, fullgraph=True) for each in (model, apart(model)))
            for ids in (tokens(), tokens().flip(1).contiguous()):
                got, wanted = (each(ids.to(device), past_key_values=transformers.StaticCache(
                    config=model.config, max_cache_len=16)).logits for each in (compiled, others))
                if device == "cpu": self.same(got, wanted)
                self.assertLess(off(got.double(), wanted.double()), 0.01)
            self.assertEqual(launches, [3 * LAYERS, 5 * LAYERS])  # q, k and v; o; down


class Switched(Case):
    def test_off(self):
        for name, model in (("convert", ours.convert(built("Qwen3"), share_input=False)),
                            ("config", AutoModelForCausalLM.from_pretrained(
                                self.floats(), quantization_config=ours.DualGemmConfig(share_input=False)))):
            with self.subTest(name): self.assertEqual(shared(model), {})
            for module in model.modules():  # scales are each one's own
                if isinstance(module, nn.Linear): self.assertEqual(int(module.state_dict()["weight_scale"].view(
                    torch.uint8).max()), 0x7E)
        place = tempfile.mkdtemp(dir=FOLDER)
        model.save_pretrained(place)
        self.assertEqual(shared(AutoModelForCausalLM.from_pretrained(place)), {})
        self.assertEqual(len(shared(AutoModelForCausalLM.from_pretrained(place, config=ours.model_config(place)))), 6)
        self.assertEqual(shared(AutoModelForCausalLM.from_pretrained(place, config=ours.model_config(
            place, share_input=False))), {})

    def floats(self):
        path = FOLDER / "wide"
        if not path.exists(): built("Qwen3").save_pretrained(path)
        return path

    def test_ignored_and_too_narrow(self):
        model = ours.convert(built("Qwen3"), ignore=("lm_head", "layers.0.self_attn.k_proj"))
        self.assertEqual({name.partition("layers.")[2] for name in shared(model)},
                         {"0.self_attn.q_proj", "0.self_attn.v_proj",
                          *(f"1.self_attn.{name}_proj" for name in "qkv")})
        for options, names in ((dict(num_key_value_heads=1), "qv"),  # of 64 rows k is, and v
                               (dict(num_attention_heads=3, num_key_value_heads=1), ""), ({}, "qkv")):
            model = ours.convert(built("Qwen3", **options))
            self.assertEqual({name.partition("attn.")[2] for name in shared(model)}, {f"{name}_proj" for name in names})
            self.same(logits(model), logits(apart(model)))


class Loaded(Case):
    def check(self, model, rows):
        self.assertEqual(sum(module.shared.joined for module in shared(model).values()), rows)

    def test_floats_while_loading_as_in_place(self):
        for kind in ("Qwen3", "Qwen2", "Mixtral"):
            path = FOLDER / f"floats{kind}"
            model = built(kind, **FAMILIES[kind][1])
            q, k, v = (getattr(model.model.layers[0].self_attn, f"{name}_proj").weight for name in "qkv")
            with torch.no_grad(): q *= 3  # or all have much the same scale
            model.save_pretrained(path)
            read = AutoModelForCausalLM.from_pretrained(path, quantization_config=ours.DualGemmConfig())
            converted = ours.convert(model)
            wanted = converted.state_dict()
            self.assertEqual(read.state_dict().keys(), wanted.keys())
            for name, tensor in read.state_dict().items(): self.same(tensor, wanted[name])
            for each in (read, converted): self.check(each, 3 * LAYERS)
            for layer in read.model.layers:
                self.assertEqual(len({float(getattr(layer.self_attn, f"{name}_proj").weight_scale_2)
                                      for name in "qkv"}), 1)
            place = tempfile.mkdtemp(dir=FOLDER)
            read.save_pretrained(place)
            if kind != "Mixtral":  # whose experts have other names there
                for name, tensor in load_file(place + "/model.safetensors").items(): self.same(tensor, wanted[name])
            again = AutoModelForCausalLM.from_pretrained(place)
            self.check(again, 3 * LAYERS)
            self.same(logits(again), logits(read))

    def test_scales_that_are_far_apart(self):
        path, model = FOLDER / "far", built("Qwen3")
        with torch.no_grad(): model.model.layers[0].self_attn.k_proj.weight *= 100
        model.save_pretrained(path)
        read = AutoModelForCausalLM.from_pretrained(path, quantization_config=ours.DualGemmConfig())
        self.check(read, 3 * (LAYERS - 1))
        self.same(logits(read), logits(apart(read)))

    def test_a_weight_that_is_not_there(self):
        """Its name is in the message, and not those of the weights that have waited for it."""
        path = FOLDER / "incomplete"
        built("Qwen3").save_pretrained(path)
        held = load_file(path / "model.safetensors")
        del held["model.layers.1.self_attn.k_proj.weight"]
        save_file(held, path / "model.safetensors", {"format": "pt"})
        self.refused("^model.layers.1.self_attn.k_proj.weight: the checkpoint does not", AutoModelForCausalLM.
                     from_pretrained, path, quantization_config=ours.DualGemmConfig())

    def test_checkpoints(self):
        """ModelOpt gives q, k and v one scale. compressed-tensors by itself gives each its own, with which each has its
        own launch; programs that use it make them equal, as is done here."""
        for package in ("modelopt", "compressed-tensors"):
            if package in MISSING: continue
            path = checkpoint(package, **WIDE)
            for a_format in ("16bit", "nvfp4"):
                model = loaded(path, a_format=a_format)
                self.assertEqual(len(shared(model)), 3 * LAYERS)
                self.check(model, 3 * LAYERS if package == "modelopt" else 0)
                self.same(logits(model), logits(apart(model)))
                if package == "modelopt": continue
                place, held = copied(path), load_file(path / "model.safetensors")
                for name in held:
                    if ".q_proj." in name and "global" in name:
                        for other in "kv": held[name.replace(".q_proj", f".{other}_proj")] = held[name].clone()
                save_file(held, place / "model.safetensors", {"format": "pt"})
                model = loaded(place, a_format=a_format)
                self.check(model, 3 * LAYERS)
                self.same(logits(model), logits(apart(model)))
                saved = tempfile.mkdtemp(dir=FOLDER)
                model.save_pretrained(saved)
                for name, tensor in load_file(saved + "/model.safetensors").items(): self.same(tensor, held[name])
                config = json.loads(pathlib.Path(saved, "config.json").read_text())
                self.assertIs(config["quantization_config"]["share_input"], True)


class Recognised(Case):
    """By what a small copy calls."""

    def groups(self, forward, **linears):
        class Module(torch.nn.Module): pass
        Module.forward, made = forward, Module()
        for name, n in {"q": 256, "k": 128, "v": 128, "o": 128, **linears}.items():
            setattr(made, name, torch.nn.Linear(128, n, False, dtype=BF16))
        made.size = 0
        model = ours.convert(torch.nn.Sequential(made), ignore=())
        x = torch.randn(2, 3, 128).to(BF16)
        self.same(model(x), apart(model)(x))
        self.assertEqual(made.size, 1)  # the small copy's numbers are its own
        found = {}
        for name, module in shared(made).items(): found.setdefault(id(module.shared), {})[module.place] = name
        return ["".join(group[place] for place in sorted(group)) for group in found.values()]

    def test_forwards(self):
        def heads(x): return x.view(2, 3, -1, 64).transpose(1, 2)

        def attend(self, q, k, v):
            self.size += 1
            y = torch.nn.functional.scaled_dot_product_attention(q[:, :2], k, v)
            return self.o(y.transpose(1, 2).reshape(2, 3, 128))

        def plain(self, x): return attend(self, heads(self.q(x)), heads(self.k(x)), heads(self.v(x)))

        def turned(self, x):
            v, k = heads(self.v(x)), heads(self.k(x))
            return attend(self, heads(self.q(x)), k, v)

        def flat(self, x):
            return attend(self, *(each(x).view(-1, 64).view(2, 3, -1, 64).transpose(1, 2)
                                  for each in (self.q, self.k, self.v)))

        def changed(self, x):
            x = x.clone()
            q = heads(self.q(x))
            x.mul_(2)
            return attend(self, q, heads(self.k(x)), heads(self.v(x)))

        def other(self, x):
            y = x + 1
            return attend(self, heads(self.q(x)), heads(self.k(y)), heads(self.v(y)))

        def twice(self, x): return attend(self, heads(self.q(x)), heads(self.k(x)) + heads(self.k(x)), heads(self.v(x)))

        def crossed(self, x, key_value_states=None):
            y = x if key_value_states is None else key_value_states
            return attend(self, heads(self.q(x)), heads(self.k(y)), heads(self.v(y)))

        def broken(self, x, **named):
            if x.device.type == "meta": raise RuntimeError("not on meta")
            return plain(self, x)
        for forward, wanted in ((plain, ["qkv"]), (turned, ["vkq"]), (flat, []), (changed, ["kv"]), (other, ["kv"]),
                                (twice, ["qv"]), (crossed, ["kv"]), (broken, [])):
            with self.subTest(forward.__name__):
                self.assertEqual(self.groups(forward), wanted)

    def test_random_numbers_are_left_alone(self):
        model = built("Qwen3")
        before = torch.get_rng_state()
        ours.convert(model)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
