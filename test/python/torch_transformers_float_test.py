#!/usr/bin/env python3
"""torch_transformers_float_test.py -- float models of transformers whose weights are quantised while they are loaded,
or in place: which modules are replaced, and whole models with a static cache and under torch.compile, on the CPU and on
a GPU if there is one. Exits with 77 where there is no transformers, or where the operators are not built.

    torch_transformers_float_test.py MODULE [unittest's arguments]
"""
import importlib
import itertools
import json
import os
import pathlib
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
    from transformers import AutoModelForCausalLM
    import dualgemm as d
    import dualgemm.transformers as ours
    from transformers_models import (BF16, DEVICES, FOLDER, KINDS, MODELS, Case, checkpoint, kinds, logits, off,
                                     tiny, tokens)
except ImportError as error:
    print(f"torch_transformers_float_test.py: skipped: {error}")
    sys.exit(77)


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

    def test_options_are_refused_where_they_are_given(self):
        """Before a model is loaded, or one of its modules replaced."""
        model = tiny()
        stored = dict(quant_algo="NVFP4", quant_method="modelopt")
        place = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        (place / "config.json").write_text(json.dumps({"model_type": "qwen3", "quantization_config": stored}))
        for text, option in (("a_format='foo': must be one of 'auto', '16bit', 'nvfp4'", dict(a_format="foo")),
                             ("a_format=None: must be one of", dict(a_format=None)),
                             ("flags='fast': must be 0, or a sum of FLAG_PDL, ", dict(flags="fast")),
                             ("flags=1.0: must be", dict(flags=1.0)), ("flags=True: must be", dict(flags=True)),
                             ("flags=64: must be", dict(flags=64)), ("flags=-1: must be", dict(flags=-1)),
                             ("share_input='no': must be one of True, False", dict(share_input="no")),
                             ("ignore=5: must be a name, or a list of names", dict(ignore=5)),
                             (r"ignore=\['lm_head', 5\]: must be a name", dict(ignore=["lm_head", 5]))):
            with self.subTest(text):
                self.refused(text, ours.DualGemmConfig, **option)
                self.refused(text, ours.convert, model, **option)
                if "ignore" in option: continue  # a checkpoint has its own
                self.refused(text, ours.model_config, place, **option)
                if "share_input" not in option: self.refused(text, ours.rewrite, place, **option)
        self.assertEqual(kinds(model), {})
        self.assertEqual(json.loads((place / "config.json").read_text())["quantization_config"], stored)


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
                self.assertEqual(kinds(model), KINDS[kind])
                self.assertEqual(kinds(converted), KINDS[kind])
                self.same(logits(model), logits(converted))
                self.assertLess(off(logits(model), logits(AutoModelForCausalLM.from_pretrained(path))), 0.5)
                for each in (model, converted):
                    place = tempfile.mkdtemp(dir=FOLDER)
                    each.save_pretrained(place)
                    again = AutoModelForCausalLM.from_pretrained(place)
                    self.assertEqual(kinds(again), KINDS[kind])
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
                             ((), {"GatedMLP": 2, "Linear": 8 + 6 + 1}),
                             ("lm_head", {"GatedMLP": 2, "Linear": 8 + 6}), ("*proj", {"Linear": 1})):
            with self.subTest(ignore):
                self.assertEqual(kinds(ours.convert(tiny(), ignore=ignore)), left)
                listed = [ignore] if isinstance(ignore, str) else list(ignore)
                self.assertEqual(ours.DualGemmConfig(ignore=ignore).to_dict()["ignore"], listed)
        tied = ours.convert(tiny(tie_word_embeddings=True), ignore=())
        self.assertIs(tied.lm_head.weight, tied.model.embed_tokens.weight)
        self.assertEqual(kinds(ours.convert(tiny("Mixtral"), ignore=("lm_head", "experts"))), {"Linear": 8})

    def test_routers_of_models_stay(self):
        for kind, left in (("Qwen2Moe", "layers.1.mlp.shared_expert_gate"), ("HunYuanMoEV1", "layers.1.mlp.gate.wg"),
                           ("Afmoe", "layers.1.mlp.router.gate")):
            path = checkpoint("float", kind)
            own = AutoModelForCausalLM.from_pretrained(path)
            loaded = AutoModelForCausalLM.from_pretrained(path, quantization_config=ours.DualGemmConfig())
            for model in (loaded, ours.convert(AutoModelForCausalLM.from_pretrained(path))):
                floats = {name: module for name, module in model.named_modules() if type(module) is torch.nn.Linear}
                with self.subTest(kind):
                    self.assertEqual({name.partition(".mlp.")[2] for name in floats}, {"", left.partition(".mlp.")[2]})
                    self.assertIn(f"model.{left}", floats)
                    for name, module in floats.items(): self.same(module.weight, own.get_submodule(name).weight)
                    self.assertLess(off(logits(model), logits(own)), 0.5)

    def test_routers_by_name(self):
        """As models and older releases of transformers call them, and checkpoints' own code. Other gates go."""
        stay = ("block_sparse_moe.gate", "mlp.gate", "moe.gate.wg", "mlp.shared_expert_gate", "feed_forward.router",
                "block.router.layer", "ffn.router.classifier", "ffn.router_gate", "linear_attn.in_proj_a",
                "linear_attn.in_proj_ba", "lm_head")
        go = ("mlp.gate_proj", "mlp.gate_up_proj", "self_attn.gate_proj", "self_attn.output_gate", "self_attn.g_proj",
              "layer.per_layer_input_gate", "mlp.shared_expert.gate_proj", "ffn.gate_proj", "self_attn.in_proj",
              "linear_attn.in_proj_qkv")
        model = torch.nn.Module()
        for name in (*stay, *go):
            holder = model
            for part in name.split(".")[:-1]:
                if part not in holder._modules: holder.add_module(part, torch.nn.Module())
                holder = holder._modules[part]
            holder.add_module(name.split(".")[-1], torch.nn.Linear(64, 96, dtype=BF16))
        ours.convert(model)
        for name in stay: self.assertIs(type(model.get_submodule(name)), torch.nn.Linear, name)
        for name in go: self.assertIs(type(model.get_submodule(name)), d.nn.Linear, name)

    def test_refusals(self):
        model = ours.convert(tiny())
        self.refused("has a quantization_config, so its weights are quantised already", ours.convert, model)
        model = tiny()
        model.model.layers[0].mlp.up_proj.register_forward_hook(lambda *_: None)
        self.refused("layers.0.mlp: has a hook", ours.convert, model)
        model = tiny("Mixtral")
        model.model.layers[1].mlp.experts.act_fn = torch.nn.Mish()
        self.refused("layers.1.mlp.experts: experts of the class MixtralExperts are no gated MLPs", ours.convert, model)
        for kind, model in (("Linear", torch.nn.Linear(64, 64, dtype=BF16)),
                            ("MixtralExperts", tiny("Mixtral").model.layers[0].mlp.experts)):
            self.refused(f"^model: is a {kind} itself, which cannot be replaced in place", ours.convert, model)

    def test_what_is_refused_stays_as_it_is(self):
        """All of it, also where the last module is at fault."""
        def misshapen(model): model.model.layers[1].self_attn.q_proj = torch.nn.Linear(64, 60, False, dtype=BF16)

        def hooked(model): model.model.layers[1].mlp.register_forward_hook(lambda *_: None)

        def mixed(model): model.model.layers[1].mlp.float()

        def infinite(model): model.model.layers[1].mlp.experts.down_proj.data[3, 5, 1] = float("inf")
        for text, kind, change in (
                ("layers.1.self_attn.q_proj: out_features=60: must be a positive multiple of 8", "Qwen3", misshapen),
                ("layers.1.mlp: has a hook", "Qwen3", hooked),
                (r"q_proj: its weights are torch.float32, .*: call model.to\(torch.bfloat16\)", "Qwen3",
                 lambda model: model.float()),
                ("layers.1.mlp.experts: its weights are torch.float32", "Mixtral", mixed),
                ("layers.1.mlp.experts.down_proj: has an element that is NaN or infinite", "Mixtral", infinite),
                ("q_proj: its weights are torch.float64", "Qwen3", lambda model: model.double())):
            model = tiny(kind)
            change(model)
            before = dict(model.named_modules())
            with self.subTest(text):
                self.refused(text, ours.convert, model)
                self.assertEqual(dict(model.named_modules()), before)
                self.assertIsNone(getattr(model.config, "quantization_config", None))

    def test_weights_that_are_no_numbers_while_loading(self):
        model, path = tiny(), FOLDER / "nan"
        model.model.layers[1].self_attn.k_proj.weight.data[3, 5] = float("nan")
        model.save_pretrained(path)
        self.refused("issues during automatic conversion of the weights", AutoModelForCausalLM.from_pretrained, path,
                     quantization_config=ours.DualGemmConfig())


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
        return torch.nn.Sequential(made).to(BF16)

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
            self.assertEqual(got.shape, (2, 13))
            if model.device.type == "cpu": self.assertTrue(torch.equal(got, model.generate(ids, **options)))
            self.check_chosen(model, got, ids.shape[1])

    def check_chosen(self, model, ids, begin):
        """Each token from `begin` on has the largest logit behind those in front of it. Where attention is compiled it
        may round another way, so a logit may be as much smaller as two logits may be off (test_one_graph)."""
        before = logits(model, ids[:, :-1])[:, begin - 1:].double()
        chosen = before.gather(-1, ids[:, begin:, None].to(before.device))[..., 0]
        room = 2 * 0.01 * before.norm(dim=-1) / before.shape[-1]**0.5
        self.assertTrue(bool((before.max(-1).values - chosen <= room).all()))
        self.assertTrue(bool((before.max(-1).values - before.median(-1).values > 10 * room).all()))  # which says much

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
