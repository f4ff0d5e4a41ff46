#!/usr/bin/env python3
"""torch_operators_test.py -- every operator of torch.ops.dualgemm, on the CPU and on a GPU if there is one. The same
fields reach the library by another way, the module's ctypes, and the bits have to be equal. Exits with 77 where there
is no torch, or where its operators are not built.

    torch_operators_test.py MODULE [unittest's arguments]
"""
import ctypes
import itertools
import sys
import unittest
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import torch
except ImportError as error:
    print(f"torch_operators_test.py: skipped, there is no torch: {error}")
    sys.exit(77)
import dualgemm as d  # noqa: E402
try:
    from dualgemm import torch_op  # noqa: E402,F401
except ImportError as error:
    print(f"torch_operators_test.py: skipped: {error}")
    sys.exit(77)

ops = torch.ops.dualgemm
GPU = torch.cuda.is_available()
SIMULATED = GPU and torch.cuda.get_device_name().startswith("simulated")  # torch_simulated_test.py
DEVICES = ("cpu", "cuda") if GPU else ("cpu",)
BF16, FP16, FP32, FP8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
E8M0 = torch.float8_e8m0fnu
M, N, K = 20, 32, 128
HOPPER = not GPU or torch.cuda.get_device_capability() == (9, 0)


def host(tensor):
    """A copy in host memory. It takes no kernel of PyTorch, also where there are gaps."""
    if tensor.device.type == "cpu": return tensor
    memory = tensor.untyped_storage().cpu()
    return torch.empty(0, dtype=tensor.dtype).set_(memory, tensor.storage_offset(), tensor.shape, tensor.stride())


def bits(tensor):
    return host(tensor).contiguous().view(torch.uint8)


def like(tensor):
    """Of its strides, too, where rows have gaps between them."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def stream():
    return torch.cuda.current_stream()


def call(device, on_gpu, on_host, *args, **fields):
    """The module's function for this device, by ctypes."""
    if device == "cuda": return on_gpu(*args, stream=stream(), **fields)
    return on_host(*args, **fields)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(bits(got), bits(wanted)))

    def refused(self, text, function, *args, **named):
        with self.assertRaisesRegex(RuntimeError, text): function(*args, **named)


def packed(device, *shape):
    """Random E2M1 of [..., rows, k] and its factors, none of which is NaN."""
    *problems, rows, k = shape
    q = torch.randint(256, (*problems, rows, k // 2), dtype=torch.uint8)
    factors = torch.randint(0x28, 0x40, (*problems, rows, k // 16), dtype=torch.uint8)
    return q.to(device), ops.sf_swizzle(factors.to(device))


def operands(device, *problems, m=M, n=N, k=K):
    (a, sfa), (b1, sfb1), (b2, sfb2) = (packed(device, *problems, rows, k) for rows in (m, n, n))
    return a, b1, b2, sfa, sfb1, sfb2


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def mxfp4(device, *shape, spread=range(113, 128)):
    """Random E2M1 of [..., rows, k], as checkpoints hold MXFP4, and factors none of which lies more than 14 below
    another: a launch multiplies by such weights as they are."""
    *problems, rows, k = shape
    q = torch.randint(256, (*problems, rows, k // 2), dtype=torch.uint8)
    factors = torch.randint(spread.start, spread.stop, (*problems, rows, k // 32), dtype=torch.uint8)
    return q.to(device), factors.view(E8M0).to(device)


def of_mxfp4(q, factors):
    """The weights in fp64."""
    q, factors = host(q).long(), host(factors).view(torch.uint8).double()
    return E2M1[torch.stack((q & 15, q >> 4), -1).flatten(-2)] * 2.0**(factors - 127).repeat_interleave(32, -1)


def room_of_sums(device, a, b):
    """What sums over K may be off by. On the CPU K products keep 22 places. A Hopper GPU adds up 32 products of FP8 and
    what there was before, and of each keeps 13 places behind the point of the largest."""
    k = a.shape[-1]
    size = a.abs() @ b.abs().mT * k * 2.0**-22
    if device == "cpu": return size
    parts = (a.unsqueeze(-2) * b.unsqueeze(-3)).unflatten(-1, (-1, 32))
    largest = torch.maximum(parts.abs().amax((-2, -1)), parts.sum(-1).cumsum(-1).abs().amax(-1))
    return size + largest * k / 32 * 33 * 2.0**-13


def on_meta(x):
    """The same tensor without memory; other arguments are returned as they are."""
    if not isinstance(x, torch.Tensor): return x
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def vector(device, *shape, dtype=FP32):
    return (torch.rand(shape) + 0.5).to(dtype).to(device)


# Fields of two products, each alone and some together; what is callable makes a tensor on a device.
TWO = [
    {},
    dict(alpha1_dev=lambda dev: vector(dev, 1), alpha2_dev=lambda dev: vector(dev, 1)),
    *[dict(activation=i) for i in range(7)],
    dict(swiglu_alpha=1.702, swiglu_beta=1.0, swiglu_limit=0.25),
    dict(activation=d.ACTIVATION_SITU, situ_gate=2.0, situ_up=3.0),
    dict(a_row_scale=lambda dev: vector(dev, M)), dict(c_row_scale=lambda dev: vector(dev, M)),
    dict(bias1=lambda dev: vector(dev, N, dtype=BF16)), dict(bias2=lambda dev: vector(dev, N)),
    dict(bias1=lambda dev: vector(dev, N), bias2=lambda dev: vector(dev, N), a_row_scale=lambda dev: vector(dev, M)),
    dict(flags=d.FLAG_PDL | d.FLAG_STATIC_WEIGHTS), dict(flags=d.FLAG_BATCH_INVARIANT), dict(flags=d.FLAG_EXACT_ACT),
    dict(max_sms=8),
]
ONE = [
    {}, dict(alpha_dev=lambda dev: vector(dev, 1)), *[dict(activation=i) for i in range(6)],
    dict(a_row_scale=lambda dev: vector(dev, M)), dict(c_row_scale=lambda dev: vector(dev, M)),
    dict(bias=lambda dev: vector(dev, N, dtype=BF16)), dict(bias=lambda dev: vector(dev, N)),
    dict(flags=d.FLAG_BATCH_INVARIANT), dict(max_sms=8),
]
OF_SWIGLU = 2, 0, d.DTYPE_NVFP4, d.DTYPE_BF16  # products, grouped and types of an instance
ROWS_OF_FP8 = dict(scale_mode=d.SCALE_ROW, q_dtype=d.DTYPE_FP8_E4M3)
OF_C = {BF16: d.DTYPE_BF16, FP16: d.DTYPE_FP16, FP32: d.DTYPE_FP32, FP8: d.DTYPE_FP8_E4M3}
FIELD_OF = {"alpha_dev": "alpha1_dev", "bias": "bias1"}  # one product's, as the structure calls them


def made(fields, device):
    return {name: value(device) if callable(value) else value for name, value in fields.items()}


class Launches(Case):
    def by_ctypes(self, device, tensors, out, alphas, fields):
        """The same launch, where `fields` are those of dualgemm_args_t."""
        if len(tensors) == 4:
            a, b, sfa, sfb = tensors
            tensors, fields = (a, b, None, sfa, sfb, None), dict(fields, products=1)
            if "activation" in fields: fields["linear_activation"] = fields.pop("activation")
            fields = {FIELD_OF.get(name, name): value for name, value in fields.items()}
            alphas = (*alphas, 1.0)
        workspace = {}
        if device == "cuda":  # as the operator: room for whatever makes it faster
            room = torch.empty(1 << 26, dtype=torch.uint8, device=device)
            workspace = dict(workspace=room, workspace_size=room.numel())
        call(device, d.launch, d.reference_host, *tensors, out, *alphas, **fields, **workspace)
        return out

    def test_every_argument_of_two_products(self):
        for device, fields in itertools.product(DEVICES, TWO):
            tensors, fields = operands(device), made(fields, device)
            with self.subTest(device, fields=list(fields)):
                got = ops.swiglu(*tensors, 0.01, 0.02, **fields)
                self.same(got, self.by_ctypes(device, tensors, torch.empty_like(got), (0.01, 0.02), fields))

    def test_every_argument_of_one_product(self):
        for device, fields in itertools.product(DEVICES, ONE):
            (a, b, _, sfa, sfb, _), fields = operands(device), made(fields, device)
            with self.subTest(device, fields=list(fields)):
                got = ops.linear(a, b, sfa, sfb, 0.01, **fields)
                self.same(got, self.by_ctypes(device, (a, b, sfa, sfb), torch.empty_like(got), (0.01,), fields))

    def test_every_argument_makes_a_difference(self):
        tensors = operands("cpu")
        plain = ops.swiglu(*tensors, 0.01, 0.02)
        for fields in TWO:
            if fields.keys() <= {"flags", "max_sms"} or fields == dict(activation=0): continue
            if fields == dict(activation=d.ACTIVATION_SWIGLU_STEP): continue  # without a limit it is SwiGLU
            with self.subTest(list(fields)):
                self.assertFalse(torch.equal(plain, ops.swiglu(*tensors, 0.01, 0.02, **made(fields, "cpu"))))

    def test_plain_forms(self):
        """They have the arguments of the whole form that go without a name, and compute the same."""
        names = [name for name in torch_op._SHAPES if "plain" in getattr(ops, name).overloads()]
        self.assertEqual(names, [kind + form for kind in ("swiglu", "linear") for form in ("", "_nvfp4")]
                         + ["swiglu_out", "linear_out"])
        for device, name in itertools.product(DEVICES, names):
            whole, plain = (getattr(getattr(ops, name), form) for form in ("default", "plain"))
            with self.subTest(device, name=name):
                self.assertEqual(*([(argument.name, str(argument.type), argument.default_value)
                                    for argument in operator._schema.arguments if not argument.kwarg_only]
                                   for operator in (plain, whole)))
                self.assertFalse(any(argument.kwarg_only for argument in plain._schema.arguments))
                for args in self.arguments_of_plain(device, name):
                    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
                    results = plain(*args), whole(*copies)
                    got, wanted = ((args[self.place_of_out(name)], copies[self.place_of_out(name)])
                                   if name.endswith("_out") else results)
                    for one, other in zip(got, wanted) if isinstance(got, tuple) else ((got, wanted),):
                        self.same(one, other)

    @staticmethod
    def place_of_out(name):
        return 6 if name.startswith("swiglu") else 4

    @staticmethod
    def arguments_of_plain(device, name):
        """Those without a default; and all, none of which has its default's value."""
        a, b1, b2, sfa, sfb1, sfb2 = operands(device, m=128)  # a whole block: other factors of C may hold anything
        first = [a, b1, b2, sfa, sfb1, sfb2] if name.startswith("swiglu") else [a, b1, sfa, sfb1]
        alphas = len(first) // 2 - 1  # as many as products
        if name.endswith("_out"): first.append(torch.zeros(128, N, dtype=BF16, device=device))
        yield first
        numbers = [0.25, 0.125][:alphas] + ([FP16] if "_" not in name else [])
        yield [*(arg.clone() for arg in first), *numbers, *(vector(device, 1) for _ in range(alphas))]

    def test_types_of_c(self):
        for device, dtype in itertools.product(DEVICES, OF_C):
            tensors = operands(device)
            got = ops.swiglu(*tensors, 0.01, 0.02, dtype)
            self.same(got, self.by_ctypes(device, tensors, torch.empty_like(got), (0.01, 0.02), {}))
            one = tensors[0], tensors[1], tensors[3], tensors[4]
            got = ops.linear(*one, 0.01, dtype)
            self.same(got, self.by_ctypes(device, one, torch.empty_like(got), (0.01,), {}))

    def test_nvfp4(self):
        for device, problems in itertools.product(DEVICES, ((), (2,))):
            tensors, scale = operands(device, *problems), vector(device, 1)
            fields = dict(c_global_scale=3.0, c_global_scale_dev=scale)
            got, sfc = ops.swiglu_nvfp4(*tensors, 0.01, 0.02, **fields)
            wanted, factors = torch.empty_like(got), torch.empty_like(sfc)
            self.by_ctypes(device, tensors, wanted, (0.01, 0.02), dict(fields, sfc=factors, c_dtype=d.DTYPE_NVFP4))
            self.same(got, wanted)
            rows = ops.sf_unswizzle(sfc, M, N)  # rows beyond the last may hold anything
            self.same(rows, ops.sf_unswizzle(factors, M, N))
            out, of_out = torch.empty_like(got), torch.empty_like(sfc)
            ops.swiglu_out(*tensors, out, 0.01, 0.02, sfc=of_out, **fields)
            self.same(out, got)
            one = tensors[0], tensors[1], tensors[3], tensors[4]
            got, sfc = ops.linear_nvfp4(*one, 0.01, **fields)
            ops.linear_out(*one, out, 0.01, sfc=of_out, **fields)
            self.same(out, got)
            self.same(ops.sf_unswizzle(of_out, M, N), ops.sf_unswizzle(sfc, M, N))

    def test_all_outputs(self):
        for device, dtype in itertools.product(DEVICES, (BF16, FP16, FP32)):
            tensors = operands(device)

            def outputs(): return [torch.zeros(M, N, dtype=t, device=device) for t in (BF16, dtype, dtype)]
            out, d1, d2 = outputs()
            amax, wanted = torch.zeros(1, device=device), outputs()
            ops.swiglu_out(*tensors, out, 0.01, 0.02, d1=d1, d2=d2, amax_out=amax)
            maximum = torch.zeros(1, device=device)
            self.by_ctypes(device, tensors, wanted[0], (0.01, 0.02), dict(d1=wanted[1], d2=wanted[2], amax_out=maximum))
            for got, expected in zip((out, d1, d2, amax), (*wanted, maximum)): self.same(got, expected)
            self.assertGreater(float(amax), 0)

    def test_the_largest_element(self):
        """amax_out rises to the largest element of C in fp32, and never falls."""
        for device in DEVICES:
            tensors, out = operands(device), torch.zeros(M, N, device=device)
            one = tensors[0], tensors[1], tensors[3], tensors[4]
            for operator, args in (ops.swiglu_out, tensors), (ops.linear_out, one):
                for alpha in (0.01, 0.02):
                    for before in (0.0, 1e-30, 1e30):
                        amax = torch.full((1,), before).to(device)
                        operator(*args, out, alpha, amax_out=amax)
                        largest = float(host(out).abs().max())
                        self.assertGreater(largest, 1e-30)
                        self.assertEqual(float(amax), max(largest, torch.tensor(before).item()))

    def test_flags_that_change_no_bit(self):
        """A chain of calls, each of which may begin before the one in front of it has ended."""
        for device in DEVICES:
            tensors, x = operands(device, k=64), torch.randn(M, 64).to(device)
            down, sfb = packed(device, 48, N)
            ids = (torch.arange(2 * M, dtype=torch.int32) % 3).view(M, 2).to(device)

            def chain(flags):
                pdl = flags & d.FLAG_PDL
                a, sfa, _ = ops.quantize(x, 100.0, flags=pdl)
                h, sfh = ops.swiglu_nvfp4(a, *tensors[1:3], sfa, *tensors[4:], 1e-3, 1e-3, c_global_scale=10.0,
                                          flags=flags)
                y = ops.linear(h, down, sfh, sfb, 0.5, flags=flags)
                _, row_token, token_row, _ = ops.moe_permute(ids, None, 3, flags=pdl)
                rows = ops.moe_gather(y, row_token, flags=pdl)
                return y, rows, ops.moe_combine(rows, token_row, flags=pdl)
            wanted = chain(0)
            for flags in (d.FLAG_PDL, d.FLAG_STATIC_WEIGHTS, d.FLAG_PDL | d.FLAG_STATIC_WEIGHTS, d.FLAG_CHECK_POINTERS):
                for got, expected in zip(chain(flags), wanted): self.same(got, expected)

    def test_fewer_sms(self):
        """No number of them changes what a launch of these few rows adds up, in which order."""
        for device in DEVICES:
            tensors, fixed = operands(device), dict(flags=d.FLAG_BATCH_INVARIANT)
            wanted = ops.swiglu(*tensors, 0.01, 0.02, **fixed)
            for max_sms in (2, 8, 1 << 20):
                self.same(ops.swiglu(*tensors, 0.01, 0.02, max_sms=max_sms, **fixed), wanted)

    def test_a_of_16_bits(self):
        for device, dtype in itertools.product(DEVICES, (BF16, FP16)):
            if device == "cuda" and not HOPPER: continue
            a, (_, b1, b2, _, sfb1, sfb2) = torch.randn(M, K, dtype=dtype).to(device), operands(device)
            got = ops.swiglu(a, b1, b2, None, sfb1, sfb2, 0.01, 0.02)
            wanted = torch.empty_like(got)
            self.same(got, self.by_ctypes(device, (a, b1, b2, None, sfb1, sfb2), wanted, (0.01, 0.02), {}))

    def test_mxfp4_by_an_a_in_fp8(self):
        """Against ctypes, bit for bit, and against the formats in fp64."""
        x = torch.randn(M, K, dtype=BF16)
        for device, problems in itertools.product(DEVICES if HOPPER else ("cpu",), ((), (3,))):
            weights = [mxfp4(device, *problems, N, K) for _ in range(2)]
            a, _, scale = ops.quantize(x.expand(*problems, M, K).contiguous().to(device), **ROWS_OF_FP8)
            (sf1, e1, _), (sf2, e2, _) = (ops.prepare_mxfp4(*weight) for weight in weights)
            b1, b2 = (q for q, _ in weights)
            fields = dict(a_row_scale=scale, b1_row_exponent=e1, b2_row_exponent=e2)
            args = a, b1, b2, None, sf1, sf2
            got = ops.swiglu(*args, 0.01, 0.02, **fields)
            wanted = self.by_ctypes(device, args, torch.empty_like(got), (0.01, 0.02), fields)
            self.same(got, wanted)
            as_bytes = *args[:4], sf1.view(torch.uint8), sf2.view(torch.int8)
            self.same(ops.swiglu(*as_bytes, 0.01, 0.02, **fields, b_dtype=d.DTYPE_MXFP4), got)
            self.same(torch_op.direct.swiglu(*args, 0.01, 0.02, **fields), got)
            out = torch.zeros_like(got)
            for function in ops.swiglu_out, torch_op.direct.swiglu_out:
                function(*args, out.zero_(), 0.01, 0.02, **fields)
                self.same(out, got)
            rows = host(a).double() * host(scale).double()[..., None]
            g, u = (rows @ of_mxfp4(*weight).mT * alpha for weight, alpha in zip(weights, (0.01, 0.02)))
            h = g * torch.sigmoid(g) * u
            # 1.2 is above the slope of silu; C is rounded to 2^-9 of it.
            size = [room_of_sums(device, rows, of_mxfp4(*w)) * alpha for w, alpha in zip(weights, (0.01, 0.02))]
            bound = 1.2 * size[0] * (u.abs() + size[1]) + (g.abs() + size[0]) * size[1] + h.abs() * 2.0**-8
            self.assertLessEqual(float(((host(got).double() - h).abs() - bound).max()), 0)
            self.assertGreater(float(h.norm()), 3 * float(bound.norm()))
            one = dict(a_row_scale=scale, b_row_exponent=e1)
            got = ops.linear(a, b1, None, sf1, 0.01, FP32, **one)
            self.same(got, self.by_ctypes(device, (a, b1, None, sf1), torch.empty_like(got), (0.01,),
                                          dict(a_row_scale=scale, b1_row_exponent=e1)))
            self.assertLessEqual(float(((host(got).double() - g).abs() - size[0]).max()), 0)
            self.same(torch_op.direct.linear(a, b1, None, sf1, 0.01, FP32, **one), got)
            self.assertFalse(torch.equal(bits(ops.linear(a, b1, None, sf1, 0.01, FP32, a_row_scale=scale)), bits(got)))

    def test_experts_in_mxfp4(self):
        """With OFFSETS, each group against a launch of its own."""
        for device in DEVICES if HOPPER else ("cpu",):
            (b1, f1), (b2, f2) = weights = [mxfp4(device, 3, N, K) for _ in range(2)]
            offsets = torch.tensor([0, 5, 5, 17], dtype=torch.int32, device=device)
            a, _, scale = ops.quantize(torch.randn(M, K).to(device), **ROWS_OF_FP8)
            (sf1, e1, _), (sf2, e2, _) = (ops.prepare_mxfp4(*weight) for weight in weights)
            out, same_bits = torch.zeros(M, N, dtype=BF16, device=device), dict(flags=d.FLAG_BATCH_INVARIANT)
            ops.swiglu_out(a, b1, b2, None, sf1, sf2, out, 0.01, 0.02, a_row_scale=scale, b1_row_exponent=e1,
                           b2_row_exponent=e2, group_rows=offsets, **same_bits)
            for g, (begin, end) in enumerate(((0, 5), (5, 5), (5, 17))):
                alone = ops.swiglu(a[begin:end], b1[g], b2[g], None, sf1[g], sf2[g], 0.01, 0.02,
                                   a_row_scale=scale[begin:end], b1_row_exponent=e1[g], b2_row_exponent=e2[g],
                                   **same_bits)
                if device == "cpu": self.same(out[begin:end], alone)
                else: self.assertTrue(torch.allclose(host(out[begin:end]), host(alone), rtol=2.0**-7))
            self.assertEqual(float(host(out)[17:].float().abs().max()), 0)

    def test_refusals_of_mxfp4(self):
        (b1, f1), (b2, f2) = (mxfp4("cpu", N, K) for _ in range(2))
        (sf1, e1, _), (sf2, e2, _) = ops.prepare_mxfp4(b1, f1), ops.prepare_mxfp4(b2, f2)
        a, wide = torch.zeros(M, K).to(FP8), torch.zeros(M, K, dtype=BF16)
        nvfp4 = operands("cpu")
        for text, args, fields in (
                ("^DUALGEMM_STATUS_NOT_SUPPORTED: ", (wide, b1, b2, None, sf1, sf2), {}),
                ("^DUALGEMM_STATUS_NOT_SUPPORTED: ", (a, *nvfp4[1:3], None, *nvfp4[4:]), {}),
                ("^DUALGEMM_STATUS_INVALID_VALUE: b_dtype=2", (a, b1, b2, None, *nvfp4[4:]), dict(b_dtype=2)),
                ("^sfa: must be None with an a of torch.float8_e4m3fn", (a, b1, b2, nvfp4[3], sf1, sf2), {}),
                ("^sfb2: its elements are torch.float8_e4m3fn, and must be one of torch.uint8, torch.int8, "
                 "torch.float8_e8m0fnu", (a, b1, b2, None, sf1, nvfp4[5].view(FP8)), {}),
                ("^sfb1: has 256 bytes, and 512 are needed", (a, b1, b2, None, sf1[:256], sf2), {}),
                ("^b2_row_exponent: its elements are torch.int32", (a, b1, b2, None, sf1, sf2),
                 dict(b2_row_exponent=e2.int())),
                ("^b1_row_exponent: has 62 bytes, and 64 are needed", (a, b1, b2, None, sf1, sf2),
                 dict(b1_row_exponent=e1[1:])),
                ("^DUALGEMM_STATUS_INVALID_VALUE: b1_row_exponent", nvfp4, dict(b1_row_exponent=e1))):
            for placed in (lambda x: x, on_meta):
                with self.subTest(text):
                    self.refused(text, ops.swiglu, *map(placed, args), **{key: placed(x) for key, x in fields.items()})

    def test_an_addend(self):
        for device in DEVICES:
            a, b, _, sfa, sfb, _ = operands(device)
            add = torch.randn(M, N, dtype=BF16).to(device)
            got = ops.linear(a, b, sfa, sfb, 0.01, c_add=add)
            wanted = torch.empty_like(got)
            self.same(got, self.by_ctypes(device, (a, b, sfa, sfb), wanted, (0.01,), dict(c_add=add)))
            ops.linear_out(a, b, sfa, sfb, add, 0.01, c_add=add)
            self.same(add, got)

    def test_batches_and_groups(self):
        for device in DEVICES:
            batch = operands(device, 3)
            alphas = dict(alpha1_dev=vector(device, 3), alpha2_dev=vector(device, 3))
            biases = dict(bias1=vector(device, 3, N), bias2=vector(device, 3, N), a_row_scale=vector(device, 3, M))
            same_bits = dict(flags=d.FLAG_BATCH_INVARIANT)
            got = ops.swiglu(*batch, 0.01, 0.02, FP32, **alphas, **biases, **same_bits)
            for i in range(3):
                each = {name: t[i:i + 1] if t.dim() == 1 else t[i] for name, t in {**alphas, **biases}.items()}
                self.same(got[i], ops.swiglu(*(t[i] for t in batch), 0.01, 0.02, FP32, **each, **same_bits))
            counts = torch.tensor([3, 0, M], dtype=torch.int32, device=device)
            out = torch.zeros(3, M, N, dtype=FP32, device=device)
            ops.swiglu_out(*batch, out, 0.01, 0.02, group_rows=counts, **alphas, **biases, **same_bits)
            self.same(out[2], got[2])
            self.same(out[0, :3], got[0, :3])
            self.assertEqual(float(host(out)[1].abs().max() + host(out)[0, 3:].abs().max()), 0)

    def test_offsets(self):
        for device in DEVICES:
            _, b1, b2, _, sfb1, sfb2 = operands(device, 3)
            offsets = torch.tensor([0, 5, 5, 17], dtype=torch.int32, device=device)
            a = ops.quantize(torch.randn(M, K).to(device), 100.0, group_rows=offsets)[:2]
            self.assertEqual(a[1].numel(), d.sf_size(128, K) * ((M + 127 * 3) // 128))
            out = torch.zeros(M, N, dtype=BF16, device=device)
            ops.swiglu_out(a[0], b1, b2, a[1], sfb1, sfb2, out, 0.01, 0.02, group_rows=offsets,
                           expected_rows=6)
            wanted = torch.zeros_like(out)
            self.by_ctypes(device, (a[0], b1, b2, a[1], sfb1, sfb2), wanted, (0.01, 0.02),
                           dict(group_rows=offsets, group_mode=d.GROUP_OFFSETS, groups=3, expected_rows=6))
            self.same(out, wanted)
            self.assertEqual(float(host(out)[17:].float().abs().max()), 0)
            self.assertGreater(float(host(out)[:17].float().abs().max()), 0)

    def test_nothing_to_do(self):
        for device in DEVICES:
            _, b1, b2, _, sfb1, sfb2 = operands(device)
            a, sfa = torch.empty(0, K // 2, dtype=torch.uint8, device=device), torch.empty(0, dtype=torch.uint8,
                                                                                           device=device)
            self.assertEqual(ops.swiglu(a, b1, b2, sfa, sfb1, sfb2).shape, (0, N))

    def test_refusals(self):
        a, b1, b2, sfa, sfb1, sfb2 = tensors = operands("cpu")
        for text, fields in ((r"^DUALGEMM_STATUS_INVALID_VALUE: activation=17: ", dict(activation=17)),
                             (r"^DUALGEMM_STATUS_INVALID_VALUE: flags=0x100", dict(flags=256)),
                             (r"^activation=-1: ", dict(activation=-1)),
                             (r"^max_sms=4294967296: the library's field has 32 bits", dict(max_sms=1 << 32)),
                             (r"^a_row_scale: has 76 bytes, and 80 are needed", dict(a_row_scale=torch.ones(M - 1))),
                             (r"^c_row_scale: has 84 bytes, and 80 are needed", dict(c_row_scale=torch.ones(M + 1))),
                             (r"^bias1: has 62 bytes, and 64", dict(bias1=torch.ones(N - 1, dtype=BF16))),
                             (r"^bias2: has 256 bytes, and 128", dict(bias2=torch.ones(2, N))),
                             (r"^bias2: must have the type of bias1, torch.bfloat16",
                              dict(bias1=torch.ones(N, dtype=BF16), bias2=torch.ones(N))),
                             (r"^DUALGEMM_STATUS_INVALID_VALUE: expected_rows=3: ", dict(expected_rows=3)),
                             (r"^group_rows: its elements are torch.int64",
                              dict(group_rows=torch.zeros(2, dtype=torch.int64))),
                             (r"^alpha1_dev: lies on meta, and a on cpu",
                              dict(alpha1_dev=torch.ones(1, device="meta")))):
            self.refused(text, ops.swiglu, *tensors, **fields)
        out = torch.empty(M, N, dtype=BF16)
        self.refused("^sfc: must be None with an out of torch.bfloat16", ops.swiglu_out, *tensors, out, sfc=sfa)
        self.refused("^sfc: must be given with an out of torch.uint8", ops.swiglu_out, *tensors, a[:, :N // 2].clone())
        self.refused(r"^out: must be \[1, 20, 32\], and is \[1, 19, 32\]", ops.swiglu_out, *tensors, out[:-1])
        self.refused("ALIASING", ops.swiglu_out, *tensors, b1.flatten()[:2 * M * N].view(BF16).view(M, N))
        self.refused("^d1: its elements are torch.float64", ops.swiglu_out, *tensors, out, d1=out.double(), d2=out)
        self.refused("d1|d2", ops.swiglu_out, *tensors, out, d1=torch.empty_like(out))
        self.refused("^c_add: its elements are torch.float32, and must be one of torch.bfloat16", ops.linear, a, b1,
                     sfa, sfb1, c_add=torch.zeros(M, N))
        self.refused("^a and b have one k", ops.linear, a, b1[:, 16:], sfa, sfb1)
        self.refused("^n=24: must be a multiple of 16 with an NVFP4 C", ops.swiglu_nvfp4, a, b1[:24], b2[:24], sfa,
                     sfb1, sfb2)


class Conversions(Case):
    def test_quantize(self):
        for device, dtype, mode, problems in itertools.product(DEVICES, (BF16, FP16, FP32), range(3), ((), (2,))):
            x = torch.randn(*problems, 33, 80).to(device, dtype)
            given = dict(global_scale=3.0, global_scale_dev=vector(device, 1)) if mode == d.SCALE_GIVEN else {}
            q, sf, scales = ops.quantize(x, **given, scale_mode=mode)
            wanted, factors, numbers = map(like, (q, sf, scales))
            written = {d.SCALE_TENSOR: dict(tensor_scales=numbers), d.SCALE_ROW: dict(row_scale=numbers)}.get(mode, {})
            call(device, d.quantize, d.quantize_host, x, wanted, factors, scale_mode=mode, **given, **written)
            for got, expected in zip((q, sf, scales), (wanted, factors, numbers)): self.same(got, expected)
            out = like(q), like(sf)
            ops.quantize_out(x, *out, **given, scale_mode=mode, scales=torch.empty_like(scales) if mode else None)
            for got, expected in zip(out, (q, sf)): self.same(got, expected)

    def test_quantize_to_fp8(self):
        fp8 = dict(q_dtype=d.DTYPE_FP8_E4M3)
        for device, dtype, mode, problems in itertools.product(DEVICES, (BF16, FP32), range(3), ((), (2,))):
            x = torch.randn(*problems, 33, 48).to(device, dtype)
            given = dict(global_scale=3.0, global_scale_dev=vector(device, 1)) if mode == d.SCALE_GIVEN else {}
            q, sf, scales = ops.quantize(x, **given, scale_mode=mode, **fp8)
            self.assertEqual((q.dtype, q.shape, sf.shape), (FP8, x.shape, (*problems, 0)))
            wanted, numbers = like(q), like(scales)
            written = {d.SCALE_TENSOR: dict(tensor_scales=numbers), d.SCALE_ROW: dict(row_scale=numbers)}.get(mode, {})
            call(device, d.quantize, d.quantize_host, x, wanted, None, scale_mode=mode, **given, **written, **fp8)
            for got, expected in zip((q, scales), (wanted, numbers)): self.same(got, expected)
            out = like(q)
            ops.quantize_out(x, out, sf, **given, scale_mode=mode, scales=torch.empty_like(scales) if mode else None,
                             **fp8)
            self.same(out, q)

    def test_prepare_mxfp4(self):
        """Element times factor stays what it was, and the largest factor of a row is 2^6."""
        for device, problems in itertools.product(DEVICES, ((), (3,))):
            q, factors = mxfp4("cpu", *problems, 2 * N, 96, spread=range(66, 200))
            q[..., 1, :16] = 0x80  # a block of zeros
            q, factors = q.to(device), factors.to(device)
            for rows in slice(None), slice(0, None, 2):  # of every other row, as where gate and up alternate
                part, scales = q[..., rows, :], factors[..., rows, :]
                sf, exponent, counts = ops.prepare_mxfp4(part, scales)
                n = part.shape[-2]
                self.assertEqual((sf.dtype, sf.shape), (E8M0, (*problems, d.sf_size_of(d.DTYPE_MXFP4, n, 96))))
                # Atoms of 32 elements for each factor lie as those of half as many elements with 16.
                byte = host(ops.sf_unswizzle(sf.view(torch.uint8), n, 48)).double()
                self.assertEqual(byte.amax(-1).unique().tolist(), [133])
                raised = byte.int() + host(exponent).int()[..., None]
                at = of_mxfp4(part, raised.clamp(min=0).to(torch.uint8))
                self.assertTrue(torch.equal(at, of_mxfp4(part, scales)))
                outputs = (*(torch.zeros(t.shape, dtype=t.dtype).to(device) for t in (sf.view(torch.uint8), exponent)),
                           torch.ones(4, dtype=torch.int32).to(device))
                ops.prepare_mxfp4_out(part, scales.view(torch.uint8), *outputs)
                for got, wanted in zip(outputs, (sf.view(torch.uint8), exponent, host(counts) + 1)):
                    self.same(got, wanted)
                outputs = like(sf), like(exponent)
                numbers = torch.zeros(4, dtype=torch.uint32).to(device)
                call(device, d.prepare_mxfp4, d.prepare_mxfp4_host, part, scales, *outputs, counts=numbers)
                for got, wanted in zip((*outputs, numbers.view(torch.int32)), (sf, exponent, counts)):
                    self.same(got, wanted)
                direct = torch_op.direct.prepare_mxfp4(part, scales)
                for got, wanted in zip(direct, (sf, exponent, counts)): self.same(got, wanted)
            below = host(scales).view(torch.uint8).int()
            nonzero = (host(part) & 0x77).unflatten(-1, (-1, 16)).amax(-1) > 0
            largest = below.masked_fill(~nonzero, 0).amax(-1, keepdim=True)
            rounded = nonzero & (largest - below > 14)
            self.assertEqual(host(counts).tolist(), [int(nonzero.sum()), int(rounded.sum()), 0, 0])
            sf, exponent, counts = ops.prepare_mxfp4(torch.full((1, 48), 0x11, dtype=torch.uint8).to(device),
                                                     torch.tensor([[0, 255, 200]], dtype=torch.uint8).to(device))
            self.assertEqual((host(exponent).tolist(), host(counts).tolist()), ([67], [3, 1, 1, 1]))
            self.assertEqual(bits(ops.sf_unswizzle(sf.view(torch.uint8), 1, 48)).tolist(), [[0, 255, 133]])

    def test_refusals_of_prepare_mxfp4(self):
        q, factors = mxfp4("cpu", N, 96)
        for text, args in ((r"^scales: must have a factor for each 32 of q's elements, \[1, 32, 3\]",
                            (q, factors[:-1])),
                           ("^scales: its elements are torch.float8_e4m3fn", (q, factors.view(FP8))),
                           ("^DUALGEMM_STATUS_INVALID_SHAPE: k=48: must be a multiple of 32",
                            (q[:1, :24], factors[:1, :1])),
                           ("^DUALGEMM_STATUS_[A-Z_]*: ", (q[:, 1:17], factors[:, :1])),
                           ("^q: its elements are torch.float32", (q.float(), factors))):
            with self.subTest(text): self.refused(text, ops.prepare_mxfp4, *args)
        self.refused("^row_exponent: has 62 bytes, and 64 are needed", ops.prepare_mxfp4_out, q, factors,
                     torch.zeros(512, dtype=torch.uint8), torch.zeros(N - 1, dtype=torch.int16))
        self.refused("^sf: has 511 bytes, and 512", ops.prepare_mxfp4_out, q, factors,
                     torch.zeros(511, dtype=torch.uint8), torch.zeros(N, dtype=torch.int16))

    def test_rows_by_index_and_groups(self):
        for device in DEVICES:
            x, index = torch.randn(5, 64).to(device), torch.tensor([4, 0, -1, 0], dtype=torch.int32, device=device)
            q, _, _ = ops.quantize(x, 100.0, row_index=index)
            by_row = ops.quantize(x, 100.0)[0]
            self.same(q[:2], host(by_row)[[4, 0]])
            self.assertEqual(int(host(q)[2].max()), 0)
            several = torch.randn(2, 5, 64).to(device)
            counts = torch.tensor([2, 5], dtype=torch.int32, device=device)
            q = ops.quantize(several, 100.0, group_rows=counts)[0]
            self.same(q[0, :2], ops.quantize(several[0], 100.0)[0][:2])
            self.same(q[1], ops.quantize(several[1], 100.0)[0])

    def test_factors(self):
        for device, problems in itertools.product(DEVICES, ((), (3,))):
            rows = torch.randint(256, (*problems, 130, 5), dtype=torch.uint8).to(device)
            atoms = ops.sf_swizzle(rows)
            self.assertEqual(atoms.shape, (*problems, d.sf_size(130, 80)))
            for i in range(problems[0] if problems else 1):
                one, expected = (rows[i], atoms[i]) if problems else (rows, atoms)
                wanted = torch.zeros(d.sf_size(130, 80), dtype=torch.uint8, device=device)
                call(device, d.sf_swizzle, d.sf_swizzle_host, one.contiguous(), wanted, 130, 80)
                self.same(expected, wanted)
            self.same(ops.sf_unswizzle(atoms, 130, 80), rows)
            out = torch.empty_like(atoms)
            ops.sf_swizzle_out(rows, out)
            self.same(out, atoms)
            back = torch.zeros_like(rows)
            ops.sf_unswizzle_out(atoms, back, 130, 80)
            self.same(back, rows)
            interleaved = torch.randint(256, (64, 8), dtype=torch.uint8)
            self.same(ops.sf_swizzle(interleaved.to(device)[::2]), ops.sf_swizzle(interleaved[::2].to(device)))

    def test_refusals(self):
        self.refused("^k=24: must be a multiple of 16", ops.quantize, torch.zeros(2, 24))
        self.refused("^x: its elements are torch.float64", ops.quantize, torch.zeros(2, 32, dtype=torch.float64))
        self.refused("^DUALGEMM_STATUS_INVALID_VALUE: scale_mode=3", ops.quantize, torch.zeros(2, 32), scale_mode=3)
        self.refused("^row_index: its elements are torch.int64", ops.quantize, torch.zeros(2, 32),
                     row_index=torch.zeros(2, dtype=torch.int64))
        q = torch.zeros(2, 16, dtype=torch.uint8)
        self.refused("^sf: has 16 bytes, and 512 are needed", ops.quantize_out, torch.zeros(2, 32), q, q[0])
        self.refused("^sf: has 32 elements, and FP8 has no factors", ops.quantize_out, torch.zeros(2, 16), q, q,
                     q_dtype=d.DTYPE_FP8_E4M3)
        self.refused("^DUALGEMM_STATUS_INVALID_VALUE: q_dtype=2", ops.quantize, torch.zeros(2, 32), q_dtype=2)
        self.refused("^scales: must be given with scale_mode=2", ops.quantize_out, torch.zeros(2, 32), q,
                     torch.zeros(512, dtype=torch.uint8), scale_mode=2)
        self.refused("^src: has 16 bytes, and 512 are needed", ops.sf_unswizzle, q[0], 2, 16)


class Experts(Case):
    def test_the_whole_layer(self):
        """Against a plain loop over tokens and choices, of operators without groups."""
        tokens, experts, top_k, hidden, inner = 7, 4, 2, 64, 32
        same_bits = dict(flags=d.FLAG_BATCH_INVARIANT)  # an element of h might else round the other way
        for device in DEVICES:
            gate, up, down = (packed(device, experts, rows, k) for rows, k in
                              ((inner, hidden), (inner, hidden), (hidden, inner)))
            x = torch.randn(tokens, hidden).to(BF16)
            add, x_on_host, x = x.float().to(device), x, x.to(device)
            ids = torch.randint(-1, experts, (tokens, top_k), dtype=torch.int32).to(device)
            weights = torch.rand(tokens, top_k).to(device)
            groups, row_token, token_row, row_weight = ops.moe_permute(ids, weights, experts)
            self.same(ops.moe_permute(ids, None, experts)[2], token_row)
            a, sfa, _ = ops.quantize(x, 100.0, row_index=row_token, group_rows=groups)
            h, sfh = ops.swiglu_nvfp4(a, gate[0], up[0], sfa, gate[1], up[1], 1e-3, 1e-3, c_global_scale=10.0,
                                      group_rows=groups, **same_bits)
            y = ops.linear(h, down[0], sfh, down[1], 1e-2, FP32, c_row_scale=row_weight, group_rows=groups)
            by_launch = ops.moe_combine(y, token_row, add)
            y = ops.linear(h, down[0], sfh, down[1], 1e-2, FP32, group_rows=groups)
            by_sum = ops.moe_combine(y, token_row, add, topk_weights=weights)
            for t in range(tokens):
                a, sfa, _ = ops.quantize(x[t:t + 1], 100.0)
                total = x_on_host[t].float()
                for s in range(top_k):
                    e = int(ids[t, s])
                    if e < 0: continue
                    h, sfh = ops.swiglu_nvfp4(a, gate[0][e], up[0][e], sfa, gate[1][e], up[1][e], 1e-3, 1e-3,
                                              c_global_scale=10.0, **same_bits)
                    y = ops.linear(h, down[0][e], sfh, down[1][e], 1e-2, FP32, c_row_scale=weights[t, s:s + 1])
                    total += host(y)[0]
                for out in (by_launch, by_sum):
                    self.assertTrue(torch.allclose(host(out)[t], total, rtol=1e-5, atol=1e-5))

    def test_permute_and_combine_are_those_of_the_module(self):
        for device, with_weights in itertools.product(DEVICES, (False, True)):
            ids = torch.randint(-1, 5, (9, 3), dtype=torch.int32).to(device)
            weights = torch.rand(9, 3).to(device) if with_weights else None
            got = ops.moe_permute(ids, weights, 5)
            wanted = [torch.empty_like(t) for t in got]
            more = dict(topk_weights=weights, row_weight=wanted[3]) if with_weights else {}
            call(device, d.moe_permute, d.moe_permute_host, ids, 5, *wanted[:3], **more)
            for a, b in zip(got, wanted): self.same(a, b)
            out = [torch.empty_like(t) for t in got]
            ops.moe_permute_out(ids, weights, 5, *out[:3], out[3] if with_weights else None)
            for a, b in zip(got, out): self.same(a, b)
            c, add = torch.randn(27, 16).to(device, BF16), torch.randn(9, 16).to(device)
            sums = ops.moe_combine(c, got[2], add, FP32, topk_weights=weights)
            wanted = torch.empty_like(sums)
            more = dict(topk_weights=weights) if with_weights else {}
            call(device, d.moe_combine, d.moe_combine_host, c, got[2], wanted, add=add, **more)
            self.same(sums, wanted)
            places, addend = host(got[2]), host(add).double()
            shares = torch.where(places < 0, 0.0, host(weights) if with_weights else 1.0)
            rows = host(c).double()[places.clamp(min=0).long()] * shares.double()[..., None]
            bound = (rows.abs().sum(1) + addend.abs()) * 4 * 2.0**-24  # four roundings of what is at most this large
            self.assertTrue(bool(((host(sums).double() - rows.sum(1) - addend).abs() <= bound).all()))
            ops.moe_combine_out(c, got[2], add, add, topk_weights=weights)
            self.same(add, sums)
            self.assertEqual(ops.moe_combine(c, got[2]).dtype, BF16)

    def test_gather_copies_the_rows_that_are_named(self):
        for device, dtype in itertools.product(DEVICES, (BF16, torch.float16)):
            x, sevens = torch.randn(5, 24).to(dtype), torch.full((5, 24), 7, dtype=dtype)
            rows = torch.tensor([4, -1, 0, 5, 4], dtype=torch.int32, device=device)
            self.same(host(ops.moe_gather(x.to(device), rows))[[0, 2, 4]], x[[4, 0, 4]])
            out = sevens.to(device, copy=True)
            ops.moe_gather_out(x.to(device), rows, out)
            self.same(out, torch.stack([x[4], sevens[1], x[0], sevens[1], x[4]]))

    def test_refusals(self):
        ids, x = torch.zeros(3, 2, dtype=torch.int32), torch.zeros(4, 16, dtype=BF16)
        self.refused("^x: its elements are torch.float32", ops.moe_gather, x.float(), ids[0])
        self.refused("^x: has 3 dimensions, and must have 2", ops.moe_gather, x[None], ids[0])
        self.refused("^row_index: its elements are torch.int64", ops.moe_gather, x, ids[0].long())
        self.refused(r"^out: must be \[2, 16\]", ops.moe_gather_out, x, ids[0], x)
        self.refused("^topk_ids: its elements are torch.int64", ops.moe_permute, ids.long(), None, 4)
        self.refused("^experts=0: must be 1 to 1024", ops.moe_permute, ids, None, 0)
        self.refused("^topk_ids: has 1 dimensions", ops.moe_permute, ids[0], None, 4)
        self.refused(r"^c: must be \[6, 8\]", ops.moe_combine, torch.zeros(5, 8), ids)
        def weighted(weights): return ops.moe_combine(torch.zeros(6, 8), ids, topk_weights=weights)
        self.refused("^topk_weights: its elements are torch.bfloat16", weighted, torch.zeros(3, 2, dtype=BF16))
        self.refused(r"^topk_weights: must be \[3, 2\], as token_row is", weighted, torch.zeros(2, 3))
        self.refused("^topk_weights: has 1 dimensions", weighted, torch.zeros(6))
        self.refused("^topk_weights", weighted, torch.zeros(2, 3).t())
        self.refused(r"^topk_weights: must be \[3, 2\], as topk_ids is", ops.moe_permute, ids, torch.zeros(2, 3), 4)
        self.refused("^out_dtype=torch.int32", ops.moe_combine, torch.zeros(6, 8), ids, None, torch.int32)


class Empty(Case):
    """Without problems, rows or tokens there is nothing to compute, and results are empty."""

    def test_batches(self):
        for device in DEVICES:
            def tensors(*problems): return operands(device, *problems)
            a, b1, b2, sfa, sfb1, sfb2 = tensors(0)
            none = torch.zeros(0, dtype=torch.int32, device=device)
            one, vectors = (a, b1, sfa, sfb1), dict(bias1=vector(device, N), a_row_scale=vector(device, 0, M))
            for named in ({}, vectors, dict(group_rows=none), dict(group_rows=none, expected_rows=7)):
                self.assertEqual(ops.swiglu(a, b1, b2, sfa, sfb1, sfb2, **named).shape, (0, M, N))
                q, sf = ops.swiglu_nvfp4(a, b1, b2, sfa, sfb1, sfb2, **named)
                self.assertEqual((q.shape, sf.shape), ((0, M, N // 2), (0, d.sf_size(M, N))))
            self.assertEqual(ops.linear(*one).shape, (0, M, N))
            ops.linear_out(*one, torch.zeros(0, M, N, dtype=BF16, device=device))
            self.refused("^DUALGEMM_STATUS_INVALID_VALUE: linear_activation=9", ops.linear, *one, activation=9)
            self.refused(r"^out: must be \[0, 20, 32\], and is \[1, 20, 32\]", ops.linear_out, *one,
                         torch.zeros(M, N, dtype=BF16, device=device))
            x = torch.zeros(0, 5, 64, device=device)
            for named in ({}, dict(group_rows=none), dict(scale_mode=d.SCALE_ROW)):
                q, sf, scales = ops.quantize(x, **named)
                self.assertEqual((q.shape, sf.shape), ((0, 5, 32), (0, d.sf_size(5, 64))))
                self.assertEqual(scales.shape, (0, 5) if "scale_mode" in named else (0,))
            atoms = ops.sf_swizzle(torch.zeros(0, 5, 4, dtype=torch.uint8, device=device))
            self.assertEqual(atoms.shape, (0, d.sf_size(5, 64)))
            self.assertEqual(ops.sf_unswizzle(atoms, 5, 64).shape, (0, 5, 4))

    def test_tokens(self):
        for device in DEVICES:
            ids, x = torch.zeros(0, 2, dtype=torch.int32, device=device), torch.zeros(0, 16, dtype=BF16, device=device)
            out = [torch.full((size,), 77, dtype=torch.int32).to(device) for size in (5, 0, 0)]
            ops.moe_permute_out(ids, None, 4, *out)
            self.assertEqual(out[0].tolist(), [0] * 5)
            groups, row_token, token_row, _ = ops.moe_permute(ids, None, 4)
            self.assertEqual(groups.tolist(), [0] * 5)
            self.assertEqual((row_token.shape, token_row.shape), ((0,), (0, 2)))
            self.assertEqual(ops.moe_gather(x, row_token).shape, (0, 16))
            self.assertEqual(ops.moe_combine(x, token_row).shape, (0, 16))

    def test_refusals(self):
        none, x = torch.zeros(0, dtype=torch.int32), torch.zeros(5, 64)
        for shape in ((0, 64), (0, 5, 64), (5, 0)):
            self.refused("^x: has no elements, and scale_mode=1 asks for their maximum", ops.quantize,
                         torch.zeros(shape), scale_mode=d.SCALE_TENSOR)
        self.refused("^x: has no elements, and scale_mode=2", ops.quantize, x[:, :0], scale_mode=d.SCALE_ROW)
        self.refused("^group_rows: has 0 numbers, and needs one more than", ops.quantize, x, group_rows=none)
        self.refused("^x: has no rows, of which row_index names some", ops.quantize, x[:0], row_index=none.new_zeros(3))
        self.refused("^x: has no rows, of which row_index names some", ops.moe_gather, x[:0].to(BF16),
                     none.new_zeros(3))
        self.refused("^token_row: has no choices of 3 tokens", ops.moe_combine, x[:0], none.view(3, 0))
        self.refused("^rows=-1: must not be negative", ops.sf_unswizzle, torch.zeros(512, dtype=torch.uint8), -1, 64)


def calls(device="cpu"):
    """Arguments of every operator."""
    a, b1, b2, sfa, sfb1, sfb2 = two = operands(device)
    one, batch = (a, b1, sfa, sfb1), operands(device, 2)
    ids = torch.randint(0, 4, (5, 2), dtype=torch.int32).to(device)
    permuted, x = ops.moe_permute(ids, None, 4), torch.randn(M, K).to(device)
    c, of_c = torch.zeros(M, N, dtype=BF16, device=device), torch.randn(10, 16).to(device)
    small, factors = torch.zeros(M, N // 2, dtype=torch.uint8, device=device), torch.zeros(512, dtype=torch.uint8,
                                                                                           device=device)
    offsets = torch.tensor([0, 5, M], dtype=torch.int32, device=device)
    yield "swiglu", two, dict(bias1=vector(device, N), activation=1)
    yield "swiglu", batch, {}
    yield "swiglu", (a, *batch[1:3], ops.quantize(x, group_rows=offsets)[1], *batch[4:]), dict(group_rows=offsets)
    whole = operands(device, m=128)  # factors of rows beyond the last may hold anything
    yield "swiglu_nvfp4", whole, {}
    yield "swiglu_out", (*two, c), dict(d1=c.clone(), d2=c.clone(), amax_out=torch.zeros(1, device=device))
    yield "swiglu_out", (*two, small), dict(sfc=factors)
    yield "linear", (*one, 0.5, FP8), {}
    yield "linear_nvfp4", (whole[0], whole[1], whole[3], whole[4]), {}
    yield "linear_out", (*one, c), {}
    (b1, f1), (b2, f2) = (mxfp4(device, N, K) for _ in range(2))
    (sf1, e1, _), (sf2, e2, counts) = ops.prepare_mxfp4(b1, f1), ops.prepare_mxfp4(b2, f2)
    if device == "cpu" or HOPPER:
        fp8, _, scale = ops.quantize(x, **ROWS_OF_FP8)
        yield "swiglu", (fp8, b1, b2, None, sf1, sf2), dict(a_row_scale=scale, b1_row_exponent=e1, b2_row_exponent=e2)
        yield "linear_out", (fp8, b1, None, sf1.view(torch.uint8), c.clone()), dict(
            a_row_scale=scale, b_row_exponent=e1, b_dtype=d.DTYPE_MXFP4)
    yield "prepare_mxfp4", (b1, f1.view(torch.uint8)), {}
    yield "prepare_mxfp4", mxfp4(device, 2, N, 96), {}
    yield "prepare_mxfp4_out", (b2, f2.view(torch.uint8), torch.zeros_like(sf2).view(torch.uint8), torch.zeros_like(e2),
                                torch.zeros_like(counts)), {}
    yield "quantize", (x, 3.0), {}
    for mode in d.SCALE_TENSOR, d.SCALE_ROW: yield "quantize", (x,), dict(scale_mode=mode)
    yield "quantize", (x,), dict(row_index=torch.zeros(4, dtype=torch.int32, device=device))
    yield "quantize", (x,), dict(group_rows=offsets)
    for mode in range(3): yield "quantize", (x,), dict(scale_mode=mode, q_dtype=d.DTYPE_FP8_E4M3)
    yield "quantize_out", (x, torch.zeros(M, K // 2, dtype=torch.uint8, device=device), torch.zeros_like(sfa)), {}
    yield "sf_swizzle", (torch.zeros(M, K // 16, dtype=torch.uint8, device=device),), {}
    yield "sf_swizzle_out", (torch.zeros(M, K // 16, dtype=torch.uint8, device=device), torch.zeros_like(sfa)), {}
    yield "sf_unswizzle", (sfa, M, K), {}
    yield "sf_unswizzle_out", (sfa, torch.zeros(M, K // 16, dtype=torch.uint8, device=device), M, K), {}
    yield "moe_permute", (ids, torch.rand(5, 2).to(device), 4), {}
    yield "moe_permute_out", (ids, None, 4, *(torch.zeros_like(t) for t in permuted[:3])), {}
    wide = torch.zeros(5, 16, dtype=BF16, device=device)
    yield "moe_gather", (wide, permuted[1]), {}
    yield "moe_gather_out", (wide, permuted[1], torch.zeros(10, 16, dtype=BF16, device=device)), {}
    weighted = dict(topk_weights=torch.rand(5, 2).to(device))
    for named in ({}, weighted): yield "moe_combine", (of_c, permuted[2]), named
    yield "moe_combine_out", (of_c, permuted[2], torch.zeros(5, 16, device=device)), weighted


class Versions(Case):
    @staticmethod
    def tensors(name, args, named):
        """Yields each tensor of a call, and whether the schema says that the operator writes it."""
        schema = getattr(torch.ops.dualgemm, name).default._schema
        every = {**dict(zip((each.name for each in schema.arguments), args)), **named}
        for each in schema.arguments:
            written = each.alias_info is not None and each.alias_info.is_write
            if isinstance(every.get(each.name), torch.Tensor): yield every[each.name], written

    def test_what_is_written_has_a_new_version(self):
        """And nothing else has. Tensors share their version with views of the same memory."""
        for device in DEVICES:
            for name, args, named in calls(device):
                tensors = list(self.tensors(name, args, named))
                views = [each[:1] for each, _ in tensors]
                before = [each._version for each, _ in tensors]
                with self.subTest(device, name=name, named=list(named)):
                    getattr(ops, name)(*args, **named)
                    self.assertEqual([each._version > old for (each, _), old in zip(tensors, before)],
                                     [written for _, written in tensors])
                    self.assertEqual([each._version for each in views], [each._version for each, _ in tensors])
                    self.assertTrue(all(each.grad_fn is None for each, _ in tensors))

    def test_all_outputs_of_a_launch(self):
        (a, b1, b2, sfa, sfb1, sfb2), d1 = operands("cpu"), torch.zeros(M, N)
        outputs = dict(out=torch.zeros(M, N // 2, dtype=torch.uint8), sfc=torch.zeros(512, dtype=torch.uint8), d1=d1,
                       d2=d1.clone(), amax_out=torch.zeros(()))
        ops.swiglu_out(a, b1, b2, sfa, sfb1, sfb2, **outputs)
        self.assertEqual([each._version for each in outputs.values()], [1] * 5)

    def test_a_refused_call_writes_nothing(self):
        a, b, _, sfa, sfb, _ = operands("cpu")
        out = torch.zeros(M, N, dtype=BF16)
        self.refused("activation=9", ops.linear_out, a, b, sfa, sfb, out, activation=9)
        self.assertEqual(out._version, 0)

    def test_autograd_notices(self):
        a, b, _, sfa, sfb, _ = operands("cpu")
        x, factor = torch.zeros(M, N, dtype=BF16), torch.ones(M, N, dtype=BF16, requires_grad=True)
        y = (factor * x).sum()
        ops.linear_out(a, b, sfa, sfb, x)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"): y.backward()

    def test_outputs_that_require_a_gradient(self):
        """As by PyTorch's functions with out they are refused where gradients are recorded, before anything is
        written."""
        seen = set()
        for device in DEVICES:
            for name, args, named in calls(device):
                schema = getattr(torch.ops.dualgemm, name).default._schema
                every = {**dict(zip((each.name for each in schema.arguments), args)), **named}
                for key in ("out", "d1", "amax_out"):
                    if key not in every or every[key].dtype not in (BF16, FP32): continue
                    seen.add((name, key))
                    before = torch.full(every[key].shape, 7, dtype=every[key].dtype)
                    leaves = [before.clone().to(device).requires_grad_() for _ in range(2)]
                    for out in (leaves[0], leaves[1].view(before.shape)):
                        changed = {**every, key: out}
                        with self.subTest(device, name=name, key=key, leaf=out.is_leaf):
                            for function in (getattr(ops, name), getattr(torch_op.direct, name)):
                                self.refused(f"^{key}: requires a gradient", function, **changed)
                            self.same(out.detach().cpu(), before)
                            self.assertEqual(out._version, 0)
                            with torch.no_grad(): getattr(ops, name)(**changed)
                            self.assertFalse(torch.equal(out.detach().cpu(), before))
        self.assertLessEqual({("linear_out", "out"), ("swiglu_out", "out"), ("moe_gather_out", "out"),
                              ("moe_combine_out", "out")}, seen)

    def test_tensors_of_the_mode_without_versions(self):
        a, b, _, sfa, sfb, _ = operands("cpu")
        wanted = ops.linear(a, b, sfa, sfb)
        with torch.inference_mode(): out, inside = torch.zeros_like(wanted), torch.zeros_like(wanted)
        ops.linear_out(a, b, sfa, sfb, out)
        with torch.inference_mode(): ops.linear_out(a, b, sfa, sfb, inside)
        for each in (out, inside): self.same(each, wanted)


class Torch(Case):
    def test_opcheck_of_plain_forms(self):
        for device, name in itertools.product(DEVICES, torch_op._SHAPES):
            if "plain" not in getattr(ops, name).overloads(): continue
            for args in Launches.arguments_of_plain(device, name):
                with self.subTest(device, name=name): torch.library.opcheck(getattr(ops, name).plain, args)

    def test_opcheck(self):
        for device in DEVICES:
            seen = set()
            for name, args, named in calls(device):
                with self.subTest(device, name=name, named=list(named)):
                    if name == "swiglu" and "group_rows" in named: continue  # rows of nobody hold anything
                    # It compares no tensors in FP8: no arguments in the first test, and no results in the last one.
                    tests = ["test_schema", "test_autograd_registration", "test_faketensor",
                             "test_aot_dispatch_dynamic"]
                    if any(getattr(arg, "dtype", None) in (FP8, E8M0) for arg in args): tests.pop(0)
                    if name == "prepare_mxfp4": tests.pop()
                    torch.library.opcheck(getattr(ops, name).default, args, named, test_utils=tests)
                seen.add(name)
            self.assertEqual(seen, set(torch_op._SHAPES))

    def test_fake_kernels_refuse_what_the_operators_refuse(self):
        """In the same words, on tensors without memory as well."""
        def refusal(name, args, named):
            with self.assertRaises(RuntimeError) as raised: getattr(ops, name)(*args, **named)
            return str(raised.exception).splitlines()[0]

        wrong = {"flags": (1 << 20, -1, 1 << 40), "scale_mode": (3, -1), "global_scale": (0.0, float("inf")),
                 "activation": (9,), "instance_id": (-1, 9999), "experts": (0, 2000), "max_sms": (1 << 32,),
                 "expected_rows": (-1,)}
        for name, args, named in calls():
            arguments = getattr(torch.ops.dualgemm, name).default._schema.arguments
            places = {each.name: place for place, each in enumerate(arguments)}
            for field, value in [(field, value) for field in wrong if field in places for value in wrong[field]]:
                good = {**dict(zip(places, args)), **named, field: value}
                with self.subTest(name, field=field, value=value):
                    real = refusal(name, (), good)
                    self.assertIn(field, real)
                    self.assertEqual(refusal(name, (), {key: on_meta(x) for key, x in good.items()}), real)
                    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
                        def fake(x): return mode.from_tensor(x) if isinstance(x, torch.Tensor) else x
                        self.assertEqual(refusal(name, (), {key: fake(x) for key, x in good.items()}), real)

    def test_fake_kernels_refuse_what_does_not_go_together(self):
        x, counts = torch.zeros(2, 5, 64), torch.tensor([2, 5], dtype=torch.int32)
        index, scale = torch.zeros(4, dtype=torch.int32), torch.ones(1)
        wide = torch.zeros(4, 16, dtype=BF16)
        for text, name, args, named in (
                ("^global_scale_dev: must be None with scale_mode=2", "quantize", (x,),
                 dict(global_scale_dev=scale, scale_mode=d.SCALE_ROW)),
                ("^DUALGEMM_STATUS_INVALID_VALUE: global_scale=2: must be 1 unless", "quantize", (x, 2.0),
                 dict(scale_mode=d.SCALE_TENSOR)),
                ("^row_index: must be None with an x of 3 dimensions", "quantize", (x,), dict(row_index=index)),
                ("^group_rows: has 0 bytes, and 8 are needed", "quantize", (x,), dict(group_rows=counts[:0])),
                ("^x: has 12 columns, which must be a multiple of 8", "moe_gather", (wide[:, :12], index), {}),
                ("^c: has 12 columns, which must be a multiple of 8", "moe_combine", (wide[:, :12], index[:, None]),
                 {})):
            for placed in (lambda x: x, on_meta):
                self.refused(text, getattr(ops, name), *map(placed, args),
                             **{key: placed(each) for key, each in named.items()})

    def test_shapes_by_symbols_are_those_by_numbers(self):
        """The fake kernel's two ways: with every size a symbol, and with every size a number."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
        for name, args, named in calls():
            answers = []
            for dynamic in (DimDynamic.STATIC, DimDynamic.DYNAMIC):
                env = ShapeEnv()
                with torch._subclasses.FakeTensorMode(shape_env=env) as mode:
                    def fake(x):
                        if not isinstance(x, torch.Tensor): return x
                        return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext([dynamic] * x.dim()))
                    made = getattr(ops, name)(*map(fake, args), **{key: fake(x) for key, x in named.items()})
                    made = made if isinstance(made, tuple) else (made,)
                    answers.append([t if t is None else ([*map(int, t.shape)], [*map(int, t.stride())], t.dtype)
                                    for t in made])
            with self.subTest(name, named=list(named)): self.assertEqual(*answers)

    def test_one_compiled_graph_for_any_number_of_rows(self):
        for device in DEVICES:
            (a, b1, b2, sfa, sfb1, sfb2), graphs = operands(device), []

            def layer(x):
                q, sf, _ = ops.quantize(x, 100.0)
                h, sfh = ops.swiglu_nvfp4(q, b1, b2, sf, sfb1, sfb2, 1e-3, 1e-3, c_global_scale=10.0)
                return ops.linear(h, b1[:, :N // 2].contiguous(), sfh, sfb1[:512], 0.5) + 1

            def backend(graph, _):
                graphs.append(graph)
                return graph
            compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=True)
            lowered = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
            for rows in (M, M - 1, 130, 2):
                x = torch.randn(rows, K).to(device)
                self.same(compiled(x), layer(x))
                self.same(lowered(x), layer(x))
            self.assertEqual(len(graphs), 1)

    def test_outputs_as_arguments_in_a_compiled_graph(self):
        for device in DEVICES:
            tensors = operands(device)

            def layer(a, out):
                ops.swiglu_out(a, *tensors[1:], out, 0.01, 0.02)
                return out * 2
            out, wanted = (torch.zeros(M, N, dtype=BF16, device=device) for _ in range(2))
            got = torch.compile(layer, backend="aot_eager", fullgraph=True)(tensors[0], out)
            self.same(got, layer(tensors[0], wanted))
            self.same(out, wanted)

    def test_autocast_changes_nothing(self):
        for device in DEVICES:
            x = torch.randn(4, 64).to(device)
            with torch.autocast(device, dtype=BF16): self.same(ops.quantize(x)[0], ops.quantize(x)[0])
            tensors, biases = operands(device), dict(bias1=vector(device, N))
            wanted = ops.swiglu(*tensors, 0.01, 0.02, FP32, **biases)
            with torch.autocast(device, dtype=BF16):
                self.same(ops.swiglu(*tensors, 0.01, 0.02, FP32, **biases), wanted)

    def test_there_is_no_derivative(self):
        """Torch itself says so, where somebody asks for one."""
        x = torch.randn(3, 64, requires_grad=True)
        scales = ops.quantize(x, scale_mode=d.SCALE_ROW)[2]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                scales.sum().backward()
            except RuntimeError as error:  # or refuses at once
                said.append(error)
        self.assertIn("autograd kernel was not registered", " ".join(str(getattr(x, "message", x)) for x in said))
        self.assertIsNone(x.grad)

    def test_tensors_without_memory(self):
        """On the device meta, as when a model is made before its weights are read."""
        meta = [torch.empty_like(t, device="meta") for t in operands("cpu")]
        self.assertEqual((ops.swiglu(*meta).shape, ops.swiglu(*meta).device.type), ((M, N), "meta"))
        self.refused("^DUALGEMM_STATUS_INVALID_VALUE: activation=9", ops.swiglu, *meta, activation=9)


@unittest.skipUnless(GPU, "there is no GPU")
class OnGpu(Case):
    def test_a_graph_replays_with_other_numbers(self):
        for m in (M, 512):  # the second one takes a workspace on Hopper
            tensors = operands("cuda", m=m, n=256, k=1024)
            x = torch.randn(m, 1024, device="cuda")

            def layer():
                q, sf, _ = ops.quantize(x, 100.0)
                return ops.swiglu(q, *tensors[1:3], sf, *tensors[4:], 1e-3, 1e-3)
            wanted = layer()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph): got = layer()
            graph.replay()
            self.same(got, wanted)
            x.copy_(torch.randn_like(x))
            graph.replay()
            self.same(got, layer())

    def check_workspace(self, m, n, k, instance_id=0):
        """The operator has room for it from PyTorch's allocator, and gives that back. Returns the bytes."""
        tensors, out = operands("cuda", m=m, n=n, k=k), torch.empty(m, n, dtype=BF16, device="cuda")
        needed = ctypes.c_size_t()
        d.load().dualgemm_workspace_size(d.arguments(*tensors, out, instance_id=instance_id), needed)
        ops.swiglu_out(*tensors, out, instance_id=instance_id)  # it allocates nothing else
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ops.swiglu_out(*tensors, out, instance_id=instance_id)
        self.assertGreaterEqual(torch.cuda.max_memory_allocated() - before, needed.value)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        wanted, room = torch.empty_like(out), torch.empty(max(needed.value, 1), dtype=torch.uint8, device="cuda")
        d.launch(*tensors, wanted, instance_id=instance_id, workspace=room, workspace_size=needed.value,
                 stream=stream())
        self.same(out, wanted)
        return needed.value

    @unittest.skipUnless(HOPPER, "only compute capability 9.0 has a use for a workspace")
    @unittest.skipIf(SIMULATED, "takes a GPU")
    def test_the_workspace_of_many_rows(self):
        self.assertGreater(self.check_workspace(1024, 4096, 1024), 0)

    def test_instances(self):
        """Each that can run this launch runs, also those that need a workspace."""
        tensors, seen = operands("cuda"), {}
        for instance in range(1, d.instance_count() + 1):
            info = d.instance_info(instance)
            here = info.cc_major == torch.cuda.get_device_capability()[0]
            with self.subTest(instance=info.name):
                if here and (info.products, info.grouped, info.a_dtype, info.c_dtype) == OF_SWIGLU:
                    seen[instance] = self.check_workspace(M, N, K, instance)
                elif not here:
                    self.refused(f"^DUALGEMM_STATUS_NOT_SUPPORTED: instance_id={instance}: ", ops.swiglu, *tensors,
                                 instance_id=instance)
        self.assertGreater(len(seen), 1)
        self.assertEqual(any(seen.values()), HOPPER)
        self.refused("^DUALGEMM_STATUS_[A-Z_]*: instance_id=100000", ops.swiglu, *tensors, instance_id=100000)

    def test_the_current_stream(self):
        tensors, side = operands("cuda", m=512, n=512, k=2048), torch.cuda.Stream()
        wanted = ops.swiglu(*tensors, 0.01, 0.02)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            out = ops.swiglu(*tensors, 0.01, 0.02)
            done = side.record_event()
        self.assertFalse(done.query())  # it waits behind the sleep, and the call did not
        side.synchronize()
        self.same(out, wanted)

    def test_the_default_backend_of_compile(self):
        tensors = operands("cuda")
        compiled = torch.compile(lambda a: ops.swiglu(a, *tensors[1:], 0.01, 0.02) * 2, fullgraph=True)
        self.same(compiled(tensors[0]), ops.swiglu(*tensors, 0.01, 0.02) * 2)

    def test_the_device_of_the_tensors(self):
        if torch.cuda.device_count() < 2: self.skipTest("there is one GPU")
        tensors = operands("cuda:1")
        got = ops.swiglu(*tensors, 0.01, 0.02)
        self.assertEqual((got.device.index, torch.cuda.current_device()), (1, 0))
        with torch.cuda.device(1): self.same(got, ops.swiglu(*tensors, 0.01, 0.02))
        self.refused("^b1: lies on cuda:0, and a on cuda:1", ops.swiglu, tensors[0], tensors[1].to("cuda:0"),
                     *tensors[2:])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
