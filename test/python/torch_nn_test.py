#!/usr/bin/env python3
"""torch_nn_test.py -- what the layers of dualgemm.nn compute, on the CPU and on a GPU if there is one, against a
decoder of the formats in fp64 (nvfp4_layers.py). Exits with 77 where there is no torch, or where its operators are not
built.

    torch_nn_test.py MODULE [unittest's arguments]
"""
import copy
import itertools
import json
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, sys.argv[1])
try:
    import torch
    import dualgemm as d
    from dualgemm import FLAG_BATCH_INVARIANT, SCALE_ROW, nn
    from nvfp4_layers import (BF16, DEVICES, E4M3, EXPERTS, FACTORS, FORMATS, FP16, FP32, HIDDEN, INNER, INPUT_SCALE,
                              STEMS, Case, FloatMlp, a_formats, decode_of_h, decoded_weight, dense, each_expert,
                              exact, fuse, in_one, mlp, module_of, named, oracle_of_experts, product, rename, silu,
                              stacked, weight)
except ImportError as error:
    print(f"torch_nn_test.py: skipped: {error}")
    sys.exit(77)

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "example/checkpoint/fixtures"


class LinearLayer(Case):
    def test_forward(self):
        for device, format, scale, dtype in itertools.product(DEVICES, FORMATS, (None, INPUT_SCALE), (BF16, FP16)):
            for a_format in a_formats(device):
                tensors = {**weight(40, 96, 0.02, format, scale), "bias": torch.randn(40).to(dtype)}
                module = module_of(nn.Linear, tensors, device, 96, 40, a_format=a_format, dtype=dtype,
                                   flags=FLAG_BATCH_INVARIANT)
                x = exact(2, 3, 96, dtype=dtype)
                with self.subTest(device, format=format, scale=scale, dtype=dtype, a_format=a_format):
                    y = module(x.to(device))
                    self.assertEqual((y.shape, y.dtype, y.device.type), ((2, 3, 40), dtype, device))
                    self.close(y, *product(x.double(), decoded_weight(tensors), tensors["bias"]))
                    self.assertEqual(module(x[:0].to(device)).shape, (0, 3, 40))
                    self.same(module(x[0, 1].to(device)), y[0, 1])

    def test_export(self):
        module = module_of(nn.Linear, {**weight(40, 96, 0.02), "bias": torch.randn(40).to(BF16)}, "cpu", 96, 40)
        x, y = torch.randn(2, 3, 96).to(BF16), torch.randn(5, 3, 96).to(BF16)
        shapes = ({0: torch.export.Dim("rows", min=2)},)
        exported = torch.export.export(module, (x,), dynamic_shapes=shapes, strict=True)
        for each in (x, y): self.same(exported.module()(each), module(each))

    def test_a_of_16_bits_is_not_quantised(self):
        x, tensors = torch.randn(5, 96).to(BF16), weight(40, 96, 0.02, input_scale=INPUT_SCALE)
        y = module_of(nn.Linear, tensors, "cpu", 96, 40, False)(x)
        self.close(y, *product(x.double(), decoded_weight(tensors)))
        quantised = module_of(nn.Linear, tensors, "cpu", 96, 40, False, a_format="nvfp4")(x)
        self.assertFalse(torch.equal(y, quantised))

    def test_activations(self):
        x, tensors = torch.randn(5, 96).to(BF16), weight(40, 96, 0.02)
        value, off = product(x.double(), decoded_weight(tensors))
        F = torch.nn.functional
        for name, function in ((None, lambda v: v), ("silu", F.silu), ("gelu", F.gelu), ("relu", F.relu),
                               ("gelu_pytorch_tanh", lambda v: F.gelu(v, approximate="tanh")),
                               ("relu2", lambda v: F.relu(v).square())):
            y = module_of(nn.Linear, tensors, "cpu", 96, 40, False, activation=name)(x)
            slope = 2 * value.abs() + 1 if name == "relu2" else 1.2
            with self.subTest(name): self.close(y, function(value), off * slope + function(value).abs() * 2.0**-20)
        with self.assertRaisesRegex(ValueError, "activation='mish': must be one of None, "):
            nn.Linear(96, 40, activation="mish")

    def test_checkpoints_as_packages_wrote_them(self):
        seen = 0
        for path in sorted(FIXTURES.glob("*_*.safetensors")):
            for stem, tensors in linears(path):
                elements = tensors[next(name for name in ("weight_packed", "weight") if name in tensors)]
                n, k = elements.shape[0], elements.shape[1] * 2
                x = torch.randn(3, k).to(BF16)
                with self.subTest(path.name, stem=stem):
                    module = nn.Linear(k, n, bias=False, device="meta")
                    module.load_state_dict(tensors, assign=True)
                    self.close(module(x), *product(x.double(), decoded_weight(tensors)))
                    self.same_tensors(module.state_dict(), tensors)
                seen += 1
        self.assertGreaterEqual(seen, 12)

    def test_refusals(self):
        for text, arguments, options in (("in_features=48: must be a positive multiple of 32", (48, 40), {}),
                                         ("out_features=12: must be a positive multiple of 8", (64, 12), {}),
                                         ("format='awq': must be one of 'modelopt', ", (64, 40), dict(format="awq")),
                                         ("a_format='int8': must be one of 'auto'", (64, 40), dict(a_format="int8")),
                                         ("flags=64: must be 0, or a sum of FLAG_PDL, ", (64, 40), dict(flags=64)),
                                         ("flags='fast': must be 0, or a sum", (64, 40), dict(flags="fast")),
                                         ("tp_rank=2: must be 0 to tp_size - 1 = 1", (64, 40),
                                          dict(parallel="row", tp_rank=2, tp_size=2)),
                                         ("tp_size=2: needs a parallel", (64, 40), dict(tp_size=2)),
                                         ("in_features=96: tensor parallelism by tp_size=2 needs a multiple of 2 x 32",
                                          (96, 40), dict(parallel="row", tp_size=2))):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text): nn.Linear(*arguments, **options)
        module = module_of(nn.Linear, weight(40, 64, 0.02), "cpu", 64, 40, False)
        for text, x in (("x: its elements are torch.float32, and must be torch.bfloat16 or", torch.zeros(3, 64)),
                        ("x: has 32 elements in its last dimension, and must have 64", torch.zeros(3, 32)),
                        ("x: has no dimensions, and must have 64 elements", torch.zeros(()))):
            with self.assertRaisesRegex((TypeError, ValueError), text): module(x)

    def test_a_bias_of_any_type(self):
        tensors = {**weight(40, 64, 0.02), "bias": torch.randn(40).to(BF16)}
        module, x = module_of(nn.Linear, tensors, "cpu", 64, 40, dtype=BF16), torch.randn(3, 64).to(BF16)
        wanted = module(x)
        for dtype in (torch.float64, FP32, BF16): self.same(module.to(dtype)(x), wanted)


def linears(path):
    """Every dense weight of a file in safetensors' format: eight bytes of length, a header in JSON, the bytes."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    types = {"U8": torch.uint8, "F8_E4M3": E4M3, "F32": FP32}
    held = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__" or entry["dtype"] not in types: continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensor = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.uint8).view(types[entry["dtype"]])
        stem, _, leaf = name.rpartition(".")
        held.setdefault(stem, {})[leaf] = tensor.reshape(entry["shape"])
    for stem, tensors in held.items():
        if any(len(t.shape) == 2 for t in tensors.values()) and "comfy" not in path.name: yield stem, tensors


class Gated(Case):
    def test_forward(self):
        for device, format, scale, dtype in itertools.product(DEVICES, FORMATS, (None, INPUT_SCALE), (BF16, FP16)):
            tensors, x = dense(format, scale), exact(2, 5, HIDDEN, dtype=dtype) / 8
            w = [decoded_weight(tensors, stem) for stem in STEMS]
            for a_format in a_formats(device):
                with self.subTest(device, format=format, scale=scale, dtype=dtype, a_format=a_format):
                    module = module_of(nn.GatedMLP, tensors, device, HIDDEN, INNER, a_format=a_format)
                    y = module(x.to(device))
                    self.assertEqual((y.shape, y.dtype), (x.shape, dtype))
                    decode = decode_of_h(tensors) if module.gate_proj.quantises else None
                    self.close(y, *mlp(x.double(), *w, dtype, decode=decode))
                    self.assertEqual(module(x[:0].to(device)).shape, (0, 5, HIDDEN))
            self.assertAlmostEqual(module.scale_ratio, 3, places=5)

    def test_quantised_is_what_the_page_on_checkpoints_says(self):
        """Bit for bit: gate and up have other input scales, of which the larger one is for both."""
        ops = torch.ops.dualgemm
        x, tensors = torch.randn(5, HIDDEN).to(BF16), dense("modelopt", INPUT_SCALE)
        tensors["up_proj.input_scale"] *= 4
        tensors["down_proj.input_scale"] *= 2
        module = module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER, a_format="nvfp4", flags=FLAG_BATCH_INVARIANT)
        gate, up, down = ((tensors[stem + "weight"], ops.sf_swizzle(tensors[stem + "weight_scale"]),
                           float(tensors[stem + "weight_scale_2"])) for stem in STEMS)
        a, sfa, _ = ops.quantize(x, 1 / (4 * INPUT_SCALE))
        h, sfh = ops.swiglu_nvfp4(a, gate[0], up[0], sfa, gate[1], up[1], gate[2] * 4 * INPUT_SCALE,
                                  up[2] * 4 * INPUT_SCALE, c_global_scale=1 / (2 * INPUT_SCALE))
        self.same(module(x), ops.linear(h, down[0], sfh, down[1], down[2] * 2 * INPUT_SCALE))
        for name in [name for name in tensors if "input_scale" in name]: del tensors[name]
        module.load_state_dict(tensors)
        a, sfa, rows = ops.quantize(x, scale_mode=SCALE_ROW)
        h = ops.swiglu(a, gate[0], up[0], sfa, gate[1], up[1], gate[2], up[2], a_row_scale=rows)
        a, sfa, rows = ops.quantize(h, scale_mode=SCALE_ROW)
        self.same(module(x), ops.linear(a, down[0], sfa, down[1], down[2], a_row_scale=rows))

    def test_activations_and_biases(self):
        F = torch.nn.functional
        tensors, x = dense(), torch.randn(5, HIDDEN).to(BF16)
        w = [decoded_weight(tensors, stem) for stem in STEMS]
        for name, act in (("silu", silu), ("gelu", F.gelu), ("relu", F.relu), ("sigmoid", torch.sigmoid),
                          ("gelu_pytorch_tanh", lambda v: F.gelu(v, approximate="tanh"))):
            with self.subTest(name):
                y = module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER, activation=name)(x)
                self.close(y, *mlp(x.double(), *w, BF16, act=act))
        for name, number in (("gelu", d.ACTIVATION_GEGLU_ERF), ("gelu_new", d.ACTIVATION_GEGLU_TANH),  # nearly equal
                             ("situ", d.ACTIVATION_SITU), ("swiglu_step", d.ACTIVATION_SWIGLU_STEP)):
            self.assertEqual(nn.GatedMLP(HIDDEN, INNER, name).activation, number)
        for name, number in (("gelu", d.LINEAR_ACTIVATION_GELU_ERF), ("gelu_new", d.LINEAR_ACTIVATION_GELU_TANH)):
            self.assertEqual(nn.Linear(HIDDEN, INNER, activation=name).activation, number)
        for dtype in (BF16, FP16, FP32):
            biases = [torch.randn(n).to(dtype) for n in (INNER, INNER, HIDDEN)]
            more = {f"{stem}_proj.bias": b for stem, b in zip(("gate", "up", "down"), biases)}
            module = module_of(nn.GatedMLP, {**tensors, **more}, "cpu", HIDDEN, INNER, bias=True, dtype=dtype)
            self.close(module(x), *mlp(x.double(), *w, BF16, biases))
            self.same_tensors(module.state_dict(), {**tensors, **more})
        y = module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER, swiglu_alpha=1.702)(x)
        self.close(y, *mlp(x.double(), *w, BF16, act=lambda v: v * torch.sigmoid(1.702 * v)))
        with self.assertRaisesRegex(ValueError, "activation='relu2': must be one of 'silu'"):
            nn.GatedMLP(HIDDEN, INNER, "relu2")
        with self.assertRaisesRegex(TypeError, "swiglu_gamma: is no argument"):
            nn.GatedMLP(HIDDEN, INNER, swiglu_gamma=1)
        with self.assertRaisesRegex(ValueError, "rows='up first': must be one of 'stacked', 'interleaved'"):
            nn.GatedMLP(HIDDEN, INNER, rows="up first")

    def test_words_of_checkpoints(self):
        for format, assign in itertools.product(FORMATS, (False, True)):
            tensors, x = dense(format, INPUT_SCALE), torch.randn(5, HIDDEN).to(BF16)
            wanted = module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER)(x)
            for words, rows in ((("w1", "w3", "w2"), "stacked"), (("gate_up_proj", "down_proj"), "stacked"),
                                (("w13", "w2"), "interleaved")):
                spelled = fuse(tensors, words, rows) if len(words) == 2 else rename(tensors, words)
                holder = torch.nn.ModuleDict({"mlp": nn.GatedMLP(HIDDEN, INNER, device="meta" if assign else None,
                                                                 rows=rows)})
                with self.subTest(format, words=words, assign=assign):
                    holder.load_state_dict(named("mlp.", spelled), assign=assign)
                    self.same(holder["mlp"](x), wanted)
                    self.same_tensors(holder.state_dict(), named("mlp.", spelled))

    def test_one_scale_of_a_fused_tensor_is_for_both(self):
        tensors, x = dense(scales=(0.02, 0.02, 0.01)), torch.randn(5, HIDDEN).to(BF16)
        fused = fuse(tensors, ("gate_up_proj", "down_proj"))
        fused["gate_up_proj.weight_scale_2"] = torch.tensor(0.02)
        module = module_of(nn.GatedMLP, fused, "cpu", HIDDEN, INNER)
        self.same(module(x), module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER)(x))
        self.same_tensors(module.state_dict(), fused)
        self.assertEqual(module.scale_ratio, 1)


class Experts(Case):
    def test_forward(self):
        for device, format, scale in itertools.product(DEVICES, FORMATS, (None, INPUT_SCALE)):
            tensors, x = stacked(format, scale), exact(7, HIDDEN) / 8
            for name in [name for name in tensors if "input" in name]:  # they differ, and A is exact in each
                scales = torch.tensor([1, 2, 1, 0.5]) * INPUT_SCALE * (4 if "down" in name else 1)
                tensors[name] = (scales if format == "modelopt" else 1 / scales).reshape(tensors[name].shape)
            ids = torch.randint(-1, EXPERTS, (7, 2))
            ids[ids == 2] = 1  # nobody chooses it
            weights = torch.rand(7, 2)
            for a_format in a_formats(device):
                with self.subTest(device, format=format, scale=scale, a_format=a_format):
                    module = module_of(nn.MoE, tensors, device, HIDDEN, INNER, EXPERTS, 2, a_format=a_format)
                    y = module.apply_experts(x.to(device), ids.to(device), weights.to(device))
                    quantised = module.gate_proj.quantises
                    self.close(y, *oracle_of_experts(x, ids, weights, tensors, BF16, quantised))
                    none = module(x[:0].to(device), torch.zeros(0, EXPERTS, device=device))
                    self.assertEqual(none.shape, (0, HIDDEN))

    def test_refusals(self):
        """What belongs to other rows or experts is refused, and not read in another shape."""
        module, x = module_of(nn.MoE, stacked("modelopt"), "cpu", HIDDEN, INNER, EXPERTS, 2), torch.zeros(2, 3, HIDDEN)
        ids, shares = torch.zeros(2, 3, 2, dtype=torch.int32), torch.ones(2, 3, 2)
        for text, function, args in (
                (r"^router_logits: is \[2, 3, 5\], and must be \[2, 3, 4\]", module, (x.new_zeros(2, 3, 5),)),
                (r"^router_logits: is \[5, 4\], and must be \[2, 3, 4\]", module, (x.new_zeros(5, 4),)),
                (r"^topk_ids: is \[3, 2, 2\], and must be \[2, 3, top_k\]", module.apply_experts,
                 (ids.transpose(0, 1), shares)),
                (r"^topk_ids: is \[\], and must be", module.apply_experts, (ids[0, 0, 0], shares)),
                (r"^topk_weights: is \[2, 3, 1\], and must be \[2, 3, 2\]", module.apply_experts,
                 (ids, shares[..., :1])),
                (r"^topk_weights: is \[3, 2, 2\], and must be \[2, 3, 2\]", module.apply_experts,
                 (ids, shares.transpose(0, 1))),
                ("^topk_ids: its elements are torch.float32, and must be", module.apply_experts, (shares, shares)),
                ("^topk_ids: its elements are torch.bool, and must be", module.apply_experts, (ids.bool(), shares)),
                ("^topk_ids: names no experts", module.apply_experts, (ids[..., :0], shares[..., :0]))):
            with self.subTest(text), self.assertRaisesRegex((TypeError, ValueError), text): function(x.to(BF16), *args)
        x, logits = torch.randn(2, 3, HIDDEN).to(BF16), torch.randn(2, 3, EXPERTS)
        self.same(module(x, logits.flatten(0, 1)), module(x, logits))  # a matrix of all rows
        self.same(module.apply_experts(x, ids.flatten(0, 1), shares.flatten(0, 1)),
                  module.apply_experts(x, ids, shares))
        for text, args in (("^top_k=0: must be 1 to experts = 4", (EXPERTS, 0)), ("^top_k=5", (EXPERTS, 5)),
                           ("^experts=1025: must be 1 to 1024", (1025, 1))):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                nn.MoE(HIDDEN, INNER, *args, device="meta")

    def test_ids_of_no_expert(self):
        """They add nothing, also those of which the low 32 bits are an expert's."""
        for device in DEVICES:
            module, x = module_of(nn.MoE, stacked("modelopt"), device, HIDDEN, INNER, EXPERTS, 2), exact(3, HIDDEN)
            ids = torch.tensor([[0, 2**32], [-2**32 + 1, 2], [2**62 + 3, EXPERTS]], device=device)
            weights, inside = torch.ones(3, 2, device=device), (ids >= 0) & (ids < EXPERTS)
            wanted = module.apply_experts(x.to(device), ids.clamp(0, EXPERTS - 1), weights * inside)
            self.same(module.apply_experts(x.to(device), ids, weights), wanted)
            self.assertEqual([bool(row.any()) for row in wanted], [True, True, False])
            torch._dynamo.reset()
            compiled = torch.compile(module.apply_experts, backend="aot_eager", fullgraph=True)
            self.same(compiled(x.to(device), ids, weights), wanted)

    def test_rows_are_weighted_in_their_sum(self):
        """No launch has factors of C's rows, which take slower instances: a sum's bits are those of rounded rows."""
        from torch.utils._python_dispatch import TorchDispatchMode
        seen = {}

        class Calls(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                result = function(*args, **(kwargs or {}))
                if function.namespace == "dualgemm": seen[function._opname] = args, kwargs or {}, result
                return result
        for device, a_format in itertools.product(DEVICES, ("auto", "nvfp4")):
            module = module_of(nn.MoE, stacked("modelopt"), device, HIDDEN, INNER, EXPERTS, 2, a_format=a_format)
            x, weights = torch.randn(7, HIDDEN, device=device).to(BF16), torch.rand(7, 2, device=device)
            ids = torch.randint(EXPERTS, (7, 2), device=device)
            with Calls(): y = module.apply_experts(x, ids, weights)
            for name in ("swiglu", "swiglu_nvfp4", "linear"):
                if name in seen: self.assertIsNone(seen[name][1].get("c_row_scale"))
            (rows, token_row, *_), _, _ = seen["moe_combine"]
            self.same(rows, seen["linear"][2])
            chosen = rows.double()[token_row.long()]  # whose products with a weight are exact
            first = (chosen[:, 0] * weights[:, :1].double()).float()
            self.same(y, (chosen[:, 1] * weights[:, 1:].double() + first.double()).float().to(BF16))

    def test_the_router(self):
        tensors, x, logits = stacked("modelopt"), torch.randn(2, 3, HIDDEN).to(BF16), torch.randn(2, 3, EXPERTS)
        shares = torch.exp(logits.double()) / torch.exp(logits.double()).sum(-1, keepdim=True)
        order = shares.argsort(-1, descending=True)[..., :2].reshape(6, 2)
        chosen = shares.reshape(6, EXPERTS).gather(1, order)
        for renormalize in (True, False):
            module = module_of(nn.MoE, tensors, "cpu", HIDDEN, INNER, EXPERTS, 2, renormalize=renormalize)
            weights = chosen / chosen.sum(1, keepdim=True) if renormalize else chosen
            self.close(module(x, logits).reshape(6, -1),
                       *oracle_of_experts(x.reshape(6, -1), order, weights, tensors, BF16))
        with self.assertRaisesRegex(ValueError, "top_k=5: must be 1 to experts = 4"): nn.MoE(HIDDEN, INNER, 4, 5)

    def test_words_of_checkpoints(self):
        x, logits = torch.randn(5, HIDDEN).to(BF16), torch.randn(5, EXPERTS)
        for format, assign in itertools.product(FORMATS, (False, True)):
            tensors = stacked(format, INPUT_SCALE)
            wanted = module_of(nn.MoE, tensors, "cpu", HIDDEN, INNER, EXPERTS, 2)(x, logits)
            spelled = {"stacked": tensors, "each": each_expert(tensors), "each, without a word": each_expert(
                tensors, ("gate_proj", "up_proj", "down_proj"), "")}
            if format == "modelopt":
                spelled.update({"w13": in_one(tensors), "w13 behind experts": in_one(tensors, before="experts."),
                                "a parameter": in_one(tensors, ("gate_up_proj", "down_proj"), "experts.", True)})
                biases = {"gate_proj.bias": torch.randn(EXPERTS, INNER), "up_proj.bias": torch.randn(EXPERTS, INNER),
                          "down_proj.bias": torch.randn(EXPERTS, HIDDEN)}
                turn = in_one({**tensors, **biases}, ("gate_up_proj", "down_proj"), "experts.", True, "interleaved")
                module = nn.MoE(HIDDEN, INNER, EXPERTS, 2, bias=True, device="meta" if assign else None,
                                rows="interleaved")
                module.load_state_dict(turn, assign=assign)
                self.same_tensors(module.state_dict(), turn)
                plain = module_of(nn.MoE, {**tensors, **biases}, "cpu", HIDDEN, INNER, EXPERTS, 2, bias=True)
                self.same(module(x, logits), plain(x, logits))
            for name, one in spelled.items():
                with self.subTest(format, name=name, assign=assign):
                    module = nn.MoE(HIDDEN, INNER, EXPERTS, 2, device="meta" if assign else None)
                    module.load_state_dict(one, assign=assign)
                    self.same(module(x, logits), wanted)
                    self.same_tensors(module.state_dict(), one)

    def test_a_scale_of_too_few_experts_is_named(self):
        """Also where a loader has set it by its name, and asks for a check afterwards."""
        for name in ("gate_proj.input_scale", "up_proj.weight_scale_2"):
            tensors = stacked("modelopt", INPUT_SCALE)
            tensors[name] = tensors[name][:3]
            module = nn.MoE(HIDDEN, INNER, EXPERTS, 2)
            for key, tensor in tensors.items():
                setattr(module.get_submodule(key.split(".")[0]), key.split(".")[1], tensor)
            for load in (lambda: module.load_state_dict(module.state_dict(), assign=True),
                         lambda: module_of(nn.MoE, tensors, "cpu", HIDDEN, INNER, EXPERTS, 2)):
                with self.assertRaisesRegex(RuntimeError, rf"{name}: is torch.float32 \[3\], and must be 4 numbers"):
                    load()

    def test_fused_weights_are_not_copied(self):
        spelled = in_one(stacked("modelopt"))
        module = nn.MoE(HIDDEN, INNER, EXPERTS, 2, device="meta")
        module.load_state_dict(spelled, assign=True)
        self.assertEqual(module.gate_proj.weight.data_ptr(), spelled["w13_weight"].data_ptr())
        self.assertEqual(module.up_proj.weight.data_ptr(), spelled["w13_weight"][:, INNER:].data_ptr())


class FromFloat(Case):
    def test_weights(self):
        for device, dtype, format in itertools.product(DEVICES, (BF16, FP16, FP32), FORMATS):
            w = torch.randn(48, 96).to(dtype)
            w[3] = 0
            tensors = nn.quantize_weight(w.to(device), format)
            names, largest = FORMATS[format], float(w.abs().max())
            scale = float(tensors[names[2]])
            self.assertAlmostEqual((scale if format == "modelopt" else 1 / scale) / (largest / 2688), 1, delta=2.0**-21)
            blocks = w.double().unflatten(-1, (-1, 16)).abs().amax(-1)
            step = blocks / (largest / 2688) / 6  # the exact factor; the stored one is the nearest of E4M3
            nearest = FACTORS[(FACTORS - step[..., None]).abs().argmin(-1)]
            stored = FACTORS[tensors[names[1]].view(torch.uint8).cpu().long()]
            self.assertTrue(bool(((stored - step).abs() <= (nearest - step).abs() * (1 + 1e-5) + 1e-6 * step).all()))
            off = (decoded_weight(tensors) - w.double()).abs().unflatten(-1, (-1, 16)).amax(-1)
            self.assertTrue(bool((off <= blocks / 6 * (1 + 1 / 16) + largest / 2688 * 2.0**-10).all()))
            self.assertEqual(float(decoded_weight(tensors)[3].abs().max()), 0)
        zero = nn.quantize_weight(torch.zeros(8, 32))
        self.assertEqual(float(decoded_weight(zero).abs().max()), 0)

    def test_modules(self):
        x = torch.randn(4, HIDDEN).to(BF16)
        linear = torch.nn.Linear(HIDDEN, 40, dtype=BF16)
        module = nn.Linear.from_float(linear)
        self.close(module(x), *product(x.double(), decoded_weight(module.state_dict()), linear.bias.detach()))
        for act, function in ((torch.nn.SiLU(), silu), (torch.nn.functional.silu, silu),
                              (torch.nn.GELU(), torch.nn.functional.gelu), (torch.nn.ReLU(), torch.relu)):
            source = FloatMlp(act, bias=True)
            module = nn.GatedMLP.from_float(source)
            held = module.state_dict()
            w = [decoded_weight(held, stem) for stem in STEMS]
            biases = [each.bias.detach() for each in (source.gate_proj, source.up_proj, source.down_proj)]
            self.close(module(x), *mlp(x.double(), *w, BF16, biases, function))
        with self.assertRaisesRegex(ValueError, "act_fn=Mish.*: is no activation that is known"):
            nn.GatedMLP.from_float(FloatMlp(torch.nn.Mish()))
        sources = [FloatMlp(torch.nn.SiLU()) for _ in range(EXPERTS)]
        logits = torch.randn(4, EXPERTS)
        module = nn.MoE.from_float(sources, 1)
        for t in range(4):
            one = nn.GatedMLP.from_float(sources[int(logits[t].argmax())])
            self.assertTrue(torch.allclose(module(x, logits)[t].float(), one(x)[t].float(), rtol=2.0**-6, atol=1e-5))
        self.assertEqual(nn.Linear.from_float(torch.nn.Linear(64, 40, device="meta")).device.type, "meta")

    def test_biases_of_some_linears_alone(self):
        x, logits = torch.randn(4, HIDDEN).to(BF16), torch.randn(4, 1)
        for has in itertools.product((False, True), repeat=3):
            source = FloatMlp(torch.nn.SiLU(), bias=True)
            linears = source.gate_proj, source.up_proj, source.down_proj
            for linear, each in zip(linears, has):
                if not each: linear.bias = None
            module = nn.GatedMLP.from_float(source)
            held = module.state_dict()
            biases = [linear.bias if linear.bias is None else linear.bias.detach() for linear in linears]
            wanted = mlp(x.double(), *(decoded_weight(held, stem) for stem in STEMS), BF16, biases)
            with self.subTest(has):
                self.close(module(x), *wanted)
                self.assertEqual([f"{stem}bias" in held for stem in STEMS], list(has))
                self.close(nn.MoE.from_float([source], 1)(x, logits), wanted[0], wanted[1] + wanted[0].abs() * 2.0**-7)
                on_meta = nn.GatedMLP.from_float(copy.deepcopy(source).to("meta"))
                on_meta.load_state_dict(held, assign=True)
                self.same(on_meta(x), module(x))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
