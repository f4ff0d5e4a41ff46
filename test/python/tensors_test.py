#!/usr/bin/env python3
"""tensors_test.py -- the Python module over tensors of every kind, on the simulated runtime: what their shapes and
strides say reaches the launch, and what cannot be right is refused before it.

    tensors_test.py MODULE

MODULE is the folder of the module and of its example.
"""
import array
import ctypes
import os
import random
import struct
import subprocess
import sys
import unittest

MODULE = sys.argv[1]
sys.path.insert(0, MODULE)
import dualgemm as d  # noqa: E402
from dlpack import BF16, E2M1_X2, FP32, INT32, UINT8, Tensor, empty, on_gpu  # noqa: E402
from example import DeviceMemory  # noqa: E402

random.seed(1)
B200 = dict(cc_major=10, sm_count=148, driver_version=13000)


def codes(count):
    return random.randbytes(count)


def factors(rows, k, problems=1):
    """UE4M3 powers of two, 1/4 to 2: products are exact in fp32, and so is g * u behind relu."""
    size = problems * d.sf_size(rows, k)
    return on_gpu(bytes(random.choice((0x28, 0x30, 0x38, 0x40)) for _ in range(size)), UINT8, (size,))


class Problem:
    """Tensors of one launch on the GPU; `out` are what it writes."""

    def __init__(self, m=24, n=40, k=128, problems=(), a=None, b_problems=None, dtype=UINT8, c=BF16, **fields):
        b = problems if b_problems is None else (b_problems,)
        count, b_count = (problems or (1,))[0], (b or (1,))[0]
        self.a = a or on_gpu(codes(count * m * k // 2), dtype, (*problems, m, k // 2))
        self.b = [on_gpu(codes(b_count * n * k // 2), dtype, (*b, n, k // 2)) for _ in range(2)]
        self.sfa = factors(m, k, max(count, b_count))  # with OFFSETS every group has blocks of its own
        self.sfb = [factors(n, k, b_count) for _ in range(2)]
        self.out = empty(c, (*problems, m, n))
        self.fields = {"activation": d.ACTIVATION_REGLU, **fields}

    def tensors(self):
        return [self.a, *self.b, self.sfa, *self.sfb, self.out]

    def on_host(self):
        copies = [t.copied() for t in self.tensors()]
        fields = {name: x.copied() if isinstance(x, Tensor) else x for name, x in self.fields.items()}
        return copies, fields

    def launch(self, **more):
        return d.launch(*self.tensors(), **{**self.fields, **more})


class Launches(unittest.TestCase):
    def same(self, p, **more):
        """The launch gives the reference's bits, which the memory of C did not have before."""
        copies, fields = p.on_host()
        before = p.out.bytes()
        d.reference_host(*copies, **{**fields, **more})
        p.launch(**more)
        self.assertEqual(p.out.bytes(), copies[-1].bytes())
        self.assertNotEqual(p.out.bytes(), before)

    def test_shapes_alone(self):
        self.same(Problem())
        self.same(Problem(dtype=E2M1_X2, c=FP32))
        self.same(Problem(m=1))

    def test_alphas_and_fields(self):
        bias = on_gpu(array.array("f", (random.randrange(-8, 8) for _ in range(40))).tobytes(), FP32, (40,))
        rows = on_gpu(array.array("f", (random.choice((0.5, 2)) for _ in range(24))).tobytes(), FP32, (24,))
        p = Problem(c=FP32, bias1=bias, bias2=bias, bias_dtype=d.DTYPE_FP32, a_row_scale=rows)
        self.same(p, alpha1=0.5, alpha2=-2.0)

    def test_rows_with_a_pitch(self):
        """A inside a wider matrix, from its second half on, and C with gaps that nobody writes."""
        m, k = 24, 128
        wide = on_gpu(codes(m * k), UINT8, (m, k // 2), strides=(k, 1), offset=k // 2)
        p = Problem(m=m, k=k, a=wide)
        p.out = on_gpu(b"\xff" * (m * 48 * 2), BF16, (m, 40), strides=(48, 1))
        self.same(p)
        gaps = [p.out.bytes()[96 * row + 80:96 * row + 96] for row in range(m)]
        self.assertEqual(set(gaps), {b"\xff" * 16})

    def test_batch(self):
        self.same(Problem(problems=(3,)))

    def test_groups(self):
        used = on_gpu(array.array("i", [24, 24, 24]).tobytes(), INT32, (3,))
        self.same(Problem(problems=(3,), group_mode=d.GROUP_MASKED, group_rows=used))
        ends = on_gpu(array.array("i", [0, 5, 24]).tobytes(), INT32, (3,))
        self.same(Problem(b_problems=2, group_mode=d.GROUP_OFFSETS, group_rows=ends))

    def test_second_outputs(self):
        p = Problem(c=FP32, d_dtype=d.DTYPE_FP32)
        p.fields.update(d1=empty(FP32, (24, 40)), d2=empty(FP32, (24, 40)))
        copies, fields = p.on_host()
        d.reference_host(*copies, **fields)
        p.launch()
        for name in ("d1", "d2"): self.assertEqual(p.fields[name].bytes(), fields[name].bytes())

    def test_one_product(self):
        p = Problem(c=FP32)
        d.launch_linear(p.a, p.b[0], p.sfa, p.sfb[0], p.out, 0.5, linear_activation=d.LINEAR_ACTIVATION_RELU2)
        a, b, sfa, sfb, out = (t.copied() for t in (p.a, p.b[0], p.sfa, p.sfb[0], p.out))
        d.reference_host(a, b, None, sfa, sfb, None, out, 0.5, products=1,
                         linear_activation=d.LINEAR_ACTIVATION_RELU2)
        self.assertEqual(p.out.bytes(), out.bytes())
        self.assertGreater(len(set(out.bytes())), 2)

    def test_an_a_of_16_bits(self):
        """Its type is that of the tensor. The numbers that A has in NVFP4 give the same result; a B200 takes none."""
        m, k, numbers = 24, 128, (0, 0.5, 1, 1.5, 2, 3, 4, 6)
        p = Problem(c=FP32)
        (a, *b, sfa, sfb1, sfb2, out), fields = p.on_host()
        d.reference_host(a, *b, sfa, sfb1, sfb2, out, **fields)
        expected, codes_of_a, factors_of_a, wide = out.bytes(), a.bytes(), sfa.bytes(), bytearray()
        for i in range(m * k):
            code = codes_of_a[i // 2] >> i % 2 * 4 & 15
            factor = factors_of_a[d.load().dualgemm_sf_offset(m, k, i // k, i % k // 16)]
            value = (-1) ** (code >> 3) * numbers[code & 7] * 2.0 ** (factor // 8 - 7)
            wide += struct.pack("<f", value)[2:]  # a bf16 is the upper half
        a16 = Tensor(wide, BF16, (m, k))
        out.memory[:] = bytes(len(out.memory))
        d.reference_host(a16, *b, None, sfb1, sfb2, out, **fields)
        self.assertEqual(out.bytes(), expected)
        p.a, p.sfa = on_gpu(bytes(wide), BF16, (m, k)), None
        with self.assertRaisesRegex(d.Error, r"NOT_SUPPORTED: a_dtype=0 \(BF16\)"): p.launch()
        p.sfa = sfa
        with self.assertRaisesRegex(ValueError, "sfa: lies in host memory"): p.launch()

    def test_addresses_data_ptr_and_capsules(self):
        """Memory that says nothing of itself: extents and types are fields."""
        p = Problem(c=FP32)
        p.launch()
        expected = p.out.bytes()
        extents = dict(m=24, n=40, k=128, c_dtype=d.DTYPE_FP32, **p.fields)
        for kind in (lambda t: t.memory, lambda t: t.memory.data_ptr(), lambda t: t.__dlpack__()):
            p.out = empty(FP32, (24, 40))
            d.launch(*map(kind, p.tensors()), **extents)
            self.assertEqual(p.out.bytes(), expected)

    def test_capsules_of_both_kinds_are_given_back(self):
        for versioned in (False, True):
            p = Problem()
            for tensor in p.tensors(): tensor.versioned = versioned
            p.launch()
            self.assertEqual(Tensor.live, 0)

    def test_streams(self):
        handle = ctypes.c_void_p()
        from example import cuda
        self.assertEqual(cuda.cudaStreamCreate(ctypes.byref(handle)), 0)
        method = type("Stream", (), {"__cuda_stream__": lambda self: (0, handle.value)})()
        for stream in (handle.value, type("Stream", (), {"cuda_stream": handle.value})(), method, None):
            Problem().launch(stream=stream)
        with self.assertRaises(d.Error): Problem().launch(stream=12345)


class Prepared(unittest.TestCase):
    def launched(self, *, like):
        """The bits of a launch of other elements of A, in an `out` of its own."""
        other = Problem()
        other.b, other.sfa, other.sfb = like.b, like.sfa, like.sfb
        other.launch()
        return other, other.out.bytes()

    def test_launches_what_launch_does(self):
        p = Problem()
        p.launch()
        expected = p.out.bytes()
        p.out = empty(BF16, (24, 40))
        prepared = d.prepare(*p.tensors(), **p.fields)
        self.assertNotEqual(p.out.bytes(), expected)
        for _ in range(2):
            p.out.fill(bytes(24 * 40 * 2))
            prepared()
            self.assertEqual(p.out.bytes(), expected)

    def test_one_product(self):
        p = Problem(c=FP32)
        d.launch_linear(p.a, p.b[0], p.sfa, p.sfb[0], p.out, 0.5, linear_activation=d.LINEAR_ACTIVATION_RELU2)
        expected, out = p.out.bytes(), empty(FP32, (24, 40))
        d.prepare_linear(p.a, p.b[0], p.sfa, p.sfb[0], out, 0.5, linear_activation=d.LINEAR_ACTIVATION_RELU2)()
        self.assertEqual(out.bytes(), expected)

    def test_other_tensors(self):
        """By tensors and by addresses. They stay until others come, and the earlier ones are left as they were."""
        p = Problem()
        prepared = d.prepare(*p.tensors(), **p.fields)
        prepared()
        first = p.out.bytes()
        other, expected = self.launched(like=p)
        self.assertNotEqual(first, expected)
        for kind in (lambda t: t, lambda t: t.memory.data_ptr()):
            out = empty(BF16, (24, 40))
            prepared(a=kind(other.a), out=kind(out))
            self.assertEqual(out.bytes(), expected)
            out.fill(bytes(24 * 40 * 2))
            prepared()
            self.assertEqual(out.bytes(), expected)
        self.assertEqual(p.out.bytes(), first)
        prepared(a=p.a)  # behind an address, too
        self.assertEqual(out.bytes(), first)

    def test_one_row_at_any_pitch(self):
        p = Problem(m=1)
        p.launch()
        expected, wide = p.out.bytes(), on_gpu(p.a.bytes(), UINT8, (1, 64), strides=(4096, 1))
        d.prepare(*p.tensors(), **p.fields)(a=wide, out=(out := empty(BF16, (1, 40))))
        self.assertEqual(out.bytes(), expected)

    def test_refusals(self):
        """Where one tensor is refused, none is replaced, and nothing is launched."""
        p = Problem(c=FP32)
        prepared, other = d.prepare(*p.tensors(), **p.fields), Problem().b[0].memory
        before, matrix = p.out.bytes(), empty(UINT8, (24, 128))
        read_only = empty(FP32, (24, 40))
        read_only.read_only = True
        for kind, name, tensor, text in (
                (ValueError, "a", empty(UINT8, (23, 64)), r"has shape \(23, 64\), and shape \(24, 64\) was prepared"),
                (ValueError, "a", Tensor(matrix.memory, UINT8, (24, 64), (128, 1)), r"has strides \(128, 1\), and"),
                (ValueError, "a", Tensor(p.a.memory, E2M1_X2, (24, 64)), "has elements float4_e2m1fn, and"),
                (ValueError, "out", empty(BF16, (24, 40)), "has elements bfloat16, and elements float32 was"),
                (ValueError, "a", p.a.copied(), "lies in host memory"),
                (ValueError, "out", read_only, "this memory is read-only"),
                (TypeError, "bias1", p.a, "no tensor of this name was prepared"),
                (TypeError, "m", 23, "no tensor of this name was prepared"),
                (TypeError, "a", 1.5, "a tensor has data_ptr")):
            with self.assertRaisesRegex(kind, f"^{name}: {text}"): prepared(b1=other, **{name: tensor})
            self.assertEqual(p.out.bytes(), before)
        copies, _ = p.on_host()
        with self.assertRaisesRegex(ValueError, "^a: lies in host memory"): d.prepare(*copies, **p.fields)
        with self.assertRaisesRegex(d.Error, "INVALID_VALUE: max_sms=-1"): d.prepare(*p.tensors(), max_sms=-1)()
        with self.assertRaises(d.Error): prepared(stream=12345)
        p.launch()
        expected = p.out.bytes()
        p.out.fill(before)
        prepared()
        self.assertEqual(p.out.bytes(), expected)

    def test_capsules_are_held(self):
        p = Problem()
        prepared = d.prepare(*p.tensors(), **p.fields)
        self.assertEqual(Tensor.live, 7)
        prepared(a=p.a)
        self.assertEqual(Tensor.live, 7)
        del prepared
        self.assertEqual(Tensor.live, 0)


class Refusals(unittest.TestCase):
    def refused(self, kind, text, change=lambda p: None, **fields):
        p = Problem()
        change(p)
        before = p.out.bytes()
        with self.assertRaisesRegex(kind, text): p.launch(**fields)
        self.assertEqual(p.out.bytes(), before)

    def test_shapes(self):
        def set_(name, tensor): return lambda p: setattr(p, name, tensor)
        matrix = on_gpu(codes(24 * 64), UINT8, (24, 64))
        self.refused(ValueError, "b1: its shape says k=256, and k=128", lambda p: p.b.__setitem__(
            0, on_gpu(codes(40 * 128), UINT8, (40, 128))))
        self.refused(ValueError, "out: its shape says m=23", set_("out", empty(BF16, (23, 40))))
        self.refused(ValueError, "a: its shape says m=24, and m=25", m=25)
        self.refused(ValueError, "a: the strides", set_("a", Tensor(matrix.memory, UINT8, (24, 64), (1, 24))))
        self.refused(ValueError, "a: the strides", set_("a", Tensor(matrix.memory, UINT8, (24, 64), (0, 1))))
        self.refused(ValueError, "different numbers of problems",
                     set_("a", on_gpu(codes(2 * 24 * 64), UINT8, (2, 24, 64))))
        self.refused(ValueError, "a: the strides", set_("a", Tensor(matrix.memory, UINT8, (2, 24, 64), (0, 64, 1))))

    def test_memory(self):
        self.refused(ValueError, "sfa: has 512 bytes, and 1024 are needed",
                     lambda p: setattr(p, "sfa", on_gpu(bytes(512), UINT8, (512,))))
        self.refused(ValueError, "a: lies in host memory", lambda p: setattr(p, "a", p.a.copied()))
        self.refused(ValueError, "sfb1: scale factors lie without gaps", lambda p: p.sfb.__setitem__(
            0, Tensor(p.sfb[0].memory, UINT8, (512,), (2,))))
        self.refused(ValueError, "bias1: its elements lie one behind the other", bias_dtype=d.DTYPE_FP32,
                     bias1=Tensor(empty(FP32, (80,)).memory, FP32, (40,), (2,)))
        p = Problem()
        copies, fields = p.on_host()
        with self.assertRaisesRegex(ValueError, "b1: lies in device memory"):
            d.reference_host(copies[0], p.b[0], *copies[2:], **fields)
        with self.assertRaisesRegex(ValueError, "out: this memory is read-only"):
            d.reference_host(*copies[:-1], bytes(24 * 40 * 2), **fields, m=24)
        copies[-1].read_only = True
        with self.assertRaisesRegex(ValueError, "out: this memory is read-only"): d.reference_host(*copies, **fields)

    def test_fields(self):
        self.refused(TypeError, "bias: dualgemm_args_t has no such field", bias=0)
        self.refused(TypeError, "struct_size", struct_size=8)
        self.refused(TypeError, "^c: dualgemm_args_t has no such field", c=16)  # it is `out`
        self.refused(ValueError, "max_sms=4294967297: the field has 32 bits", max_sms=2**32 + 1)
        self.refused(ValueError, "batch=2147483648: the field has 32 bits", batch=2**31)
        self.refused(ValueError, "flags=-1: the field has 32 bits", flags=-1)
        self.refused(TypeError, "bias1: a tensor has data_ptr", bias1=object())

    def test_objects_that_say_too_little_of_themselves(self):
        """What is missing is named, with the argument; nothing else of Python comes through."""
        address = Problem().a.memory.data_ptr()

        def like(**fields): return type("Like", (), fields)()
        shape, size = (24, 64), lambda self: 1
        at = lambda self: address  # noqa: E731
        for tensor, text in (
                (like(data_ptr=at, shape=shape), r"a: has data_ptr\(\) and a shape, and neither element_size\(\) nor"),
                (like(data_ptr=at, shape=shape, element_size="1"), r"a: element_size is no number of bytes: '1'"),
                (like(data_ptr=at, shape=shape, element_size=0), r"a: element_size is no number of bytes: 0"),
                (like(data_ptr=at, shape=shape, itemsize=1.0), r"a: itemsize is no number of bytes: 1\.0"),
                (like(data_ptr=at, shape=5, element_size=size), "a: shape is no sequence of integers: 5"),
                (like(data_ptr=at, shape=(24, "x"), element_size=size), "a: shape is no sequence of integers"),
                (like(data_ptr=at, shape=shape, element_size=size, stride=lambda self: (1,)),
                 r"a: has 2 dimensions and 1 strides?"),
                (like(data_ptr=at, shape=shape, element_size=size, stride=7), "a: stride is no sequence of integers"),
                (like(data_ptr=address, shape=shape, element_size=size), r"a: data_ptr is no function"),
                (like(data_ptr=lambda self: None), r"a: data_ptr\(\) is no address: None"),
                (like(__dlpack__=lambda self, **_: None), r"a: has __dlpack__ and no __dlpack_device__"),
                (like(__dlpack__=lambda self, **_: None, __dlpack_device__=lambda self: None),
                 r"a: __dlpack_device__\(\) is no pair of numbers: None"),
                (like(__dlpack__=5, __dlpack_device__=lambda self: (2, 0)), r"a: __dlpack__ is no function"),
                (like(__dlpack__=lambda self, **_: None, __dlpack_device__=lambda self: (2, 0)),
                 r"a: __dlpack__\(\) gives no capsule, but a NoneType")):
            self.refused(TypeError, "^" + text, lambda p, t=tensor: setattr(p, "a", t))

    def test_the_size_of_an_element_and_the_strides_as_others_say_them(self):
        """Any of its names, any type that is an integer, and no strides for rows without gaps, as DLPack has it."""
        class Integer:
            def __index__(self): return 1
        p = Problem()
        p.launch()
        expected, address = p.out.bytes(), p.a.memory.data_ptr()
        dtype = type("Type", (), {"itemsize": 1, "__str__": lambda self: "uint8"})()
        for fields in ({"element_size": lambda self: 1}, {"itemsize": 1}, {"dtype": dtype}, {"itemsize": Integer()},
                       {"itemsize": 1, "stride": None}, {"itemsize": 1, "stride": lambda self: None}):
            p.a = type("Like", (), {"data_ptr": lambda self: address, "shape": (24, 64), "held": p.a, **fields})()
            p.out = empty(BF16, (24, 40))
            p.launch()
            self.assertEqual(p.out.bytes(), expected)

    def test_errors_of_the_library(self):
        with self.assertRaises(d.Error) as caught: Problem(k=128).launch(max_sms=-1)
        self.assertEqual((caught.exception.status, caught.exception.name), (2, "DUALGEMM_STATUS_INVALID_VALUE"))
        self.assertRegex(str(caught.exception), "^DUALGEMM_STATUS_INVALID_VALUE: max_sms=-1")
        self.assertEqual(caught.exception.cuda_error, 0)


class Questions(unittest.TestCase):
    def test_questions_need_no_gpu(self):
        args = d.arguments(*Problem(m=256, n=512, k=256).tensors())
        chosen = d.select_instance(args, d.device(**B200))
        self.assertTrue(1 <= chosen <= d.instance_count())
        self.assertEqual(d.instance_info(chosen).c_dtype, d.DTYPE_BF16)
        d.can_implement_on(args, d.device(**B200))
        with self.assertRaises(d.Error) as caught: d.can_implement_on(args, d.device(**{**B200, "cc_major": 8}))
        self.assertEqual(caught.exception.name, "DUALGEMM_STATUS_ARCH_MISMATCH")
        with self.assertRaises(d.Error): d.instance_info(0)

    def test_the_version_and_the_device(self):
        self.assertEqual(d.version()[:2], (0, 2))
        self.assertIn(".".join(map(str, d.version())), d.build_info())
        self.assertEqual((d.current_device().cc_major, d.current_device().sm_count), (10, 148))

    def test_importing_takes_nothing_along(self):
        """Neither torch, numpy nor the library; the first call says what was looked for."""
        code = ("import sys, dualgemm; assert not {'torch', 'numpy'} & set(sys.modules)\n"
                "try: dualgemm.version()\nexcept ImportError as error: assert '/none.so' in str(error); print('good')")
        out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                             env={**os.environ, "PYTHONPATH": MODULE, "DUALGEMM_LIBRARY": "/none.so"}).stdout
        self.assertEqual(out, "good\n")


class Conversions(unittest.TestCase):
    def test_quantize_and_its_twin(self):
        rows, k = 37, 96
        x = array.array("f", (random.gauss(0, 3) for _ in range(rows * k)))
        q, sf = bytearray(rows * k // 2), bytearray(d.sf_size(rows, k))
        d.quantize_host(memoryview(x.tobytes()).cast("f", (rows, k)), q, sf, global_scale=2.0)
        device = [empty(UINT8, (len(q),)), empty(UINT8, (len(sf),))]
        d.quantize(on_gpu(x.tobytes(), FP32, (rows, k)), *device, global_scale=2.0)
        self.assertEqual([t.bytes() for t in device], [bytes(q), bytes(sf)])
        self.assertGreater(len(set(q)), 16)
        self.assertEqual(d.global_scale_host(x, rows, k), ctypes.c_float(448 * 6 / max(map(abs, x))).value)

    def test_quantize_to_fp8_and_its_twin(self):
        rows, k = 37, 48
        x = array.array("f", (random.gauss(0, 3) for _ in range(rows * k)))
        q, scales = bytearray(rows * k), array.array("f", bytes(4 * rows))
        said = dict(scale_mode=d.SCALE_ROW, q_dtype=d.DTYPE_FP8_E4M3)
        d.quantize_host(memoryview(x.tobytes()).cast("f", (rows, k)), q, None, row_scale=scales, **said)
        on_device, device_scales = empty(UINT8, (rows, k)), empty(FP32, (rows,))
        d.quantize(on_gpu(x.tobytes(), FP32, (rows, k)), on_device, None, row_scale=device_scales, **said)
        self.assertEqual((on_device.bytes(), device_scales.bytes()), (bytes(q), scales.tobytes()))
        for row in range(rows):
            largest = max(map(abs, x[row * k:row * k + k]))
            self.assertAlmostEqual(scales[row] * 448 / largest, 1, places=6)
            self.assertEqual(max(code & 0x7F for code in q[row * k:row * k + k]), 0x7E)

    def test_factors_to_atoms_and_back(self):
        rows, k = 130, 160
        source = codes(rows * k // 16)
        atoms, back = bytearray(d.sf_size(rows, k)), bytearray(len(source))
        d.sf_swizzle_host(source, atoms, rows, k)
        for row, block in ((0, 0), (129, 9), (64, 5)):
            offset = d.load().dualgemm_sf_offset(rows, k, row, block)
            self.assertEqual(atoms[offset], source[row * k // 16 + block])
        device, again = empty(UINT8, (len(atoms),)), empty(UINT8, (len(source),))
        d.sf_swizzle(on_gpu(source, UINT8, (len(source),)), device, rows, k)
        d.sf_unswizzle(device, again, rows, k)
        d.sf_unswizzle_host(atoms, back, rows, k)
        self.assertEqual((device.bytes(), again.bytes(), bytes(back)), (bytes(atoms), source, source))

    def test_weights_in_mxfp4(self):
        """Prepared on the GPU and on the host alike; and one product of them, whose every weight is 2^-3."""
        experts, n, k = 3, 40, 160
        self.assertEqual(d.sf_size_of(d.DTYPE_MXFP4, n, k), 1024)
        self.assertEqual(d.sf_size_of(d.DTYPE_NVFP4, n, k), d.sf_size(n, k))
        q = codes(experts * n * k // 2)
        scales = bytes(random.randrange(256) for _ in range(experts * n * k // 32))
        shapes = (experts, n, k // 2), (experts, n, k // 32), (experts, 1024), (experts, n)
        INT16, UINT32 = (0, 16, 1), (1, 32, 1)
        kinds = UINT8, UINT8, UINT8, INT16
        on_host = [Tensor(bytearray(data), kind, shape) for data, kind, shape in
                   zip((q, scales, bytes(experts * 1024), bytes(experts * n * 2)), kinds, shapes)]
        counts = Tensor(bytearray(16), UINT32, (4,))
        d.prepare_mxfp4_host(*on_host, counts=counts)
        device = [on_gpu(q, UINT8, shapes[0]), on_gpu(scales, UINT8, shapes[1]), empty(UINT8, shapes[2]),
                  empty(INT16, shapes[3])]
        d.prepare_mxfp4(*device)
        for one, other in zip(device, on_host): self.assertEqual(one.bytes(), other.bytes())
        self.assertEqual(struct.unpack("4I", counts.bytes())[0], experts * n * k // 32)  # no block is all zeros
        with self.assertRaisesRegex(ValueError, "^sf: has 3071 bytes, and 3072 are needed"):
            d.prepare_mxfp4_host(*on_host[:2], Tensor(bytearray(3071), UINT8, (3071,)), on_host[3])

        one = [Tensor(bytearray(b"\x22" * (n * k // 2)), UINT8, (n, k // 2)),
               Tensor(bytearray([124]) * (n * k // 32), UINT8, (n, k // 32)), bytearray(1024),
               array.array("h", [7] * n)]
        d.prepare_mxfp4_host(*one)
        self.assertEqual(list(one[3]), [124 - 133] * n)
        a = Tensor(bytearray(b"\x38" * (2 * k)), UINT8, (2, k))
        out = Tensor(bytearray(2 * n * 4), FP32, (2, n))
        launch = dict(a=a, b1=one[0], b2=None, sfa=None, sfb1=one[2], sfb2=None, out=out, a_dtype=d.DTYPE_FP8_E4M3,
                      b_dtype=d.DTYPE_MXFP4, products=1, b1_row_exponent=one[3])
        d.reference_host(**launch)
        self.assertEqual(struct.unpack(f"{2 * n}f", out.bytes()), (k / 8,) * (2 * n))
        for name, tensor, need in (("sfb1", bytearray(1023), 1024), ("b1_row_exponent", bytearray(2 * n - 1), 2 * n)):
            with self.assertRaisesRegex(ValueError, f"^{name}: has {need - 1} bytes, and {need} are needed"):
                d.reference_host(**{**launch, name: tensor})

    def test_a_layer_of_experts(self):
        """Choices become rows, which are gathered; what a token's rows hold is added up."""
        tokens, top_k, experts, k = 9, 3, 4, 32
        ids = array.array("i", (random.randint(-1, experts) for _ in range(tokens * top_k)))
        x = struct.pack(f"{tokens * k}f", *(random.gauss(0, 3) for _ in range(tokens * k)))
        weights = array.array("f", (random.random() for _ in ids))
        shape, rows = (tokens, top_k), len(ids)
        sizes = dict(group_rows=experts + 1, row_token=rows, token_row=rows)
        host = {name: bytearray(4 * size) for name, size in sizes.items()}
        host_weight, weight = bytearray(4 * rows), empty(FP32, (rows,))
        device = {name: empty(INT32, shape if name == "token_row" else (size,)) for name, size in sizes.items()}
        d.moe_permute_host(memoryview(ids.tobytes()).cast("i", shape), experts, **host,
                           topk_weights=memoryview(weights.tobytes()).cast("f", shape), row_weight=host_weight)
        d.moe_permute(on_gpu(ids.tobytes(), INT32, shape), experts, **device,
                      topk_weights=on_gpu(weights.tobytes(), FP32, shape), row_weight=weight)
        self.assertEqual({name: t.bytes() for name, t in device.items()}, {name: bytes(b) for name, b in host.items()})
        self.assertEqual(weight.bytes(), bytes(host_weight))
        order = sorted((i for i, expert in enumerate(ids) if 0 <= expert < experts), key=lambda i: ids[i])
        tokens_of_rows = list(struct.unpack(f"{rows}i", host["row_token"]))
        self.assertEqual(tokens_of_rows, [i // top_k for i in order] + [-1] * (rows - len(order)))

        scale = dict(scale_mode=d.SCALE_ROW, row_scale=empty(FP32, (rows,)))
        q, sf = empty(UINT8, (rows, k // 2)), empty(UINT8, (d.sf_size(rows, k),))
        d.quantize(on_gpu(x, FP32, (tokens, k)), q, sf, row_index=device["row_token"], **scale)
        one, factors_of_one = bytearray(k // 2), bytearray(d.sf_size(1, k))
        for row, token in enumerate(tokens_of_rows):
            source = x[token * k * 4:(token + 1) * k * 4] if token >= 0 else bytes(k * 4)
            d.quantize_host(source, one, factors_of_one, rows=1, k=k, x_dtype=d.DTYPE_FP32, scale_mode=d.SCALE_ROW,
                            row_scale=bytearray(4))
            self.assertEqual(q.bytes()[row * k // 2:(row + 1) * k // 2], bytes(one))

        # Without quantising: the same rows of bf16. Those that nobody owns stay as they are.
        plain, a, host_a = codes(tokens * 64), empty(BF16, (rows, 32)), bytearray(rows * 64)
        a_before = a.bytes()
        d.moe_gather(on_gpu(plain, BF16, (tokens, 32)), device["row_token"], a)
        d.moe_gather_host(plain, host["row_token"], host_a, rows=rows, x_rows=tokens, k=32)
        for row, token in enumerate(tokens_of_rows):
            part, there = slice(row * 64, (row + 1) * 64), plain[token * 64:(token + 1) * 64]
            self.assertEqual(a.bytes()[part], there if token >= 0 else a_before[part])
            self.assertEqual(host_a[part], there if token >= 0 else bytes(64))
        with self.assertRaisesRegex(ValueError, "^out: its shape says k=40, and k=32 was said"):
            d.moe_gather(on_gpu(plain, BF16, (tokens, 32)), device["row_token"], empty(BF16, (rows, 40)))
        with self.assertRaisesRegex(ValueError, "^out: this memory is read-only"):
            d.moe_gather_host(plain, host["row_token"], bytes(rows * 64), rows=rows, x_rows=tokens, k=32)

        c = struct.pack(f"{rows * 8}f", *(random.gauss(0, 3) for _ in range(rows * 8)))
        out, host_out = empty(FP32, (tokens, 8)), memoryview(bytearray(tokens * 32)).cast("f", (tokens, 8))
        d.moe_combine(on_gpu(c, FP32, (rows, 8)), device["token_row"], out)
        d.moe_combine_host(memoryview(c).cast("f", (rows, 8)), memoryview(host["token_row"]).cast("i", shape), host_out)
        self.assertEqual(out.bytes(), bytes(host_out))
        row_of = struct.unpack(f"{rows}i", host["token_row"])
        value = struct.unpack(f"{rows * 8}f", c)
        for token in range(tokens):
            wanted = sum(value[row * 8] for row in row_of[token * top_k:][:top_k] if row >= 0)
            self.assertAlmostEqual(host_out[token, 0], wanted, places=4)
        of_sum = memoryview(weights.tobytes()).cast("f", shape)
        d.moe_combine(on_gpu(c, FP32, (rows, 8)), device["token_row"], out,
                      topk_weights=on_gpu(weights.tobytes(), FP32, shape))
        d.moe_combine_host(memoryview(c).cast("f", (rows, 8)), memoryview(host["token_row"]).cast("i", shape), host_out,
                           topk_weights=of_sum)
        self.assertEqual(out.bytes(), bytes(host_out))
        for token in range(tokens):
            choices = range(token * top_k, (token + 1) * top_k)
            wanted = sum(weights[i] * value[row_of[i] * 8 + 3] for i in choices if row_of[i] >= 0)
            self.assertAlmostEqual(host_out[token, 3], wanted, places=4)
        with self.assertRaisesRegex(ValueError, f"^topk_weights: its shape says tokens={tokens - 1}, "):
            d.moe_combine_host(memoryview(c).cast("f", (rows, 8)), memoryview(host["token_row"]).cast("i", shape),
                               host_out, topk_weights=memoryview(bytes(4 * (tokens - 1) * top_k)).cast(
                                   "f", (tokens - 1, top_k)))
        with self.assertRaisesRegex(ValueError, "^topk_weights: its elements are int32, and float32 is needed"):
            d.moe_combine(on_gpu(c, FP32, (rows, 8)), device["token_row"], out, topk_weights=device["token_row"])
        with self.assertRaisesRegex(ValueError, f"^c: has {(rows - 1) * 32} bytes, and {rows * 32} are needed"):
            d.moe_combine(on_gpu(c[32:], FP32, (rows - 1, 8)), device["token_row"], out)
        with self.assertRaisesRegex(ValueError, "^out: its shape says n=16, and n=8 was said"):
            d.moe_combine(on_gpu(c, FP32, (rows, 8)), device["token_row"], empty(FP32, (tokens, 16)))
        with self.assertRaisesRegex(ValueError, "^row_token: this memory is read-only"):
            d.moe_permute_host(ids, experts, host["group_rows"], bytes(4 * rows), host["token_row"], tokens=tokens,
                               top_k=top_k)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
