#!/usr/bin/env python3
"""torch_nn_test.py -- the layers of dualgemm.nn, on the CPU and on a GPU if there is one, against a decoder of the
formats in fp64 that is written here. Several ranks are processes of this file. Exits with 77 where there is no torch,
or where its operators are not built.

    torch_nn_test.py MODULE [unittest's arguments]
"""
import copy
import io
import itertools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import torch
except ImportError as error:
    print(f"torch_nn_test.py: skipped, there is no torch: {error}")
    sys.exit(77)
import dualgemm as d  # noqa: E402
try:
    from dualgemm import FLAG_BATCH_INVARIANT, SCALE_ROW, nn  # noqa: E402
except ImportError as error:
    print(f"torch_nn_test.py: skipped: {error}")
    sys.exit(77)

GPU = torch.cuda.is_available()
DEVICES = ("cpu", "cuda") if GPU else ("cpu",)
HOPPER = not GPU or torch.cuda.get_device_capability() == (9, 0)
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "example/checkpoint/fixtures"
BF16, FP16, FP32, FP64, E4M3 = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn)
HALF_ULP = {BF16: 2.0**-8, FP16: 2.0**-11}  # relative, of a normal number
FORMATS = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
           "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
HIDDEN, INNER, EXPERTS = 64, 96, 4
STEMS = ("gate_proj.", "up_proj.", "down_proj.")
INPUT_SCALE = 2.0**-9  # A of exact() is exact in it

# ---- an oracle ----

CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=FP64)
FACTORS = torch.tensor([(8 + b % 8) * 2.0**(b // 8 - 10) if b > 7 else b * 2.0**-9 for b in range(127)], dtype=FP64)


def decoded(elements, factors):
    """[..., n, k/2] and [..., n, k/16] as numbers."""
    elements, factors = elements.cpu().view(torch.uint8).long(), factors.cpu().view(torch.uint8).long()
    codes = torch.stack((elements & 15, elements >> 4), -1).flatten(-2)
    return CODES[codes] * FACTORS[factors].repeat_interleave(16, -1)


def decoded_weight(tensors, stem=""):
    for format, (elements, factors, scale, _) in FORMATS.items():
        if stem + elements not in tensors: continue
        number = tensors[stem + scale].double().cpu().reshape(-1, 1, 1)
        w = decoded(tensors[stem + elements], tensors[stem + factors])
        w = w * (number if format == "modelopt" else 1 / number)
        return w if w.dim() == tensors[stem + elements].dim() else w[0]
    raise KeyError(stem)


def product(x, w, bias=None):
    """x W^T in fp64, and what a launch may be off before it is rounded: each of k products and sums keeps 22 places of
    what has the largest magnitude, which is below the sum of the magnitudes."""
    y, size = x @ w.mT, x.abs() @ w.abs().mT
    return (y, size * x.shape[-1] * 2.0**-22) if bias is None else \
        (y + bias.double().cpu(), (size + bias.double().cpu().abs()) * x.shape[-1] * 2.0**-22)


def silu(x):
    return x * torch.sigmoid(x)


def parts_of(x, w, ranks):
    """The magnitudes of the parts that ranks have of a product, added up."""
    return sum((a @ b.mT).abs() for a, b in zip(x.chunk(ranks, -1), w.chunk(ranks, -1)))


def mlp(x, gate, up, down, dtype, biases=(None, None, None), act=silu, factors=False, ranks=1):
    """The MLP, and a bound. 1.2 is above every derivative of an activation here, and a GPU's sigmoid or erf has 20
    places behind the point; h is rounded to `dtype` in between, or
    with `factors` to NVFP4: half a step is at most a sixth of the largest element of a block, and its factor is off by
    1/16."""
    (g, eg), (u, eu) = product(x, gate, biases[0]), product(x, up, biases[1])
    h = act(g) * u
    eh = 1.2 * eg * (u.abs() + eu) + act(g).abs() * eu + (1 + g.abs()) * u.abs() * 2.0**-20 + 2.0**-24
    eh = eh + (h.abs() + eh) * HALF_ULP[dtype]
    if factors:
        largest = (h.abs() + eh).unflatten(-1, (-1, 16)).amax(-1).repeat_interleave(16, -1)
        eh = eh + largest / 6 * (1 + 1 / 16)
    y, ey = product(h, down, biases[2])
    ey = ey + eh @ down.abs().mT
    if ranks > 1:  # each part is rounded; those that are added differ from these by what h differs
        ey = ey * (1 + HALF_ULP[dtype]) + HALF_ULP[dtype] * parts_of(h, down, ranks)
        if biases[2] is not None: ey = ey + HALF_ULP[dtype] * biases[2].double().abs()
    return y, ey


# ---- tensors of a checkpoint ----

def weight(n, k, scale, format="modelopt", input_scale=None, experts=None):
    """Random elements, and factors none of which is NaN."""
    lead = () if experts is None else (experts,)
    names, given = FORMATS[format], [scale] if input_scale is None else [scale, input_scale]
    if format != "modelopt": given = [1 / number for number in given]
    tensors = {names[0]: torch.randint(256, (*lead, n, k // 2), dtype=torch.uint8),
               names[1]: torch.randint(0x28, 0x40, (*lead, n, k // 16), dtype=torch.uint8).view(E4M3)}
    shape = (*lead,) if format == "modelopt" else (*lead, 1)
    for name, number in zip(names[2:], given): tensors[name] = torch.full(shape, number) * (
        1 if experts is None else torch.arange(1, experts + 1).reshape(shape) / 2)
    return tensors


def named(stem, tensors):
    return {stem + name: tensor for name, tensor in tensors.items()}


def dense(format="modelopt", input_scale=None, hidden=HIDDEN, inner=INNER, scales=(0.01, 0.03, 0.02)):
    """Gate, up and down, whose scales differ."""
    return {**named("gate_proj.", weight(inner, hidden, scales[0], format, input_scale)),
            **named("up_proj.", weight(inner, hidden, scales[1], format, input_scale)),
            **named("down_proj.", weight(hidden, inner, scales[2], format, input_scale))}


def exact(*shape, dtype=BF16):
    """Activations that NVFP4 holds exactly, with INPUT_SCALE or with a scale of each row: a 6 in each block, and the
    largest factor in each row."""
    k = shape[-1]
    codes = torch.randint(16, (*shape[:-1], k // 16, 16))
    codes[..., 0] = 7
    factors = torch.randint(0x58, 0x68, (*shape[:-1], k // 16, 1))
    factors[..., 0, :] = 0x7E
    return (CODES[codes] * FACTORS[factors]).flatten(-2).to(dtype) * INPUT_SCALE


def bits(tensor):
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(bits(got), bits(wanted)))

    def same_tensors(self, got, wanted):
        self.assertEqual(got.keys(), wanted.keys())
        for name in wanted:
            with self.subTest(name): self.same(got[name], wanted[name])

    def close(self, got, wanted, bound, says=20):
        wanted, bound = wanted.reshape(got.shape), bound.reshape(got.shape)
        off = (got.double().cpu() - wanted).abs() - bound - (wanted.abs() + bound) * HALF_ULP[got.dtype]
        self.assertLessEqual(float(off.max()), 0, f"bound {float(bound.max())}")
        self.assertGreater(float(wanted.abs().max()), says * float(bound.min()))  # a bound that says something


def module_of(kind, tensors, device="cpu", *args, **options):
    module = kind(*args, device=device, **options)
    module.load_state_dict(tensors)
    return module


def a_formats(device):
    return ("nvfp4", "16bit", "auto") if device == "cpu" or HOPPER else ("nvfp4", "auto")


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
                                         ("a_format='fp8': must be one of 'auto'", (64, 40), dict(a_format="fp8")),
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
                        ("x: has 32 elements in its last dimension, and must have 64", torch.zeros(3, 32))):
            with self.assertRaisesRegex((TypeError, ValueError), text): module(x)


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


class Loading(Case):
    def test_no_weight_is_held_twice(self):
        for device in DEVICES:
            tensors = {name: t.to(device) for name, t in weight(256, 256, 0.02).items()}
            module = nn.Linear(256, 256, bias=False, device="meta")
            self.assertEqual(module(torch.empty(3, 256, dtype=BF16, device="meta")).shape, (3, 256))
            module.load_state_dict(tensors, assign=True)
            self.assertEqual(module.weight.data_ptr(), tensors["weight"].data_ptr())
            held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in module.buffers()}
            self.assertLess(sum(held.values()), 256 * 256 // 2 + 256 * 256 // 16 + 1024)
            self.same_tensors(module.state_dict(), tensors)

    def test_tensors_at_any_address(self):
        """As a file that is mapped into memory has them. A launch takes multiples of 16."""
        def moved(tensor):
            room = torch.zeros(tensor.numel() * tensor.element_size() + 16, dtype=torch.uint8)
            begin = -room.data_ptr() % 16 + 8
            place = room[begin:begin + room.numel() - 16].view(tensor.dtype).reshape(tensor.shape)
            return place.copy_(tensor) if tensor.dtype != E4M3 else (place.view(torch.uint8).copy_(
                tensor.view(torch.uint8)), place)[1]
        tensors = {**weight(40, 96, 0.02), "bias": torch.randn(40).to(BF16)}
        apart, x = {name: moved(tensor) for name, tensor in tensors.items()}, torch.randn(3, 96).to(BF16)
        wanted = module_of(nn.Linear, tensors, "cpu", 96, 40)(x)
        module = nn.Linear(96, 40, device="meta")
        module.load_state_dict(apart, assign=True)
        self.same(module(x), wanted)
        by_name = nn.Linear(96, 40)
        for _ in range(2):  # the second time behind a forward
            for name, tensor in apart.items(): setattr(by_name, name, tensor)
            self.same(by_name(x), wanted)
        self.same_tensors(nn.quantize_weight(moved(torch.ones(8, 32))), nn.quantize_weight(torch.ones(8, 32)))

    def test_copies_have_the_same_bits(self):
        for device, format in itertools.product(DEVICES, FORMATS):
            tensors = dense(format, INPUT_SCALE)
            module = module_of(nn.GatedMLP, tensors, device, HIDDEN, INNER, a_format="nvfp4")
            x, file = exact(3, HIDDEN).to(device), io.BytesIO()
            torch.save(module, file)
            file.seek(0)
            again = torch.load(file, weights_only=False)
            fresh = nn.GatedMLP(HIDDEN, INNER, a_format="nvfp4", device=device)
            fresh.load_state_dict(module.state_dict())
            for other in (copy.deepcopy(module), again, fresh, module.half(), module.to(BF16).to(torch.float64),
                          module.to("cpu").to(device)):
                self.same_tensors(other.state_dict(), tensors)
                self.same(other(x), again(x))

    def test_a_later_checkpoint_keeps_addresses(self):
        """As where a trainer hands over new weights, and CUDA graphs hold the addresses."""
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format in ("16bit", "nvfp4"):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            x = exact(3, HIDDEN)
            module(x)
            places = {name: t.data_ptr() for name, t in module.named_buffers()}
            module.load_state_dict(second)
            wanted = module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            self.same(module(x), wanted)
            self.assertEqual(places, {name: t.data_ptr() for name, t in module.named_buffers()})
            module.load_state_dict(first)
            part = {name[len("up_proj."):]: t for name, t in second.items() if name.startswith("up_proj.")}
            module.up_proj.load_state_dict(part)  # a part alone
            mixed = {**first, **named("up_proj.", part)}
            self.same(module(x), module_of(nn.GatedMLP, mixed, "cpu", HIDDEN, INNER, a_format=a_format)(x))

    def test_loaded_tensors_are_never_written_to(self):
        """With assign=True, of which a module holds what it is given: other weights, and the first ones again."""
        x = exact(3, HIDDEN)
        for format, a_format, scale in itertools.product(FORMATS, ("16bit", "nvfp4"), (None, INPUT_SCALE)):
            first, second = (dense(format, scale, scales=scales) for scales in ((0.01, 0.03, 0.02), (0.02, 0.01, 0.05)))
            for tensors in (first, second):
                tensors.update({f"{stem}_proj.bias": torch.randn(n).to(BF16)
                                for stem, n in (("gate", INNER), ("up", INNER), ("down", HIDDEN))})
            before = copy.deepcopy(first)
            module, other = (nn.GatedMLP(HIDDEN, INNER, bias=True, device="meta", a_format=a_format) for _ in range(2))
            for each in (module, other): each.load_state_dict(first, assign=True)
            wanted, saved = module(x), module.state_dict()
            with self.subTest(format, a_format=a_format, scale=scale):
                for again in (first, saved):
                    module.load_state_dict(second, assign=True)
                    self.assertFalse(torch.equal(module(x), wanted))
                    self.same(other(x), wanted)
                    self.same_tensors(first, before)
                    module.load_state_dict(again, assign=True)
                    self.same(module(x), wanted)

    def test_no_two_buffers_share_memory(self):
        """A later checkpoint may have two numbers where one had the same, or input scales where one had none."""
        fused, scaled = fuse(dense(), ("gate_up_proj", "down_proj")), dense("modelopt", INPUT_SCALE)
        fused["gate_up_proj.weight_scale_2"] = torch.tensor(0.02)
        x = exact(3, HIDDEN)
        for tensors, a_format, assign in itertools.product((fused, dense()), ("16bit", "nvfp4"), (False, True)):
            module = nn.GatedMLP(HIDDEN, INNER, device="meta", a_format=a_format)
            module.load_state_dict(copy.deepcopy(tensors), assign=True)
            module(x)
            held = [t for t in module.buffers() if t.numel() == 1]
            self.assertEqual(len({t.data_ptr() for t in held}), len(held))
            module.load_state_dict(copy.deepcopy(scaled), assign=assign)
            self.same(module(x), module_of(nn.GatedMLP, scaled, "cpu", HIDDEN, INNER, a_format=a_format)(x))

    def test_inference_mode(self):
        """What is made under it cannot be written to outside, so nothing that stays is made under it."""
        x, (first, second) = exact(3, HIDDEN), (dense("modelopt", INPUT_SCALE, scales=scales) for scales in (
            (0.01, 0.03, 0.02), (0.02, 0.01, 0.05)))
        for tensors in (first, second): tensors["down_proj.bias"] = torch.randn(HIDDEN).to(FP16)

        def forward(module): module(x)

        def half(module): module.half()

        def load(module): module.load_state_dict(first, assign=False)

        def by_name(module):
            for name, tensor in first.items():  # these are the caller's, and made under it
                setattr(module.get_submodule(name.split(".")[0]), name.split(".")[1], tensor.clone())
            module(x)
        for inside, a_format in itertools.product((forward, half, load, by_name), ("16bit", "nvfp4")):
            wanted = module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            module = nn.GatedMLP(HIDDEN, INNER, a_format=a_format)
            module.down_proj.bias = torch.zeros(HIDDEN, dtype=FP16)
            with self.subTest(inside.__name__, a_format=a_format):
                with torch.inference_mode(): inside(module)
                module.load_state_dict(second)
                self.same(module(x), wanted)
        with torch.inference_mode(): module = nn.GatedMLP(HIDDEN, INNER)  # as it is built
        for tensors in (first, second): module.load_state_dict(tensors)
        self.same(module(x), module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER)(x))

    def test_tensors_that_are_set_by_name(self):
        """As programs do that place layers on several devices."""
        tensors = dense()
        module = nn.GatedMLP(HIDDEN, INNER, device="meta")
        for name, tensor in tensors.items():
            owner, leaf = module.get_submodule(name.split(".")[0]), name.split(".")[1]
            self.assertEqual(getattr(owner, leaf).shape, tensor.shape)
            owner._buffers[leaf] = tensor
        x = torch.randn(3, HIDDEN).to(BF16)
        self.same(module(x), module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER)(x))
        self.same_tensors(module.state_dict(), tensors)

    def test_tensors_that_are_set_by_name_after_a_forward(self):
        x = exact(3, HIDDEN)
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format, stems, compiled in itertools.product(("16bit", "nvfp4"), (STEMS, STEMS[1:2], STEMS[2:]),
                                                           (False, True)):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            torch._dynamo.reset()
            run = torch.compile(module, backend="eager", fullgraph=True) if compiled else module
            run(x)
            mixed = {**first, **{name: tensor for name, tensor in second.items() if name.startswith(stems)}}
            for name, tensor in second.items():
                if name.startswith(stems):
                    setattr(module.get_submodule(name.split(".")[0]), name.split(".")[1], tensor)
            with self.subTest(a_format, stems=stems, compiled=compiled):
                wanted = module_of(nn.GatedMLP, mixed, "cpu", HIDDEN, INNER, a_format=a_format)
                self.same(run(x), wanted(x))
                self.same(module(x), wanted(x))
                self.same_tensors(module.state_dict(), mixed)
                module.prepare()
                self.assertTrue(all(each.weight_scale is None for each in module.children()))
                self.same(run(x), wanted(x))
                self.same_tensors(module.state_dict(), mixed)
        linear = module_of(nn.Linear, weight(40, HIDDEN, 0.02), "cpu", HIDDEN, 40, False)
        linear(x)
        for name, tensor in (tensors := weight(40, HIDDEN, 0.05)).items(): setattr(linear, name, tensor)
        self.same(linear(x), module_of(nn.Linear, tensors, "cpu", HIDDEN, 40, False)(x))

    def test_functional_call(self):
        """Takes other tensors for one call; the module and the tensors stay what they are."""
        x = exact(3, HIDDEN)
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format, stems in itertools.product(("16bit", "nvfp4"), (STEMS, STEMS[1:2], STEMS[2:])):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            y, given = module(x), {name: tensor for name, tensor in second.items() if name.startswith(stems)}
            kept = copy.deepcopy(given)
            wanted = module_of(nn.GatedMLP, {**first, **given}, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            with self.subTest(a_format, stems=stems):
                self.same(torch.func.functional_call(module, given, (x,)), wanted)
                self.same_tensors(given, kept)
                self.same(module(x), y)
                self.same_tensors(module.state_dict(), first)

    def test_refusals(self):
        tensors = weight(40, 64, 0.02)
        for text, wrong in ((r"weight: is \[40, 48\], and must be \[40, 32\]",
                             dict(weight=torch.zeros(40, 48, dtype=torch.uint8))),
                            ("weight: is torch.bfloat16, and must be torch.uint8",
                             dict(weight=torch.zeros(40, 32).to(BF16))),
                            (r"weight_scale: is torch.float32", dict(weight_scale=torch.zeros(40, 4))),
                            (r"weight_scale_2: is torch.float32 \[2\], and must be 1 numbers",
                             dict(weight_scale_2=torch.ones(2))),
                            ("Unexpected key.*input_quantizer", {"input_quantizer": torch.ones(1)})):
            with self.subTest(text), self.assertRaisesRegex(RuntimeError, text):
                nn.Linear(64, 40, bias=False).load_state_dict({**tensors, **wrong})
        with self.assertRaisesRegex(RuntimeError, "Missing key.*weight_scale_2"):
            nn.Linear(64, 40, bias=False).load_state_dict({k: v for k, v in tensors.items() if k != "weight_scale_2"})
        with self.assertRaisesRegex(RuntimeError, "lies on meta: pass assign=True"):
            nn.Linear(64, 40, bias=False, device="meta").load_state_dict(tensors)
        experts = {k: v for k, v in each_expert(stacked("modelopt")).items() if not k.startswith("experts.2.w3.")}
        with self.assertRaisesRegex(RuntimeError, r"experts\.2\.w3\.weight"):
            nn.MoE(HIDDEN, INNER, EXPERTS, 2).load_state_dict(experts)


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
                    quantised = module.gate_proj.quantises
                    self.close(y, *mlp(x.double(), *w, dtype, factors=quantised), 3 if quantised else 20)
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


def rename(tensors, words):
    known = dict(zip(("gate_proj", "up_proj", "down_proj"), words))
    return {".".join([*name.split(".")[:-2], known[name.split(".")[-2]], name.split(".")[-1]]): t
            for name, t in tensors.items()}


def fuse(tensors, words, rows="stacked"):
    """Gate's rows, then up's, or in turn; scales are two."""
    fused = {}
    for name, tensor in tensors.items():
        stem, leaf = name.split(".")
        if stem == "down_proj": fused[f"{words[1]}.{leaf}"] = tensor
        if stem != "gate_proj": continue
        both = tensor, tensors[f"up_proj.{leaf}"]
        joined = torch.stack([t.squeeze() for t in both]) if tensor.dim() < 2 else torch.cat(both)
        if rows == "interleaved" and tensor.dim() == 2:
            for side in range(2): joined[side::2] = both[side]
        fused[f"{words[0]}.{leaf}"] = joined
    return fused


# ---- experts ----

def stacked(format, input_scale=None):
    return {**named("gate_proj.", weight(INNER, HIDDEN, 0.01, format, input_scale, EXPERTS)),
            **named("up_proj.", weight(INNER, HIDDEN, 0.03, format, input_scale, EXPERTS)),
            **named("down_proj.", weight(HIDDEN, INNER, 0.02, format, input_scale, EXPERTS))}


def each_expert(tensors, words=("w1", "w3", "w2"), before="experts."):
    return {f"{before}{e}.{name}": t[e].clone() for e in range(EXPERTS) for name, t in rename(tensors, words).items()}


def in_one(tensors, words=("w13", "w2"), before="", bare=False, rows="stacked"):
    """[experts, 2 n, ...], gate's rows first or in turn, and scales [experts, 2]."""
    found = {}
    for name, tensor in tensors.items():
        stem, leaf = name.split(".")
        end = "" if bare and leaf == "weight" else "_" + leaf
        if stem == "down_proj": found[before + words[1] + end] = tensor
        if stem != "gate_proj": continue
        up = tensors[f"up_proj.{leaf}"]
        scales = "scale_2" in leaf or "input" in leaf
        found[before + words[0] + end] = joined = torch.stack((tensor, up), 1) if scales else torch.cat((tensor, up), 1)
        if rows == "interleaved" and not scales: joined[:, ::2], joined[:, 1::2] = tensor, up
    return found


def oracle_of_experts(x, ids, weights, tensors, dtype, factors=False, ranks=1):
    """Each token's choices one by one, and a bound. Rows of experts are rounded, and with ranks each rank's sum."""
    gate, up, down = (decoded_weight(tensors, stem) for stem in STEMS)
    total, bound = torch.zeros(x.shape, dtype=FP64), torch.zeros(x.shape, dtype=FP64)
    for t, s in itertools.product(range(ids.shape[0]), range(ids.shape[1])):
        e, share = int(ids[t, s]), float(weights[t, s])
        if not 0 <= e < EXPERTS: continue
        y, off = mlp(x[t:t + 1].double(), gate[e], up[e], down[e], dtype, factors=factors, ranks=ranks)
        total[t] += share * y[0]
        bound[t] += share * (off[0] * min(ranks, 2) + y[0].abs() * (HALF_ULP[dtype] + 2.0**-20))
    return total, bound


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
                    self.close(y, *oracle_of_experts(x, ids, weights, tensors, BF16, quantised), 3 if quantised else 20)
                    none = module(x[:0].to(device), torch.zeros(0, EXPERTS, device=device))
                    self.assertEqual(none.shape, (0, HIDDEN))

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


class FloatMlp(torch.nn.Module):
    def __init__(self, act_fn, bias=False, dtype=BF16, hidden=HIDDEN, inner=INNER):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(hidden, inner, bias, dtype=dtype) for _ in range(2))
        self.down_proj, self.act_fn = torch.nn.Linear(inner, hidden, bias, dtype=dtype), act_fn


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


class Torch(Case):
    def layers(self, device, **options):
        tensors = weight(40, HIDDEN, 0.02, input_scale=INPUT_SCALE)
        yield module_of(nn.Linear, tensors, device, HIDDEN, 40, False, **options)
        yield module_of(nn.GatedMLP, dense("modelopt", INPUT_SCALE), device, HIDDEN, INNER, **options)
        experts = module_of(nn.MoE, stacked("modelopt", INPUT_SCALE), device, HIDDEN, INNER, EXPERTS, 2, **options)
        routed = torch.nn.Module()
        routed.experts = experts
        order = torch.arange(EXPERTS, device=device) / EXPERTS
        routed.forward = lambda x: experts(x, (x[..., :EXPERTS] > 0) + order)  # of any type the same
        yield routed

    def test_one_compiled_graph_for_any_number_of_rows(self):
        for device, a_format in itertools.product(DEVICES, ("auto", "nvfp4")):
            for module in self.layers(device, a_format=a_format):
                graphs = []
                torch._dynamo.reset()  # graphs of one piece of code are limited, of whichever module they are

                def backend(graph, _):
                    graphs.append(graph)
                    return graph
                compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=True)
                lowered = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
                with self.subTest(device, a_format=a_format, module=type(module).__name__):
                    for rows in (7, 2, 33):
                        x = torch.randn(3, rows, HIDDEN, device=device).to(BF16)
                        self.same(compiled(x), module(x))
                        self.same(lowered(x), module(x))
                    if isinstance(module, nn.GatedMLP):  # other weights need no other graph
                        module.load_state_dict(dense("modelopt", INPUT_SCALE, scales=(0.02, 0.01, 0.05)))
                        self.same(compiled(x), module(x))
                    self.assertEqual(len(graphs), 1)

    def test_a_module_that_nothing_has_prepared_is_compiled(self):
        tensors, x = weight(40, HIDDEN, 0.02), torch.randn(3, HIDDEN).to(BF16)
        module = nn.Linear(HIDDEN, 40, bias=False)
        for name, tensor in tensors.items(): module._buffers[name] = tensor
        y = torch.compile(module, backend="aot_eager", fullgraph=True)(x)
        self.assertFalse(module.prepared)
        self.same(y, module(x))

    def test_nothing_of_a_module_is_hidden(self):
        """By an attribute of the same name: programs call these on every module of a model."""
        for layer in self.layers("cpu"):
            for module in layer.modules():
                for name in dir(torch.nn.Module):
                    if name.startswith("__") or not callable(getattr(torch.nn.Module, name)): continue
                    self.assertTrue(callable(getattr(module, name)), f"{type(module).__name__}.{name}")
            layer.zero_grad()
            self.assertIs(layer.requires_grad_(False), layer)
            self.assertEqual(list(layer.parameters()), [])

    def test_autocast(self):
        for device in DEVICES:
            for module in self.layers(device):
                x = torch.randn(3, HIDDEN, device=device)
                for dtype in (BF16, FP16):
                    wanted = module(x.to(dtype))
                    with torch.autocast(device, dtype=dtype):
                        self.same(module(x.to(dtype)), wanted)
                        self.same(module(x), wanted)
                    with torch.autocast(device, dtype=BF16): self.same(module(x.to(dtype)), wanted)

    def test_rows_of_any_batch_are_alike(self):
        """On a GPU kernels differ with the rows; on the CPU there is one way to compute."""
        for device in DEVICES:
            for module in self.layers(device, flags=FLAG_BATCH_INVARIANT):
                x = torch.randn(64, HIDDEN, device=device).to(BF16)
                whole = module(x)
                for rows in range(1, 65) if device == "cuda" else (1, 2, 33): self.same(module(x[:rows]), whole[:rows])

    def test_rows_of_experts_are_alike(self):
        OnGpu.check_rows_of_experts(self, "cpu", HIDDEN, INNER, (1, 7))

    def test_rows_that_lie_apart(self):
        for device in DEVICES:
            module = next(self.layers(device))
            x = torch.randn(6, 2 * HIDDEN, device=device).to(BF16)
            self.same(module(x[::2, :HIDDEN]), module(x[::2, :HIDDEN].clone()))
            self.same(module(x[:, 4:4 + HIDDEN]), module(x[:, 4:4 + HIDDEN].clone()))

    def test_fake_tensors(self):
        """They have no address: who asks for one is warned."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        module = next(self.layers("cpu"))
        with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
            warnings.simplefilter("error")
            y = module(torch.empty(3, HIDDEN, dtype=BF16))
        self.assertEqual((y.shape, y.dtype), ((3, 40), BF16))

    def test_rows_at_any_address(self):
        for device, a_format in itertools.product(DEVICES, ("auto", "nvfp4")):
            room = torch.randn(3 * HIDDEN + 8, device=device).to(BF16)
            room = room[-room.data_ptr() % 16 // 2:]
            for module in self.layers(device, a_format=a_format):
                for begin in (1, 4):
                    x = room[begin:begin + 3 * HIDDEN].view(3, HIDDEN)
                    self.assertTrue(x.is_contiguous() and x.data_ptr() % 16)
                    self.same(module(x), module(x.clone()))
            ids = torch.randint(EXPERTS, (13,), device=device, dtype=torch.int32)
            shares = torch.rand(13, device=device)
            apart = ids[1:].view(6, 2), shares[1:].view(6, 2)
            experts, x = module.experts, torch.randn(6, HIDDEN, device=device).to(BF16)
            self.same(experts.apply_experts(x, *apart), experts.apply_experts(x, *(each.clone() for each in apart)))


@unittest.skipUnless(GPU, "there is no GPU")
class OnGpu(Case):
    def test_a_graph_replays(self):
        for module in Torch.layers(self, "cuda"):
            x = torch.randn(5, HIDDEN, device="cuda").to(BF16)
            module(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph): y = module(x)
            x.copy_(torch.randn_like(x))
            graph.replay()
            self.same(y, module(x))

    def test_rows_of_any_batch_are_alike_where_k_could_be_split(self):
        hidden, inner = 4096, 3072
        for module in (nn.Linear.from_float(torch.nn.Linear(hidden, 1024, device="cuda", dtype=BF16),
                                            flags=FLAG_BATCH_INVARIANT),
                       module_of(nn.GatedMLP, dense("modelopt", hidden=hidden, inner=inner), "cuda", hidden, inner,
                                 flags=FLAG_BATCH_INVARIANT)):
            x = torch.randn(64, hidden, device="cuda").to(BF16)
            whole = module(x)
            for rows in range(1, 65): self.same(module(x[:rows]), whole[:rows])

    def test_rows_of_experts_are_alike_where_k_could_be_split(self):
        """Whichever rows there are besides, and in whatever order: a row's neighbours in a tile are others then."""
        self.check_rows_of_experts("cuda", 2048, 2048, (1, 2, 3, 8, 17, 33, 64))

    def check_rows_of_experts(self, device, hidden, inner, counts):
        sources = [FloatMlp(torch.nn.SiLU(), hidden=hidden, inner=inner).to(device) for _ in range(EXPERTS)]
        for a_format in ("auto", "nvfp4"):
            module = nn.MoE.from_float(sources, 2, a_format=a_format, flags=FLAG_BATCH_INVARIANT)
            x, logits = torch.randn(64, hidden, device=device).to(BF16), torch.randn(64, EXPERTS, device=device)
            whole = module(x, logits)
            self.assertFalse(torch.equal(whole[:1].expand_as(whole), whole))
            for rows in counts:
                for order in (torch.arange(rows), torch.randperm(64)[:rows]):
                    with self.subTest(device, a_format=a_format, rows=rows):
                        order = order.to(device)
                        self.same(module(x[order], logits[order]), whole[order])


# ---- several ranks ----

RANKS = 2
WIDE = 128  # of the inner dimension, of which each rank has 64


def sharded():
    """What runs on ranks: a class, its arguments and its options."""
    options = dict(bias=True, dtype=BF16)
    return {"Linear, columns": (nn.Linear, (HIDDEN, 48), dict(parallel="column", **options)),
            "Linear, rows": (nn.Linear, (WIDE, 40), dict(parallel="row", **options)),
            "GatedMLP": (nn.GatedMLP, (HIDDEN, WIDE), options), "GatedMLP, fused": (nn.GatedMLP, (HIDDEN, WIDE), {}),
            "MoE": (nn.MoE, (HIDDEN, WIDE, EXPERTS, 2), {})}


def rank_main(rank, folder, backend):
    """One rank: loads whole tensors, of which it takes its part, and writes its results."""
    device = f"cuda:{rank}" if backend == "nccl" else "cpu"
    if backend == "nccl": torch.cuda.set_device(rank)
    torch.distributed.init_process_group(backend, init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    given, results = torch.load(f"{folder}/given.pt", weights_only=True), {}
    for name, (kind, args, options) in sharded().items():
        module, again = (kind(*args, device=place, tp_rank=rank, tp_size=RANKS, group=group, **options)
                         for place, group in (("meta", None), (device, torch.distributed.group.WORLD)))
        module.load_state_dict({key: t.to(device) for key, t in given[name]["tensors"].items()}, assign=True)
        inputs = [t.to(device) for t in given[name]["inputs"]]
        if name == "Linear, rows": inputs = [inputs[0].chunk(RANKS, 1)[rank]]
        results[name] = module(*inputs).cpu()
        again.load_state_dict(module.state_dict())  # of this rank
        results[name + ", again"] = again(*inputs).cpu()
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        results[name + ", compiled"] = compiled(*inputs).cpu()
        results[name + ", weights"] = sum(t.numel() for t in module.buffers() if t.dtype == torch.uint8)
    torch.save(results, f"{folder}/rank{rank}.pt")
    torch.distributed.destroy_process_group()


class Ranks(Case):
    """The ranks' sum is rounded, and so is each rank's part of it before."""

    def setUp(self):
        super().setUp()
        self.moe = {**named("gate_proj.", weight(WIDE, HIDDEN, 0.01, experts=EXPERTS)),
                    **named("up_proj.", weight(WIDE, HIDDEN, 0.03, experts=EXPERTS)),
                    **named("down_proj.", weight(HIDDEN, WIDE, 0.02, experts=EXPERTS))}
        self.mlp = dense(inner=WIDE)
        self.biases = [torch.randn(n).to(BF16) for n in (WIDE, WIDE, HIDDEN)]
        self.x, self.logits = torch.randn(5, HIDDEN).to(BF16), torch.randn(5, EXPERTS)
        self.tensors = {
            "Linear, columns": {**weight(48, HIDDEN, 0.02), "bias": torch.randn(48).to(BF16)},
            "Linear, rows": {**weight(40, WIDE, 0.02, "compressed-tensors"), "bias": torch.randn(40).to(BF16)},
            "GatedMLP": {**self.mlp, **{f"{n}_proj.bias": b for n, b in zip(("gate", "up", "down"), self.biases)}},
            "GatedMLP, fused": fuse(self.mlp, ("gate_up_proj", "down_proj")), "MoE": each_expert(self.moe)}
        self.inputs = {name: [self.x] for name in self.tensors}
        self.inputs.update({"Linear, rows": [torch.randn(5, WIDE).to(BF16)], "MoE": [self.x, self.logits]})

    def run_ranks(self, backend):
        with tempfile.TemporaryDirectory() as folder:
            torch.save({name: dict(tensors=t, inputs=self.inputs[name]) for name, t in self.tensors.items()},
                       f"{folder}/given.pt")
            ranks = [subprocess.Popen([sys.executable, __file__, sys.argv[1], "--rank", str(rank), folder, backend])
                     for rank in range(RANKS)]
            self.assertEqual([rank.wait() for rank in ranks], [0] * RANKS)
            return [torch.load(f"{folder}/rank{rank}.pt", weights_only=True) for rank in range(RANKS)]

    def check(self, backend):
        results, x = self.run_ranks(backend), self.x.double()
        for name, result in itertools.product(self.tensors, results):
            with self.subTest(name):
                if name != "Linear, columns": self.same(result[name], results[0][name])
                self.same(result[name + ", again"], result[name])
                self.same(result[name + ", compiled"], result[name])
                self.assertEqual(result[name + ", weights"], results[0][name + ", weights"])
        held = self.tensors["Linear, columns"]
        self.close(torch.cat([result["Linear, columns"] for result in results], -1),
                   *product(x, decoded_weight(held), held["bias"]))
        held, (of_rows,) = self.tensors["Linear, rows"], self.inputs["Linear, rows"]
        y, off = product(of_rows.double(), decoded_weight(held), held["bias"])
        parts = parts_of(of_rows.double(), decoded_weight(held), RANKS) + held["bias"].double().abs()
        self.close(results[0]["Linear, rows"], y, off + parts * HALF_ULP[BF16])
        w = [decoded_weight(self.mlp, stem) for stem in STEMS]
        self.close(results[0]["GatedMLP, fused"], *mlp(x, *w, BF16, ranks=RANKS))
        self.close(results[0]["GatedMLP"], *mlp(x, *w, BF16, self.biases, ranks=RANKS))
        shares = self.logits.double().softmax(1)
        weights, ids = shares.topk(2, 1)
        self.close(results[0]["MoE"], *oracle_of_experts(self.x, ids, weights / weights.sum(1, keepdim=True), self.moe,
                                                         BF16, ranks=RANKS))

    @unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available(), "there is no gloo")
    def test_gloo(self):
        self.check("gloo")

    @unittest.skipUnless(GPU and torch.cuda.device_count() >= RANKS, "there are no two GPUs")
    def test_nccl(self):
        self.check("nccl")

    def test_a_rank_is_a_part(self):
        """Without a group: the parts of the ranks, put together, are the whole."""
        parts = [module_of(nn.GatedMLP, self.mlp, "cpu", HIDDEN, WIDE, tp_rank=rank, tp_size=2).state_dict()
                 for rank in range(2)]
        for name, whole in self.mlp.items():
            if whole.dim() < 2: self.same(parts[1][name], whole)
            else: self.same(torch.cat([bits(part[name]).reshape(part[name].shape) for part in parts],
                                      1 if "down" in name else 0).view(whole.dtype), whole)
        with self.assertRaisesRegex(ValueError, "out_features=96: tensor parallelism by tp_size=5 needs a multiple"):
            nn.GatedMLP(HIDDEN, 96, tp_size=5)
        with self.assertRaisesRegex(ValueError, "in_features=96: tensor parallelism by tp_size=2 needs .* 2 x 32"):
            nn.GatedMLP(HIDDEN, 96, tp_size=2)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--rank"]: rank_main(int(sys.argv[3]), *sys.argv[4:])
    else: unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
