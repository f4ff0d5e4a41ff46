#!/usr/bin/env python3
"""torch_nn_mxfp4_test.py -- layers of dualgemm.nn with weights in MXFP4, on the CPU and on a GPU if there is one,
against a decoder of the format in fp64. Exits with 77 where there is no torch, or where its operators are not built.

    torch_nn_mxfp4_test.py MODULE [unittest's arguments]
"""
import copy
import io
import itertools
import sys
import unittest
from unittest import mock

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from dualgemm import nn
    from dualgemm.nn._weights import Weights
    from nvfp4_layers import (BF16, BY_ROW, CODES, DEVICES, E4M3, EXPERTS, FP16, FP64, HALF_ULP, HIDDEN, HOPPER, INNER,
                              STEMS, Case, mlp, module_of, oracle_of_experts, product, silu, weight)
except ImportError as error:
    print(f"torch_nn_mxfp4_test.py: skipped: {error}")
    sys.exit(77)

E8M0 = torch.float8_e8m0fnu
NAMES = {"deepseek": ("weight", "scale"), "gpt-oss": ("blocks", "scales")}
A_FORMATS = ("fp8", "16bit", "nvfp4") if HOPPER else ("fp8", "nvfp4")


def bytes_of(n, k, low=116, high=123, lead=()):
    return torch.randint(low, high, (*lead, n, k // 32), dtype=torch.uint8)


def mxfp4(n, k, format="deepseek", lead=(), **spread):
    """A weight as a checkpoint of this format has it."""
    elements = torch.randint(256, (*lead, n, k // 2), dtype=torch.uint8)
    factors = bytes_of(n, k, lead=lead, **spread)
    if format == "gpt-oss": return {"blocks": elements.unflatten(-1, (-1, 16)), "scales": factors}
    return {"weight": elements.view(torch.int8), "scale": factors.view(E8M0)}


def decoded_weight(tensors, stem=""):
    """In fp64: element * 2^(byte - 127)."""
    elements, factors = next((tensors[stem + a], tensors[stem + b]) for a, b in NAMES.values() if stem + b in tensors)
    elements, factors = elements.view(torch.uint8).long(), factors.view(torch.uint8).double()
    if elements.dim() > factors.dim(): elements = elements.flatten(-2)
    codes = torch.stack((elements & 15, elements >> 4), -1).flatten(-2)
    return CODES[codes] * 2.0**(factors - 127).repeat_interleave(32, -1)


def exact(*shape, dtype=BF16):
    """Activations of which each row is exact in FP8, by a scale of a power of two: its largest element is 448."""
    codes = torch.randint(0x28, 0x60, shape, dtype=torch.uint8) | torch.randint(2, shape, dtype=torch.uint8) << 7
    codes[..., 0] = 0x7E
    return codes.view(E4M3).to(dtype) * 2.0**-8


def in_fp8(h, off, decode):
    """h [..., k], which may be off by so much, in FP8, and a bound. Elements are rounded to nearest, so what h becomes
    lies between what its ends become."""
    of_decode = 0.0  # how far it may be off
    if decode is BY_ROW:
        place = h.abs().argmax(-1, keepdim=True)
        largest = h.abs().gather(-1, place)
        decode, of_decode = largest / 448, off.gather(-1, place) / largest
    off = off + h.abs() * (of_decode + 2.0**-22)
    low, middle, high = ((each / decode).clamp(-448, 448).to(E4M3).double() * decode for each in (h - off, h, h + off))
    return middle, torch.maximum(high - middle, middle - low) * (1 + of_decode) + middle.abs() * of_decode


def product_of_fp8(x, w, bias=None):
    """product(), with the bound of a Hopper GPU: it adds up 32 products of FP8 and what there was before, and of each
    keeps 13 places behind the point of the largest."""
    y, off = product(x, w, bias)
    parts = (x.unsqueeze(-2) * w).unflatten(-1, (-1, 32))
    largest = torch.maximum(parts.abs().amax((-2, -1)), parts.sum(-1).cumsum(-1).abs().amax(-1))
    return y, off + largest * x.shape[-1] / 32 * 33 * 2.0**-13


PRODUCTS = {"cpu": product, "cuda": product_of_fp8}
TIMES = {"cpu": 3, "cuda": 1}  # how much larger than its bound a result is where large numbers meet a limit


def in_launches(module, device):
    """What mlp() is told of this module's launches."""
    if not (module.gate_proj if hasattr(module, "gate_proj") else module).fp8: return {}
    return dict(decode=BY_ROW, quantise=in_fp8, product=PRODUCTS[device])


def dense(format="deepseek", lead=(), **spread):
    """Gate, up and down under STEMS."""
    return {stem + name: tensor for stem, (n, k) in zip(STEMS, ((INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)))
            for name, tensor in mxfp4(n, k, format, lead, **spread).items()}


def with_biases(tensors, lead=()):
    return {**tensors, **{stem + "bias": torch.randn(*lead, n).to(BF16)
                          for stem, n in zip(STEMS, (INNER, INNER, HIDDEN))}}


def as_gpt_oss(tensors, before=""):
    """gate_up_proj_blocks [..., 2 n, k/32, 16] with gate's rows and up's in turn, gate_up_proj_bias, ..."""
    found = {}
    for name, tensor in tensors.items():
        stem, leaf = name.split(".")
        if stem == "down_proj": found[f"{before}down_proj_{leaf}"] = tensor
        if stem != "gate_proj": continue
        rows = tensor.dim() - {"blocks": 3, "scales": 2, "bias": 1}[leaf]
        both = torch.stack((tensor, tensors[f"up_proj.{leaf}"]), rows + 1).flatten(rows, rows + 1)
        found[f"{before}gate_up_proj_{leaf}"] = both
    return found


def as_deepseek(tensors):
    words = dict(zip(("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")))
    split = {name: name.split(".") for name in tensors}
    return {f"experts.{e}.{words[stem]}.{leaf}": tensors[name][e].clone()
            for e in range(EXPERTS) for name, (stem, leaf) in split.items()}


class Linears(Case):
    def test_forward(self):
        for device, format, dtype, a_format in itertools.product(DEVICES, NAMES, (BF16, FP16), ("fp8", "16bit")):
            if a_format == "16bit" and not HOPPER: continue
            tensors, x = {**mxfp4(40, 96, format), "bias": torch.randn(40).to(dtype)}, exact(2, 3, 96, dtype=dtype)
            with self.subTest(device, format=format, dtype=dtype, a_format=a_format):
                module = module_of(nn.Linear, tensors, device, 96, 40, a_format=a_format, dtype=dtype)
                y = module(x.to(device))
                self.assertEqual((y.shape, y.dtype, module.format), ((2, 3, 40), dtype, format))
                sums = PRODUCTS[device] if module.fp8 else product
                self.close(y, *sums(x.double(), decoded_weight(tensors), tensors["bias"]))
                self.same_tensors(module.state_dict(), tensors)
                self.assertEqual(module(x[:0].to(device)).shape, (0, 3, 40))

    def test_rows_are_rounded_to_e4m3(self):
        """By at most 2^-4 of a normal number, which is half a step of its 4 places, and 2^-10 of the scale below 2^-6.
        An x of 16 bits is further off than a launch of 16 bits."""
        x, tensors = torch.randn(16, 96).to(BF16), mxfp4(40, 96)
        w = decoded_weight(tensors)
        wanted, off = product(x.double(), w)
        scale = x.double().abs().amax(-1, keepdim=True) / 448
        off = off + (x.double().abs() * 2.0**-4 + scale * 2.0**-10) @ w.abs().T
        y = module_of(nn.Linear, tensors, "cpu", 96, 40, False, a_format="fp8")(x).double()
        self.assertLessEqual(float(((y - wanted).abs() - off - (wanted.abs() + off) * HALF_ULP[BF16]).max()), 0)
        self.assertTrue(bool((wanted.abs() > off).any()))
        self.assertLess(float((y - wanted).norm()), 0.04 * float(wanted.norm()))
        sixteen = module_of(nn.Linear, tensors, "cpu", 96, 40, False, a_format="16bit")(x).double()
        self.assertLess(4 * float((sixteen - wanted).norm()), float((y - wanted).norm()))

    def test_a_scale_that_is_given(self):
        for device in DEVICES:
            tensors, x = {**mxfp4(40, 96), "input_scale": torch.tensor(2.0**-8)}, exact(5, 96)
            module = module_of(nn.Linear, tensors, device, 96, 40, False, a_format="fp8")
            self.close(module(x.to(device)), *PRODUCTS[device](x.double(), decoded_weight(tensors)))
            self.same_tensors(module.state_dict(), tensors)
            x = x * 2  # what is above 448 saturates
            saturated = (x.double() * 2**8).clamp(-448, 448) * 2.0**-8
            self.close(module(x.to(device)), *PRODUCTS[device](saturated, decoded_weight(tensors)))

    def test_any_factors_come_back(self):
        """Those of blocks of zeros, NaN, and those that lie further below the largest of their row than a launch goes.
        The weights that are left are what they were."""
        tensors = mxfp4(40, 96, low=0, high=256)
        elements, factors = (tensors[name].view(torch.uint8) for name in ("weight", "scale"))
        elements[:4] = 0x88
        elements[::3, :16] = 0
        factors[1, 1], factors[7, 2] = 0xFF, 0xFF
        for assign in False, True:
            module = nn.Linear(96, 40, False, device="meta" if assign else None, a_format="fp8")
            module.load_state_dict(tensors, assign=assign)
            file = io.BytesIO()
            torch.save(module, file)
            file.seek(0)
            for each in (module, copy.deepcopy(module), module.half(), torch.load(file, weights_only=False)):
                self.same_tensors(each.state_dict(), tensors)
            again = nn.Linear(96, 40, False, a_format="fp8")
            again.load_state_dict(module.state_dict())
            self.same_tensors(again.state_dict(), tensors)
            fresh = mxfp4(40, 96)
            module.load_state_dict(fresh, assign=assign)
            self.same_tensors(module.state_dict(), fresh)
        self.assertTrue(bool(again(torch.ones(1, 96, dtype=BF16))[0, 7].isnan()))

    def test_the_import_takes_all_that_nvfp4_holds(self):
        """Factors up to 2^17 apart, at both ends of E8M0, for any A but FP8. Blocks of zeros count for nothing."""
        for low in (0, 100, 237):
            tensors = mxfp4(40, 96, low=low, high=low + 18)
            factors = tensors["scale"].view(torch.uint8)
            factors[0, :2] = torch.tensor([low, low + 17])
            factors[1:3], tensors["weight"][1:3] = torch.tensor([[0], [0xFF]]), 0
            module = module_of(nn.Linear, tensors, "cpu", 96, 40, False)
            made, decode = module.operands().atoms, module.operands().decode.double()
            rows = torch.ops.dualgemm.sf_unswizzle(made, 40, 96).view(E4M3).double()
            codes = tensors["weight"].view(torch.uint8).long()
            values = CODES[torch.stack((codes & 15, codes >> 4), -1).flatten(-2)] * rows.repeat_interleave(16, -1)
            factors[2] = 0  # of NaN and zero it would be NaN
            wanted = decoded_weight(tensors)
            factors[2] = 0xFF
            self.assertTrue(torch.equal(values * decode, wanted))
            self.same_tensors(module.state_dict(), tensors)
        wide = mxfp4(40, 96, low=100, high=101)
        wide["weight"][:] = 0x11
        for text, byte in (("factors 2.18 apart, and NVFP4 holds 2.17: .* a_format='fp8'", 118),
                           ("a factor that is NaN", 0xFF)):
            wide["scale"].view(torch.uint8)[0, 1] = byte
            with self.assertRaisesRegex(RuntimeError, "scale: has " + text):
                module_of(nn.Linear, wide, "cpu", 96, 40, False)
            module_of(nn.Linear, wide, "cpu", 96, 40, False, a_format="fp8")

    def test_refusals(self):
        text = "a_format='fp8': needs weights in MXFP4 .'gpt-oss' or 'deepseek'., and these are 'modelopt'"
        with self.assertRaisesRegex(RuntimeError, text):
            module_of(nn.Linear, weight(40, 96, 0.02), "cpu", 96, 40, False, a_format="fp8")
        module = nn.Linear(96, 40, False, a_format="fp8")
        with self.assertRaisesRegex(ValueError, text): module(exact(1, 96))
        with self.assertRaisesRegex(RuntimeError, text):
            nn.Linear.from_float(torch.nn.Linear(96, 40), a_format="fp8")
        with self.assertRaisesRegex(ValueError, "format='deepseek': must be one of 'modelopt', 'compressed-tensors'"):
            nn.Linear.from_float(torch.nn.Linear(96, 40), format="deepseek")
        for text, name, tensor in ((r"scale: is \[40, 6\], and must be \[40, 3\]", "scale", bytes_of(40, 192)),
                                   ("scale: is torch.float8_e4m3fn, and must be torch.float8_e8m0fnu or torch.uint8",
                                    "scale", bytes_of(40, 96).view(E4M3)),
                                   (r"weight: is \[40, 3, 8\], and must be \[40, 48\]", "weight",
                                    torch.zeros(40, 3, 8, dtype=torch.uint8))):
            with self.subTest(text), self.assertRaisesRegex(RuntimeError, text):
                module_of(nn.Linear, {**mxfp4(40, 96), name: tensor}, "cpu", 96, 40, False)

    def test_linears_of_one_input_share_a_launch(self):
        for device in DEVICES:
            tensors = [{**mxfp4(n, 96), "bias": torch.randn(n).to(BF16)} for n in (256, 128, 40)]
            modules = [module_of(nn.Linear, each, device, 96, len(each["bias"]), a_format="fp8", dtype=BF16)
                       for each in tensors]
            x = torch.randn(5, 96, device=device).to(BF16)
            wanted = [module(x) for module in modules]
            nn.share_input(*modules)
            self.assertTrue(modules[0].shared.joined)
            for module, y, held in zip(modules, wanted, tensors):
                got = module(x)
                self.assertEqual(got.stride(0), 256 + 128 + 40)
                if device == "cpu": self.same(got, y)
                self.same_tensors(module.state_dict(), held)

    def test_another_device_takes_another_form(self):
        """As one of compute capability 10.x, which has no launch of FP8. What it is given back is what was loaded."""
        tensors, x = mxfp4(40, 96), torch.randn(5, 96).to(BF16)
        tensors["weight"][:2] = 0
        module = module_of(nn.Linear, tensors, "cpu", 96, 40, False, a_format="fp8")
        by_fp8, held = module(x), module.weight.data_ptr()
        by_name = nn.Linear(96, 40, False, a_format="fp8", format="deepseek")
        by_name.weight, by_name.scale = tensors["weight"], tensors["scale"]
        with mock.patch.object(torch.cuda, "get_device_capability", lambda _: (10, 0)), \
                mock.patch.object(Weights, "device", mock.Mock(type="cuda")):
            module.float()
            by_name.prepare()
        for each in module, by_name:
            self.assertEqual((each.fp8, each.quantises), (False, True))
            self.same(each(x), module_of(nn.Linear, tensors, "cpu", 96, 40, False, a_format="nvfp4")(x))
            self.same_tensors(each.state_dict(), tensors)
        self.same(module.float()(x), by_fp8)
        self.same_tensors(module.state_dict(), tensors)
        self.assertEqual(module.weight.data_ptr(), held)


class Gated(Case):
    def test_deepseek(self):
        """Its limit is 10: of gate from above, of up from both sides."""
        limited = dict(act=lambda g: silu(g.clamp(max=10)), value=lambda u: u.clamp(-10, 10))
        for device, a_format in itertools.product(DEVICES, ("fp8", "16bit")):
            if a_format == "16bit" and not HOPPER: continue
            tensors, x = dense(low=126, high=131), exact(2, 3, HIDDEN)
            w = [decoded_weight(tensors, stem) for stem in STEMS]
            self.assertGreater(float((x.double() @ w[0].mT).max()), 20)
            words = dict(zip(STEMS, ("w1.", "w3.", "w2.")))
            spelled = {words[stem] + name[len(stem):]: t for stem in STEMS for name, t in tensors.items()
                       if name.startswith(stem)}
            module = module_of(nn.GatedMLP, spelled, device, HIDDEN, INNER, a_format=a_format, swiglu_limit=10)
            with self.subTest(device, a_format=a_format):
                wanted = mlp(x.double(), *w, BF16, **limited, **in_launches(module, device))
                self.close(module(x.to(device)), *wanted, TIMES[device])
                self.same_tensors(module.state_dict(), spelled)

    def test_h_in_fp8_by_a_scale_that_is_given(self):
        for device in DEVICES:
            tensors, x = dense(), exact(5, HIDDEN)
            tensors["gate_proj.input_scale"], tensors["up_proj.input_scale"] = torch.tensor([2.0**-8, 2.0**-9])
            tensors["down_proj.input_scale"] = torch.tensor(2.0**-4)
            w = [decoded_weight(tensors, stem) for stem in STEMS]
            module = module_of(nn.GatedMLP, tensors, device, HIDDEN, INNER, a_format="fp8")
            self.close(module(x.to(device)), *mlp(x.double(), *w, BF16, decode=torch.tensor(2.0**-4, dtype=FP64),
                                                  quantise=in_fp8, product=PRODUCTS[device]))
            self.same_tensors(module.state_dict(), tensors)

    def test_compiled_and_without_memory(self):
        for a_format, format in itertools.product(A_FORMATS, NAMES):
            tensors, x = dense(format), torch.randn(5, HIDDEN).to(BF16)
            module = nn.GatedMLP(HIDDEN, INNER, device="meta", a_format=a_format, format=format)
            self.assertEqual(module(x.to("meta")).shape, x.shape)
            module.load_state_dict({name: t.to("meta") for name, t in tensors.items()}, assign=True)
            self.assertEqual(module(x.to("meta")).shape, x.shape)
            module.load_state_dict(tensors, assign=True)
            wanted = module(x)
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
            for rows in (5, 4, 2): self.same(compiled(x[:rows]), module(x[:rows]))
            self.same(module(x), wanted)
            by_name = nn.GatedMLP(HIDDEN, INNER, a_format=a_format, format=format)
            for key, tensor in tensors.items():
                if key.endswith("blocks"): tensor = tensor.flatten(-2)
                setattr(by_name.get_submodule(key.split(".")[0]), key.split(".")[1], tensor)
            self.same(torch.func.functional_call(module, dict(by_name.named_buffers()), (x,)), wanted)
            self.same(by_name(x), wanted)

    def test_ranks_have_whole_blocks(self):
        """Parts of rows of gate and up and of columns of down, which add up to the whole."""
        wide = 128
        shapes = dict(zip(STEMS, ((wide, HIDDEN), (wide, HIDDEN), (HIDDEN, wide))))
        for format, a_format in itertools.product(NAMES, A_FORMATS):
            tensors = {stem + name: t for stem, shape in shapes.items() for name, t in mxfp4(*shape, format).items()}
            x, total = exact(5, HIDDEN), torch.zeros(5, HIDDEN, dtype=FP64)
            spelled = tensors if format == "deepseek" else as_gpt_oss(tensors)
            for rank in range(2):
                part = module_of(nn.GatedMLP, spelled, "cpu", HIDDEN, wide, a_format=a_format, rows="interleaved",
                                 tp_rank=rank, tp_size=2)
                with mock.patch.object(part.down_proj, "reduced", lambda y: y): y = part(x).double()
                alone = {}
                for name, tensor in tensors.items():
                    dims = tensor.dim() - (2 if name.endswith("blocks") else 1)
                    alone[name] = tensor.chunk(2, dims if "down" in name else 0)[rank].contiguous()
                self.same_tensors(part.state_dict(), alone if format == "deepseek" else as_gpt_oss(alone))
                w = [decoded_weight(alone, stem) for stem in STEMS]
                if a_format != "nvfp4":
                    self.close(y.to(BF16), *mlp(x.double(), *w, BF16, **in_launches(part, "cpu")))
                total += y
            whole = module_of(nn.GatedMLP, spelled, "cpu", HIDDEN, wide, a_format=a_format, rows="interleaved")(x)
            self.assertLess(float((total - whole.double()).norm()), 0.1 * float(whole.double().norm()))
        with self.assertRaisesRegex(ValueError, "in_features=96: tensor parallelism by tp_size=2 needs .* 2 x 32"):
            nn.GatedMLP(HIDDEN, 96, tp_size=2, a_format="fp8")


class Experts(Case):
    def check(self, module, tensors, device, **how):
        x, weights = exact(7, HIDDEN), torch.rand(7, 2)
        ids = torch.randint(-1, EXPERTS, (7, 2))
        ids[ids == 2] = 1  # nobody chooses it
        y = module.apply_experts(x.to(device), ids.to(device), weights.to(device))
        launches = in_launches(module, device)
        wanted = oracle_of_experts(x, ids, weights, tensors, BF16, launches.pop("decode", False),
                                   decoded_weight=decoded_weight, **launches, **how)
        self.close(y, *wanted, TIMES[device])
        self.assertEqual(module(x[:0].to(device), torch.zeros(0, EXPERTS, device=device)).shape, (0, HIDDEN))

    def test_gpt_oss(self):
        """(min(g, 7) sigmoid(1.702 min(g, 7))) (clamp(u, -7, 7) + 1), rows of gate and up in turn, biases."""
        def act(g): return g.clamp(max=7) * torch.sigmoid(1.702 * g.clamp(max=7))
        for device, a_format, assign in itertools.product(DEVICES, ("fp8", "auto"), (False, True)):
            if a_format == "auto" and not HOPPER: continue
            tensors = with_biases(dense("gpt-oss", (EXPERTS,), low=125, high=130), (EXPERTS,))
            spelled = {name: t.to(device) for name, t in as_gpt_oss(tensors, "experts.").items()}
            module = nn.MoE(HIDDEN, INNER, EXPERTS, 2, bias=True, dtype=BF16, device="meta" if assign else device,
                            rows="interleaved", a_format=a_format, swiglu_alpha=1.702, swiglu_beta=1, swiglu_limit=7)
            module.load_state_dict(spelled, assign=assign)
            with self.subTest(device, a_format=a_format, assign=assign):
                self.check(module, tensors, device, act=act, value=lambda u: u.clamp(-7, 7) + 1)
                self.same_tensors(module.state_dict(), spelled)
                self.assertEqual(module.layout.stems, ("gate_up_proj", "down_proj"))
                if assign: self.assertEqual(module.gate_proj.blocks.data_ptr(),
                                            spelled["experts.gate_up_proj_blocks"].data_ptr())

    def test_deepseek(self):
        for device, a_format in itertools.product(DEVICES, ("fp8", "auto")):
            if a_format == "auto" and not HOPPER: continue
            tensors = dense(lead=(EXPERTS,))
            module = module_of(nn.MoE, as_deepseek(tensors), device, HIDDEN, INNER, EXPERTS, 2, a_format=a_format,
                               swiglu_limit=10)
            with self.subTest(device, a_format=a_format):
                self.check(module, tensors, device, act=lambda g: silu(g.clamp(max=10)),
                           value=lambda u: u.clamp(-10, 10))
                self.same_tensors(module.state_dict(), as_deepseek(tensors))

    def test_compiled(self):
        module = module_of(nn.MoE, as_deepseek(dense(lead=(EXPERTS,))), "cpu", HIDDEN, INNER, EXPERTS, 2,
                           a_format="fp8")
        torch._dynamo.reset()
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (5, 4, 2):
            x, logits = torch.randn(rows, HIDDEN).to(BF16), torch.randn(rows, EXPERTS)
            self.same(compiled(x, logits), module(x, logits))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
