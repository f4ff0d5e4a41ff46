#!/usr/bin/env python3
"""torch_test.py -- torch.ops.dualgemm.swiglu as release 0.2 had it, on the CPU: fake kernel, torch.library.opcheck, and
its result against torch's own arithmetic; and torch's tensors as arguments. Exits with 77 where there is no torch, or
where its operators are not built.

    torch_test.py MODULE
"""
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, sys.argv[1])
try:
    import torch
except ImportError as error:
    print(f"torch_test.py: skipped, there is no torch: {error}")
    sys.exit(77)
import dualgemm as d  # noqa: E402
from dualgemm import _tensors  # noqa: E402
try:
    from dualgemm import torch_op  # noqa: E402,F401
except ImportError as error:
    print(f"torch_test.py: skipped: {error}")
    sys.exit(77)

M, N, K = 20, 24, 128
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def matrix(*shape):
    """Packed E2M1, factors in rows and in atoms, and what they are worth, in double precision."""
    *problems, rows, k = shape
    packed = torch.randint(256, (*problems, rows, k // 2), dtype=torch.uint8)
    factors = torch.rand(*problems, rows, k // 16).to(torch.float8_e4m3fn)
    atoms = torch.zeros(*problems, d.sf_size(rows, k), dtype=torch.uint8)
    d.sf_swizzle_host(factors.view(torch.uint8), atoms, rows, k, batch=(problems or [1])[0])
    codes = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
    return packed, atoms, E2M1[codes.long()] * factors.double().repeat_interleave(16, -1)


def inputs(*problems, n=N, k=K):
    (a, sfa, x), (b1, sfb1, w1), (b2, sfb2, w2) = (matrix(*problems, rows, k) for rows in (M, n, n))
    return (a, b1, b2, sfa, sfb1, sfb2), (x, w1, w2)


def results(tensors, out_dtype=torch.bfloat16, **more):
    """What the operator gives for tensors on the CPU and for fake ones: shape, strides and type, or the refusal."""
    answers = []
    with torch._subclasses.FakeTensorMode() as mode:
        fake = [t if t is None else mode.from_tensor(t) for t in tensors]
        fake_more = {name: mode.from_tensor(t) for name, t in more.items()}
    for given, named in (tensors, more), (fake, fake_more):
        try:
            out = torch.ops.dualgemm.swiglu(*given, 0.01, 0.5, out_dtype, **named)
            answers.append((tuple(out.shape), out.stride(), out.dtype))
        except RuntimeError as error:
            answers.append(str(error).split("\n")[0])
    return answers


class Operator(unittest.TestCase):
    def test_the_result_is_that_of_torch(self):
        for problems in ((), (3,)):
            tensors, (x, w1, w2) = inputs(*problems)
            got = torch.ops.dualgemm.swiglu(*tensors, 0.01, 0.5, torch.float32)
            gate, up = 0.01 * x @ w1.mT, 0.5 * x @ w2.mT
            torch.testing.assert_close(got.double(), torch.nn.functional.silu(gate) * up, rtol=1e-6, atol=1e-6)

    def test_factors_on_the_device(self):
        tensors, _ = inputs()
        alpha = torch.tensor([0.25])
        got = torch.ops.dualgemm.swiglu(*tensors, alpha1_dev=alpha, alpha2_dev=alpha)
        self.assertTrue(torch.equal(got, torch.ops.dualgemm.swiglu(*tensors, 0.25, 0.25)))
        self.assertFalse(torch.equal(got, torch.ops.dualgemm.swiglu(*tensors)))

    def test_opcheck(self):
        for problems in ((), (2,)):
            tensors, _ = inputs(*problems)
            for more in ((), (0.5, 0.25, torch.float16), (1.0, 1.0, torch.float32, torch.tensor([2.0])),
                         (0.5, 0.5, torch.float8_e4m3fn)):
                torch.library.opcheck(torch.ops.dualgemm.swiglu.default, (*tensors, *more))

    def test_the_fake_kernel(self):
        tensors, _ = inputs()
        with torch._subclasses.FakeTensorMode() as mode:
            tensors = [mode.from_tensor(t) for t in tensors]
            out = torch.ops.dualgemm.swiglu(*tensors, out_dtype=torch.float8_e4m3fn)
            self.assertEqual((out.shape, out.dtype), ((M, N), torch.float8_e4m3fn))
            with self.assertRaises(RuntimeError): torch.ops.dualgemm.swiglu(tensors[0], *tensors[:1], *tensors[2:])

    def test_the_fake_kernel_promises_what_the_other_gives(self):
        types = (torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn)
        for problems in ((), (2,)):
            for n in (16, 24):
                for out_dtype in types:
                    real, fake = results(inputs(*problems, n=n)[0], out_dtype)
                    self.assertEqual(real, fake)
                    self.assertEqual((real[0], real[2]), ((*problems, M, n), out_dtype))

    def test_both_kernels_refuse_alike(self):
        fp8, bf16 = torch.float8_e4m3fn, torch.bfloat16
        for n, k, out_dtype, text in (
                (12, K, bf16, "DUALGEMM_STATUS_INVALID_SHAPE: n=12: must be a multiple of 8"),
                (12, K, fp8, "DUALGEMM_STATUS_INVALID_SHAPE: n=12: must be a multiple of 8"),
                (18, K, torch.float32, "DUALGEMM_STATUS_INVALID_SHAPE: n=18: must be a multiple of 4"),
                (N, K, torch.float64, "out_dtype=torch.float64: must be one of "),
                (N, K, torch.uint8, "out_dtype=torch.uint8: must be one of "),
                (N, 48, bf16, "a: rows must begin at multiples of 16 bytes, and are 24 apart")):
            real, fake = results(inputs(n=n, k=k)[0], out_dtype)
            self.assertEqual(real, fake)
            self.assertTrue(real.startswith(text), real)
        (a, b1, b2, *factors), _ = inputs()
        for wrong in ((a, b1[1:], b2), (a[:, 16:], b1, b2)):
            real, fake = results((*wrong, *factors), bf16)
            self.assertEqual((real, fake), ("a, b1 and b2 have one k, b1 and b2 one n",) * 2)
        wide = torch.zeros(M, 32, dtype=torch.uint8)[:, :24]  # rows of 48 elements with a pitch of 64
        (_, b1, b2, *factors), _ = inputs(k=48)
        b1, b2 = (torch.nn.functional.pad(b, (0, 8))[:, :24] for b in (b1, b2))
        self.assertEqual(*results((wide, b1, b2, *factors), bf16))

    def test_what_tensors_say_of_themselves_is_refused_by_both_kernels(self):
        names = ("a", "b1", "b2", "sfa", "sfb1", "sfb2")
        good, _ = inputs()
        several, _ = inputs(2)
        a, _, _, sfa, sfb1, _ = good
        wide, apart = torch.zeros(M, K, dtype=torch.bfloat16), torch.zeros(2 * M * K // 2 + 8, dtype=torch.uint8)
        twice = torch.zeros(2 * sfa.numel(), dtype=torch.uint8)
        rows = "the strides \\(.*\\) are not those of rows one behind the other"
        for tensors, replaced, text in (
                (good, dict(a=a.repeat(1, 2)[:, ::2]), rows), (good, dict(a=a.mT.contiguous().mT), rows),
                (good, dict(a=a[:1].expand(M, -1)), rows), (several, dict(a=several[0][:1].expand(2, -1, -1)), rows),
                (several, dict(b1=several[1].mT.contiguous().mT), rows),
                (several, dict(a=apart.as_strided((2, M, K // 2), (M * K // 2 + 8, K // 2, 1))),
                 f"problems must begin at multiples of 16 bytes, and are {M * K // 2 + 8} apart"),
                (good, dict(a=a[0]), "has 1 dimensions, and a matrix has 2, or 3 with one for problems"),
                (good, dict(a=torch.zeros((), dtype=torch.uint8)), "has 0 dimensions"),
                (good, dict(a=a[None, None]), "has 4 dimensions"), (good, dict(b2=good[2][0]), "has 1 dimensions"),
                (good, dict(a=a.int()), "its elements are torch.int32, and must be one of torch.uint8, "),
                (good, dict(b1=good[1].float()), "its elements are torch.float32"),
                (good, dict(b1=torch.zeros(N, K // 2, dtype=torch.bfloat16)), "its elements are torch.bfloat16"),
                (good, dict(sfa=sfa[:-1]), f"has {sfa.numel() - 1} bytes, and {sfa.numel()} are needed"),
                (several, dict(sfb1=sfb1), f"has {sfb1.numel()} bytes, and {2 * sfb1.numel()} are needed"),
                (good, dict(sfa=twice[::2]), "its elements lie without gaps, and its strides are "),
                (good, dict(sfb2=good[5].double()), "its elements are torch.float64"),
                (good, dict(sfa=None), "must be given with an a of torch.uint8"),
                (good, dict(a=wide, sfa=sfa), "must be None with an a of torch.bfloat16"),
                (good, dict(alpha1_dev=torch.ones(1, dtype=torch.float64)), "its elements are torch.float64"),
                (good, dict(alpha2_dev=torch.ones(0)), "has 0 numbers, and there are 1 problems"),
                (good, dict(alpha2_dev=torch.ones(2)), "has 2 numbers, and there are 1 problems")):
            given = [replaced.get(name, tensor) for name, tensor in zip(names, tensors)]
            name = "sfa" if "sfa" in replaced else next(iter(replaced))
            alphas = {key: tensor for key, tensor in replaced.items() if key not in names}
            with self.subTest(name, text=text):
                real, fake = results(given, **alphas)
                self.assertEqual(real, fake)
                self.assertRegex(real, f"^{name}: .*{text}" if text != rows else f"^{name}: {rows}")
        real, fake = results((a, *several[1:3], sfa, *several[4:]))
        self.assertEqual((real, fake), ("a has 1 problems, b1 and b2 have 2",) * 2)

    def test_tensors_with_gaps_and_of_other_types_pass_both_kernels(self):
        (a, b1, b2, sfa, *sfb), _ = inputs()
        wide = torch.nn.functional.pad(a, (0, 32))[:, :K // 2]
        wanted = torch.ops.dualgemm.swiglu(a, b1, b2, sfa, *sfb)
        for tensors in ((wide, b1, b2, sfa, *sfb), (a.view(torch.int8), b1, b2, sfa.view(torch.float8_e4m3fn), *sfb),
                        (a[None], b1[None], b2[None], sfa.reshape(2, -1), *sfb)):
            real, fake = results(tensors)
            self.assertEqual(real, fake)
            got = torch.ops.dualgemm.swiglu(*tensors)
            self.assertTrue(torch.equal(got.reshape(M, N), wanted))
        real, fake = results((torch.zeros(M, K, dtype=torch.bfloat16), b1, b2, None, *sfb))
        self.assertEqual((real, fake), (((M, N), (N, 1), torch.bfloat16),) * 2)

    def test_the_fake_kernel_keeps_dynamic_rows(self):
        (a, b1, b2, sfa, *sfb), _ = inputs()
        seen = []

        def backend(graph, inputs_of_it):
            seen.append(graph)
            return graph
        compiled = torch.compile(lambda *t: torch.ops.dualgemm.swiglu(*t), backend=backend, fullgraph=True)
        for rows in (M, M - 1, M - 5):
            rows_of_a = a[:rows].clone()
            torch._dynamo.mark_dynamic(rows_of_a, 0)
            got = compiled(rows_of_a, b1, b2, sfa, *sfb)
            self.assertTrue(torch.equal(got, torch.ops.dualgemm.swiglu(rows_of_a, b1, b2, sfa, *sfb)))
        self.assertEqual(len(seen), 1)

    def test_an_fp8_result_with_any_number_of_columns(self):
        for problems in ((), (2,)):
            tensors, (x, w1, w2) = inputs(*problems)
            got = torch.ops.dualgemm.swiglu(*tensors, 0.01, 0.5, torch.float8_e4m3fn)
            gate, up = 0.01 * x @ w1.mT, 0.5 * x @ w2.mT
            y = torch.nn.functional.silu(gate) * up
            torch.testing.assert_close(got.double(), y.clamp(-448, 448), rtol=2**-4, atol=2**-10)

    def test_compiled_code_calls_it(self):
        tensors, _ = inputs()
        compiled = torch.compile(lambda *t: torch.ops.dualgemm.swiglu(*t) * 2, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(*tensors), torch.ops.dualgemm.swiglu(*tensors) * 2))


class Files(unittest.TestCase):
    """What `import dualgemm.torch_op` says of a file that this torch cannot use."""

    def refusal(self, path, cuda):
        with mock.patch.dict(os.environ, DUALGEMM_TORCH_LIBRARY=path), mock.patch.object(torch.version, "cuda", cuda):
            with self.assertRaises(ImportError) as raised: torch_op._load()
        return str(raised.exception)

    def test_another_cuda(self):
        """Each is refused with the other's torch, and the sentence names the package that fits."""
        with tempfile.TemporaryDirectory() as folder:
            for built, theirs in (("12", "13.0"), ("13", "12.8")):
                path = f"{folder}/libdualgemm_torch.so"
                with open(path, "wb") as file: file.write(b"\x7fELF\0libcudart.so.%s\0" % built.encode())
                major = theirs.split(".")[0]
                self.assertIn(f"; {path} was built with CUDA {built}, and this PyTorch with CUDA {theirs}: install "
                              f"dualgemm-cu{major} instead of dualgemm-cu{built}", self.refusal(path, theirs))
                self.assertRegex(self.refusal(path, f"{built}.4"), "^libdualgemm_torch.so cannot be loaded .*; "
                                 f"{path} is another library: it has no operators for PyTorch$")

    def test_the_file_of_this_build(self):
        major = (torch.version.cuda or "13").split(".")[0]
        other = {"12": "13.0", "13": "12.8"}[major]
        self.assertIn(f"was built with CUDA {major}, and this PyTorch with CUDA {other}: install",
                      self.refusal(torch_op._FILE, other))

    def test_no_file(self):
        self.assertRegex(self.refusal("/none.so", torch.version.cuda),
                         r"cannot be loaded \(make torch builds it; DUALGEMM_TORCH_LIBRARY may name it\); .*/none.so")


class Tensors(unittest.TestCase):
    def test_types_of_torch(self):
        types = {torch.bfloat16: (16, "bfloat16", d.DTYPE_BF16), torch.float16: (16, "float16", d.DTYPE_FP16),
                 torch.float32: (32, "float32", d.DTYPE_FP32), torch.uint8: (8, "uint8", None),
                 torch.float8_e4m3fn: (8, "float8_e4m3fn", d.DTYPE_FP8_E4M3), torch.int32: (32, "int32", None),
                 torch.float64: (64, "float64", None), torch.int64: (64, "int64", None)}
        if hasattr(torch, "float4_e2m1fn_x2"): types[torch.float4_e2m1fn_x2] = (8, "float4_e2m1fn", d.DTYPE_NVFP4)
        for dtype, (bits, element, number) in types.items():
            tensor = torch.empty(4, 6, 8, dtype=dtype)[1:, ::2]
            view = _tensors.view(tensor, "tensor")
            self.assertEqual(view[:-1], (tensor.data_ptr(), (3, 3, 8), (48, 16, 1), bits, element, _tensors.CPU, False))
            self.assertIs(view.held, tensor)
            self.assertEqual(view.dtype, number)

    def test_dlpack_says_what_data_ptr_says(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.uint8, torch.int8, torch.int32,
                      torch.int64, torch.float8_e4m3fn):
            tensor = torch.empty(5, 16, dtype=dtype)[1:, 8:]
            capsule = _tensors.view(tensor.__dlpack__(), "capsule")
            self.assertEqual(capsule[:-1], _tensors.view(tensor, "tensor")[:-1])

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        array = numpy.zeros((4, 6), numpy.float32)[1:, 2:]
        expected = (array.ctypes.data, (3, 4), (6, 1), 32, "float32", _tensors.CPU, False)
        self.assertEqual(_tensors.view(array, "array")[:-1], expected)
        array.flags.writeable = False
        self.assertTrue(_tensors.view(array, "array").read_only)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
