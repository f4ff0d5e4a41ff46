#!/usr/bin/env python3
"""refusals_test.py -- the Python module against what would write past the end of memory, misread its elements, or read
gaps as if they were rows. Sizes are those by hand, and those that the library shows when another tensor begins at the
end.

    refusals_test.py MODULE
"""
import array
import ctypes
import random
import re
import sys
import unittest
import weakref

MODULE = sys.argv[1]
sys.path.insert(0, MODULE)
import dualgemm as d  # noqa: E402
from dualgemm import _rules  # noqa: E402
from dlpack import BF16, FP32, UINT8, Tensor, empty, on_gpu  # noqa: E402

B200 = d.device(cc_major=10, sm_count=148, driver_version=13000)
H100 = d.device(cc_major=9, sm_count=132, driver_version=13000)
EXTENTS = dict(m=2, n=16, k=16)
RULES = {d.Args: [_rules.ARGS], d.QuantizeArgs: [_rules.GATHER], d.SfArgs: [_rules.SWIZZLE, _rules.UNSWIZZLE],
         d.MoePermuteArgs: [_rules.PERMUTE], d.MoeGatherArgs: [_rules.ROWS_BY_INDEX],
         d.MoeCombineArgs: [_rules.COMBINE], d.PrepareMxfp4Args: [_rules.PREPARE_MXFP4]}


class Bytes:
    """So many bytes at an address at which nothing needs to be."""
    dtype = "uint8"

    def __init__(self, address, size):
        self.address, self.shape = address, (size,)

    def data_ptr(self): return self.address
    def element_size(self): return 1


class Address:
    """A tensor that says where it is, and nothing else."""

    def __init__(self, address): self.address = address
    def data_ptr(self): return self.address


def random_launch(mode, c):
    """Fields of a launch in this group mode with this type of C that the library takes, with gaps between rows and
    problems, and the alignments of its tensors in bytes."""
    def up(value): return value + 16 * random.choice((0, 0, 3))
    of_d, bias = random.randrange(3), random.choice((0, 2))
    m, n, k, count = random.randrange(1, 300), 16 * random.randrange(1, 20), 32 * random.randrange(1, 9), 1
    if mode or random.random() < 0.7: count = random.randrange(2, 5)
    c_bits, d_bits, rows = (16, 16, 32, 4, 8)[c], (16, 16, 32)[of_d], count > 1 and mode != d.GROUP_OFFSETS
    fields = dict(m=m, n=n, k=k, group_mode=mode, c_dtype=c, d_dtype=of_d, bias_dtype=bias, workspace_size=1)
    fields["groups" if mode else "batch"] = count
    aligned = dict(group_rows=4) if mode else {}

    def matrix(name, rows, columns, bits, several):
        pitch = random.choice((0, -(-columns // 32) * 32 + 32 * random.choice((0, 0, 2))))
        if not pitch and columns * bits % 128: pitch = -(-columns // 32) * 32
        fields["ld_c_add" if name == "c_add" else f"ld{name}"] = pitch
        aligned["out" if name == "c" else name] = 16
        stride = 128 * -(-rows * (pitch or columns) // 128) + 128 * random.randrange(2)
        if several and (rows * (pitch or columns) * bits % 128 or random.random() < 0.5):
            fields[f"batch_stride_{name}"] = stride

    def vector(name, alignment, field, stride, several):
        aligned[name] = alignment
        if several and random.random() < 0.5: fields.setdefault(field, stride)

    mxfp4 = random.random() < 0.3
    weights = d.DTYPE_MXFP4 if mxfp4 else d.DTYPE_NVFP4
    if mxfp4: fields.update(a_dtype=d.DTYPE_FP8_E4M3, b_dtype=d.DTYPE_MXFP4)
    matrix("a", m, k, 8 if mxfp4 else 4, rows)
    for name in ("b1", "b2"): matrix(name, n, k, 4, count > 1)
    matrix("c", m, n, c_bits, rows)
    for name in ("d1", "d2"): matrix(name, m, n, d_bits, rows)
    for name in ("sfb1", "sfb2"): vector(name, 16, f"batch_stride_{name}", up(d.sf_size_of(weights, n, k)),
                                              count > 1)
    if mode != d.GROUP_OFFSETS:  # of which the library knows one block only
        if not mxfp4: vector("sfa", 16, "batch_stride_sfa", up(d.sf_size(m, k)), rows)
        if c == d.DTYPE_NVFP4: vector("sfc", 16, "batch_stride_sfc", up(d.sf_size(m, n)), rows)
    for name in ("alpha1_dev", "alpha2_dev"): vector(name, 4, "alpha_stride", up(3), count > 1)
    for name in ("bias1", "bias2"): vector(name, 4 if bias else 2, "bias_stride", up(n), count > 1)
    for name in ("a_row_scale", "c_row_scale"): vector(name, 4, f"batch_stride_{name}", up(m), rows)
    if c in (d.DTYPE_NVFP4, d.DTYPE_FP8_E4M3): vector("c_global_scale_dev", 4, "c_global_scale_stride", 5, count > 1)
    for name in ("b1_row_exponent", "b2_row_exponent") if mxfp4 else ():
        vector(name, 2, "batch_stride_b_row_exponent", up(n), count > 1)
    aligned["amax_out"] = 4
    if c_bits >= 16 and random.random() < 0.4:  # one product, with what is added to C
        fields["products"] = 1
        for name in ("b2", "sfb2", "d2", "bias2", "alpha2_dev", "b2_row_exponent"): aligned.pop(name, 0)
        for name in ("ldb2", "ldd2", "batch_stride_b2", "batch_stride_d2", "batch_stride_sfb2"): fields.pop(name, 0)
        matrix("c_add", m, n, c_bits, rows)
    return fields, aligned


class Sizes(unittest.TestCase):
    def setUp(self):
        random.seed(2)

    def test_every_pointer_has_a_rule(self):
        for structure, tables in RULES.items():
            pointers = {name for name, kind in structure._fields_ if kind is ctypes.c_void_p}
            renamed = {} if "out" in pointers else {"out": "c"}
            for table in tables: self.assertEqual({renamed.get(name, name) for name in table}, pointers)
        self.assertEqual(_rules.GATHER.keys() - _rules.QUANTIZE.keys(), {"row_index"})

    def accepted(self, fields, places, name, size):
        tensors = {other: Bytes(address, 1 << 40) for other, address in places.items()}
        tensors[name] = Bytes(places[name], size)
        try:
            return d.arguments(**tensors, **fields)
        except ValueError as error:
            self.assertRegex(str(error), rf"^{name}: has {size} bytes, and \d+ are needed$")
            return None

    def least(self, *which):
        low, high = -1, 1 << 36  # refused, accepted
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.accepted(*which, middle) else (middle, high)
        return high

    def test_sizes_of_a_launch_are_those_of_the_library(self):
        """A workspace that begins where the module says that a tensor may end does not overlap it, and overlaps it
        where the tensor begins one alignment later."""
        seen = set()
        for i in range(30):  # every group mode with every type of C, twice
            fields, aligned = random_launch(i % 3, i % 5)
            workspace = 1 << 47
            second = () if "products" in fields else ("b2", "sfb2")
            mxfp4 = "b_dtype" in fields
            given = {**dict.fromkeys(("a", "b1", "sfb1", "out", *second), 16), **aligned}
            if not mxfp4: given["sfa"] = 16
            if fields["c_dtype"] == d.DTYPE_NVFP4: given["sfc"] = 16
            places = {name: (i + 1) << 41 for i, name in enumerate(given)}
            for name, alignment in aligned.items():
                seen.add(name)
                with self.subTest(name, **fields):
                    size = self.least({**fields, "workspace": workspace}, places, name)
                    begin = workspace - -(-size // alignment) * alignment
                    for address, overlaps in ((begin, False), (begin + alignment, True)):
                        args = d.arguments(**{**places, name: address}, workspace=workspace, **fields)
                        try:
                            d.can_implement_on(args, H100 if mxfp4 else B200)
                            self.assertFalse(overlaps)
                        except d.Error as error:
                            self.assertEqual((error.name, overlaps), ("DUALGEMM_STATUS_ALIASING", True), str(error))
                            self.assertIn("c=" if name == "out" else f"{name}=", str(error))
        self.assertEqual(seen, set(_rules.ARGS) - {"workspace"})

    def test_factors_with_offsets(self):
        """Three groups of 130 rows together begin a block each: 128 + 1 + 1 rows are three, 1 + 1 + 128 are, too."""
        fields = dict(m=130, n=160, k=96, group_mode=d.GROUP_OFFSETS, groups=3, c_dtype=d.DTYPE_NVFP4)
        block = 128 * 8  # of 96 / 16 factors, in fours
        places = {name: (i + 1) << 41 for i, name in enumerate(("a", "b1", "b2", "sfa", "sfb1", "sfb2", "out", "sfc"))}
        self.assertEqual(self.least(fields, places, "sfa"), 3 * block)
        self.assertEqual(self.least(fields, places, "sfc"), 3 * 128 * 12)
        self.assertEqual(self.least({**fields, "m": 2, "groups": 9}, places, "sfa"), 2 * block)
        self.assertEqual(self.least(fields, {**places, "group_rows": 1 << 46}, "group_rows"), 4 * 4)
        places["workspace"] = 1 << 46
        self.assertEqual(self.least({**fields, "workspace_size": 77}, places, "workspace"), 77)

    def exactly(self, call, twin, sizes, outputs, rows_of_groups=(), **fields):
        """With buffers of these sizes both functions give the same, and the simulated GPU lets nobody past an end; with
        any of them a byte shorter they refuse, and have written nothing."""
        data = {name: random.randbytes(size) for name, size in sizes.items()}
        if rows_of_groups: data["group_rows"] = array.array("i", rows_of_groups).tobytes()

        def on_host(data): return {name: bytearray(x) for name, x in data.items()}
        def on_device(data): return {name: on_gpu(x, UINT8, (len(x),)) for name, x in data.items()}
        def contents(tensors): return {name: x.bytes() if isinstance(x, Tensor) else x for name, x in tensors.items()}
        host, device = on_host(data), on_device(data)
        twin(**host, **fields)
        call(**device, **fields)
        self.assertEqual(contents(device), host)
        self.assertEqual({name for name in data if host[name] != data[name]}, outputs)
        for name, size in sizes.items():
            short = {**data, name: data[name][:-1]}
            for function, tensors in ((twin, on_host(short)), (call, on_device(short))):
                with self.assertRaisesRegex(ValueError, f"^{name}: has {size - 1} bytes, and {size} are needed$"):
                    function(**tensors, **fields)
                self.assertEqual(contents(tensors), short)

    def quantizes(self, sizes, **fields):
        outputs = {"q", "sf", "tensor_scales", "row_scale"} & set(sizes)
        self.exactly(d.quantize, d.quantize_host, sizes, outputs, **fields)

    def test_sizes_of_quantize(self):
        # 130 rows of 96: two blocks of 128 rows, of 8 factors each.
        fields = dict(rows=130, k=96)
        sizes = dict(x=130 * 96 * 4, q=130 * 48, sf=2 * 128 * 8)
        self.quantizes(sizes, x_dtype=d.DTYPE_FP32, **fields)
        self.quantizes({**sizes, "x": 130 * 96 * 2, "tensor_scales": 12}, scale_mode=d.SCALE_TENSOR, **fields)
        self.quantizes({**sizes, "x": 129 * 104 * 2 + 96 * 2, "q": 129 * 64 + 48, "row_scale": 130 * 4}, ldx=104,
                       ldq=128, scale_mode=d.SCALE_ROW, **fields)

    def test_sizes_of_quantize_to_fp8(self):
        fields = dict(rows=10, k=48, q_dtype=d.DTYPE_FP8_E4M3)
        self.quantizes(dict(x=10 * 96, q=10 * 48), **fields)
        self.quantizes(dict(x=10 * 96, q=9 * 64 + 48, row_scale=40), ldq=64, scale_mode=d.SCALE_ROW, **fields)

    def test_sizes_of_quantize_of_several(self):
        fields = dict(rows=5, k=32)
        sizes = dict(x=2 * 5 * 64 + 5 * 64, q=3 * 5 * 16, sf=3 * 128 * 4)
        self.quantizes({**sizes, "row_scale": 2 * 9 * 4 + 5 * 4}, batch=3, batch_stride_row_scale=9,
                       scale_mode=d.SCALE_ROW, **fields)
        self.quantizes({**sizes, "x": 2 * 400 + 5 * 64, "global_scale_dev": 4}, batch=3, batch_stride_x=200, **fields)
        self.quantizes({**sizes, "global_scale_dev": 2 * 8 + 4, "group_rows": 12}, groups=3, global_scale_stride=2,
                       group_mode=d.GROUP_MASKED, rows_of_groups=(5, 5, 5), **fields)
        # With OFFSETS x and q are one matrix, and each of three groups begins a block.
        self.quantizes(dict(x=5 * 64, q=5 * 16, sf=3 * 128 * 4, row_scale=20, group_rows=16), groups=3,
                       group_mode=d.GROUP_OFFSETS, rows_of_groups=(0, 1, 2, 5), scale_mode=d.SCALE_ROW, **fields)

    def test_sizes_of_prepare_mxfp4(self):
        # 130 rows of 96: two blocks of 128 rows, of 3 factors each, in fours.
        functions, outputs = (d.prepare_mxfp4, d.prepare_mxfp4_host), {"sf", "row_exponent", "counts"}
        fields = dict(rows=130, k=96)
        self.exactly(*functions, dict(q=129 * 64 + 48, scales=130 * 3, sf=2 * 128 * 4, row_exponent=260, counts=16),
                     outputs, ldq=128, **fields)
        fields = dict(rows=5, k=32, batch=3)
        self.exactly(*functions, dict(q=2 * 96 + 5 * 16, scales=2 * 22 + 4 * 4 + 1, sf=2 * 528 + 512,
                                      row_exponent=2 * 2 * 7 + 2 * 5, counts=16), outputs, batch_stride_q=192, pitch=4,
                     batch_stride_scales=22, batch_stride_sf=528, batch_stride_row_exponent=7, **fields)

    def test_sizes_of_conversions(self):
        for functions, rows, atoms in (((d.sf_swizzle, d.sf_swizzle_host), "src", "dst"),
                                       ((d.sf_unswizzle, d.sf_unswizzle_host), "dst", "src")):
            out, fields = {"dst"}, dict(rows=130, k=96)
            self.exactly(*functions, {rows: 130 * 6, atoms: 2 * 128 * 8}, out, **fields)
            self.exactly(*functions, {rows: 129 * 11 + 6, atoms: 2 * 128 * 8}, out, pitch=11, **fields)
            self.exactly(*functions, {rows: 2 * 800 + 130 * 6, atoms: 2 * 3072 + 2048}, out, batch=3,
                         **{f"batch_stride_{rows}": 800, f"batch_stride_{atoms}": 3072}, **fields)
            self.exactly(*functions, {rows: 130 * 6, atoms: 3 * 1024, "group_rows": 16}, out, groups=3,
                         group_mode=d.GROUP_OFFSETS, rows_of_groups=(0, 1, 2, 130), **fields)

    def test_sizes_of_the_reference_s_y_and_of_the_global_scale(self):
        data = [bytearray(size) for size in (3 * 64, 8 * 64, 8 * 64, 1024, 1024, 1024, 3 * 8 * 2)]
        extents = dict(m=3, n=8, k=128)
        y = array.array("d", [7]) * 24
        d.reference_host(*data, y=y, **extents)
        self.assertEqual(set(y), {0})
        for short in (array.array("d", [7]) * 23, bytearray(3 * 8 * 8 - 1)):
            before = bytes(short)
            with self.assertRaisesRegex(ValueError, r"^y: has (184|191) bytes, and 192 are needed$"):
                d.reference_host(*data, y=short, **extents)
            self.assertEqual(bytes(short), before)
        with self.assertRaisesRegex(ValueError, "^y: its elements are float32, and float64 is needed"):
            d.reference_host(*data, y=array.array("f", [0]) * 48, **extents)
        with self.assertRaisesRegex(ValueError, "^y: this memory is read-only"):
            d.reference_host(*data, y=bytes(192), **extents)
        x = array.array("f", [1]) * (2 * 20 + 16)
        self.assertEqual(d.global_scale_host(x, 3, 16, 20), 448 * 6)
        for arguments, need in (((3, 16, 21), 232), ((4, 16), 256)):
            with self.assertRaisesRegex(ValueError, f"^x: has 224 bytes, and {need} are needed"):
                d.global_scale_host(x, *arguments)
        with self.assertRaisesRegex(ValueError, "^x: its elements are float64, and float32 is needed"):
            d.global_scale_host(array.array("d", x), 3, 16)

    def test_extents_that_nobody_says(self):
        """Taken as 0 they would make a launch of nothing, which succeeds."""
        data = [bytearray(size) for size in (3 * 64, 8 * 64, 8 * 64, 1024, 1024, 1024, 3 * 8 * 2)]
        bare = [Address(16 << i) for i in range(7)]
        extents = dict(m=3, n=8, k=128)
        for missing in extents:
            said = {name: value for name, value in extents.items() if name != missing}
            for call in (lambda: d.launch(*bare, **said), lambda: d.reference_host(*data, **said),
                         lambda: d.arguments(*bare, **said)):
                with self.assertRaisesRegex(ValueError, f"^{missing}: neither given nor known"): call()
        x, q, sf = array.array("f", [1]) * (10 * 64), bytearray(10 * 32), bytearray(512)
        for missing, said in (("rows", dict(k=64)), ("k", dict(rows=10))):
            for call, tensors in ((d.quantize, bare[:3]), (d.quantize_host, (x, q, sf))):
                with self.assertRaisesRegex(ValueError, f"^{missing}: neither given nor known"):
                    call(*tensors, **said, x_dtype=d.DTYPE_FP32)
        self.assertEqual(set(data[-1] + q + sf), {0})
        for none in extents:  # a 0 that is given is a launch of nothing, or is refused by the library
            args = d.arguments(*bare, **{**extents, none: 0})
            self.assertEqual(getattr(args, none), 0)
        d.reference_host(*data, **{**extents, "m": 0})
        d.quantize_host(x, q, sf, rows=0, k=64)

    def test_integers(self):
        class Index:
            def __index__(self): return 3

        self.assertEqual(d.arguments(m=Index(), n=True, k=16).m, 3)
        for name in ("m", "k", "batch", "lda", "flags", "workspace_size"):
            for value in (1.5, 2.0, "16", b"16", None, [], 1j):
                with self.assertRaisesRegex(ValueError, f"^{name}={re.escape(repr(value))}: an integer is needed$"):
                    d.arguments(**{**EXTENTS, name: value})
        for name, value in (("m", 2**31), ("n", -2**31 - 1), ("lda", 2**63), ("flags", 2**32)):
            with self.assertRaisesRegex(ValueError, f"^{name}={value}: the field has (32|64) bits$"):
                d.arguments(**{**EXTENTS, name: value})
        for name in ("alpha1", "swiglu_limit"):
            for value in (None, "1", 1j, 10**400):
                with self.assertRaisesRegex(ValueError, f"^{name}={re.escape(repr(value))}: "):
                    d.arguments(**{**EXTENTS, name: value})
        for value in ("x", "16", 1.5, object(), []):
            with self.assertRaisesRegex(ValueError, f"^stream={re.escape(repr(value))}: neither a number nor a stream"):
                d.quantize(16, 16, 16, rows=1, k=16, stream=value)
        for call, name in ((lambda x: d.sf_size(x, 16), "rows"), (lambda x: d.sf_size(16, x), "k"),
                           (d.instance_info, "instance_id"), (lambda x: d.device(sm_count=x), "sm_count")):
            for value in (1.5, 2**32 + 1):
                with self.assertRaisesRegex(ValueError, f"^{name}={value}: "): call(value)
        with self.assertRaisesRegex(ValueError, "^name='B200': "): d.device(name="B200")

    def test_extents_that_a_field_cannot_hold(self):
        tall = Bytes(1 << 40, 0)
        tall.shape = (2**32 + 24, 8)  # 24, if 32 bits were all that is looked at
        with self.assertRaisesRegex(ValueError, f"^rows={2**32 + 24}: the field has 32 bits"):
            d.quantize_host(bytearray(24 * 16 * 2), tall, bytearray(2048), k=16)


# Names of torch, and type code and bits of DLPack.
NAMED = {"bfloat16": (4, 16), "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "float8_e4m3fn": (10, 8),
         "float8_e5m2": (12, 8), "float8_e8m0fnu": (14, 8), "float4_e2m1fn": (17, 4), "int16": (0, 16),
         "int32": (0, 32), "uint32": (1, 32), "int64": (0, 64), "bool": (6, 8), "uint8": (1, 8), "int8": (0, 8)}
E2M1, UE4M3 = {"float4_e2m1fn"}, {"float8_e4m3fn"}
FP32_ONLY, INT32_ONLY = {"float32"}, {"int32"}


class Elements(unittest.TestCase):
    def check(self, name, takes, build):
        """`build` is given a tensor of every type, and refuses those that `takes` does not name, bytes apart."""
        for element, (code, bits) in NAMED.items():
            dlpack = Tensor(bytearray(4096), (code, bits, 1), (4096 * 8 // bits,))
            named = Bytes(1 << 40, 4096)
            named.dtype = f"torch.{element}" if bits != 4 else "torch.float4_e2m1fn_x2"
            for tensor in (dlpack, named):
                with self.subTest(f"{name} of {element}", tensor=tensor):
                    if element in takes | {"uint8", "int8"}:
                        build(tensor)
                        continue
                    with self.assertRaisesRegex(ValueError, f"^{name}: its elements are .*, and .* is needed"):
                        build(tensor)

    def test_of_a_launch(self):
        fields = dict(m=2, n=16, k=32, group_mode=d.GROUP_MASKED, groups=1, a_dtype=d.DTYPE_NVFP4,
                      c_dtype=d.DTYPE_BF16, d_dtype=d.DTYPE_FP16, bias_dtype=d.DTYPE_FP32)
        of_b = UE4M3 | {"float8_e8m0fnu"}
        takes = {"a": E2M1, "b1": E2M1, "b2": E2M1, "sfa": UE4M3, "sfb1": of_b, "sfb2": of_b, "sfc": UE4M3,
                 "b1_row_exponent": {"int16"}, "b2_row_exponent": {"int16"},
                 "out": {"bfloat16"}, "c_add": {"bfloat16"}, "d1": {"float16"}, "d2": {"float16"},
                 "bias1": FP32_ONLY, "bias2": FP32_ONLY, "group_rows": INT32_ONLY, "workspace": set(NAMED)}
        for name in _rules.ARGS:
            self.check(name, takes.get(name, FP32_ONLY), lambda t: d.arguments(**{name: t}, **fields))

    def test_of_quantize(self):
        takes = {"x": {"float16"}, "q": E2M1, "sf": UE4M3, "group_rows": INT32_ONLY}
        for name in _rules.QUANTIZE:
            def build(tensor):
                tensors = {"x": 16, "q": 16, "sf": 16, "x_dtype": d.DTYPE_FP16, "q_dtype": d.DTYPE_NVFP4, name: tensor}
                d.quantize_host(rows=0, k=16, **tensors, **fields)
            fields = {"tensor_scales": dict(scale_mode=d.SCALE_TENSOR), "row_scale": dict(scale_mode=d.SCALE_ROW),
                      "group_rows": dict(group_mode=d.GROUP_MASKED, groups=1)}.get(name, {})
            self.check(name, takes.get(name, FP32_ONLY), build)

    def test_of_prepare_mxfp4(self):
        takes = {"q": E2M1, "scales": {"float8_e8m0fnu"}, "sf": {"float8_e8m0fnu"}, "row_exponent": {"int16"},
                 "counts": {"uint32"}}
        for name in _rules.PREPARE_MXFP4:
            self.check(name, takes[name], lambda t: d.prepare_mxfp4_host(
                **{**dict.fromkeys(("q", "scales", "sf", "row_exponent"), 16), name: t}, rows=0, k=32))

    def test_of_conversions(self):
        for function in (d.sf_swizzle_host, d.sf_unswizzle_host):
            self.check("src", UE4M3, lambda t: function(t, 16, 0, 16))
            self.check("dst", UE4M3, lambda t: function(16, t, 0, 16))
            self.check("group_rows", INT32_ONLY, lambda t: function(16, 16, 0, 16, group_rows=t, groups=1,
                                                                    group_mode=d.GROUP_MASKED))

    def test_types_that_tensors_say(self):
        args = d.arguments(m=2, n=4, k=16, out=Tensor(bytearray(32), FP32, (2, 4)), bias2=array.array("f", [0]) * 4,
                           d1=Tensor(bytearray(16), (2, 16, 1), (2, 4)))
        self.assertEqual((args.c_dtype, args.d_dtype, args.bias_dtype), (d.DTYPE_FP32, d.DTYPE_FP16, d.DTYPE_FP32))
        for a, number in ((Tensor(bytearray(64), BF16, (2, 16)), d.DTYPE_BF16),
                          (Tensor(bytearray(64), (2, 16, 1), (2, 16)), d.DTYPE_FP16), (bytearray(16), d.DTYPE_NVFP4)):
            self.assertEqual(d.arguments(a=a, m=2, n=4, k=16).a_dtype, number)
        with self.assertRaisesRegex(ValueError, "^bias1: its elements are float32, .* as bias_dtype=0 says"):
            d.arguments(m=2, n=4, k=16, bias1=array.array("f", [0]) * 4, bias_dtype=d.DTYPE_BF16)
        with self.assertRaisesRegex(ValueError, "^bias[12]: its elements are (bfloat16|float32)"):
            d.arguments(m=2, n=4, k=16, bias1=array.array("f", [0]) * 4, bias2=Tensor(bytearray(8), BF16, (4,)))

    def test_of_buffers(self):
        formats = {"f": True, "d": False, "i": False, "l": False, "q": False, "B": True, "b": True}
        for letter, good in formats.items():
            data = array.array(letter, bytes(64))
            if good: d.arguments(**EXTENTS, alpha1_dev=data)
            else: self.assertRaisesRegex(ValueError, "^alpha1_dev: its elements", d.arguments, alpha1_dev=data)
        d.arguments(**EXTENTS, alpha1_dev=(ctypes.c_float * 4)())
        self.assertRaisesRegex(ValueError, "^alpha1_dev: its elements are of format >f", d.arguments,
                               alpha1_dev=(ctypes.c_float.__ctype_be__ * 4)())
        self.assertRaisesRegex(ValueError, "^alpha1_dev: its elements are 2 times float32", d.arguments,
                               alpha1_dev=Tensor(bytearray(64), (2, 32, 2), (8,)))


class Places(unittest.TestCase):
    """Rows with gaps, several matrices, and addresses."""

    def compact(self, x, **fields):
        rows, k, count = fields["rows"], fields["k"], fields.get("batch", 1)
        q, sf = bytearray(count * rows * k // 2), bytearray(count * 512)
        d.quantize_host(x, q, sf, x_dtype=d.DTYPE_FP32, **fields)
        return bytes(q), bytes(sf)

    def setUp(self):
        random.seed(3)
        self.x = array.array("f", (random.gauss(0, 3) for _ in range(3 * 10 * 64)))

    def tensor(self, shape, strides, offset=0, data=None):
        return Tensor(bytearray(data or self.x.tobytes()), FP32, shape, strides, offset)

    def both(self, x, expected):
        """quantize_host and quantize of x give this."""
        q, sf = (bytearray(len(data)) for data in expected)
        d.quantize_host(x, q, sf)
        self.assertEqual((bytes(q), bytes(sf)), expected)
        device = [empty(UINT8, (len(data),)) for data in expected]
        d.quantize(on_gpu(x.memory, FP32, x.shape, strides=x.strides, offset=x.offset), *device)
        self.assertEqual(tuple(t.bytes() for t in device), expected)

    def test_every_second_row(self):
        rows = array.array("f", (v for r in range(0, 30, 2) for v in self.x[64 * r:64 * r + 64]))
        self.both(self.tensor((15, 64), (128, 1)), self.compact(rows, rows=15, k=64))

    def test_the_second_half_of_every_row(self):
        half = array.array("f", (v for r in range(30) for v in self.x[64 * r + 32:64 * r + 64]))
        self.both(self.tensor((30, 32), (64, 1), offset=128), self.compact(half, rows=30, k=32))
        self.assertEqual(d.global_scale_host(self.tensor((30, 32), (64, 1), offset=128), 30, 32),
                         d.global_scale_host(half, 30, 32))

    def test_several_matrices(self):
        expected = self.compact(self.x, rows=10, k=64, batch=3)
        self.both(self.tensor((3, 10, 64), None), expected)
        turned = array.array("f", (v for r in range(10) for b in range(3) for v in self.x[640 * b + 64 * r:][:64]))
        with self.assertRaises(d.Error):  # strides that C has no place for: the matrices lie within each other
            self.both(self.tensor((3, 10, 64), (64, 192, 1), data=turned.tobytes()), expected)

    def test_what_no_pitch_says(self):
        q, sf = bytearray(10 * 64 * 3), bytearray(4096)
        for shape, strides in (((10, 32), (64, 2)), ((64, 10), (1, 64)), ((10, 64), (0, 1)), ((3, 10, 64), (0, 64, 1))):
            with self.assertRaisesRegex(ValueError, "^x: the strides"):
                d.quantize_host(self.tensor(shape, strides), q, sf)
        with self.assertRaisesRegex(ValueError, "^x: its elements lie one behind the other"):
            d.quantize_host(self.tensor((640,), (2,)), q, sf, rows=10, k=64)
        with self.assertRaisesRegex(ValueError, "^x: a matrix has 2 dimensions"):
            d.quantize_host(self.tensor((3, 2, 5, 64), None), q, sf)
        with self.assertRaisesRegex(ValueError, "^batch=1, and x has 3 problems"):
            d.global_scale_host(self.tensor((3, 10, 64), None), 10, 64)
        with self.assertRaisesRegex(ValueError, "^q: its shape says rows=9, and rows=10 was said"):
            d.quantize_host(self.tensor((10, 64), None), Tensor(q, UINT8, (9, 32)), sf)
        with self.assertRaisesRegex(ValueError, "^x: with OFFSETS"):
            d.quantize_host(self.tensor((3, 10, 64), None), q, sf, group_mode=d.GROUP_OFFSETS, groups=3,
                            group_rows=array.array("i", [0, 1, 2, 10]))
        self.assertEqual((set(q), set(sf)), ({0}, {0}))

    def test_pitches_of_outputs_and_of_factors(self):
        expected, _ = self.compact(self.x, rows=30, k=64)
        wide, sf = bytearray(b"\xEE" * 30 * 48), bytearray(1024)
        d.quantize_host(self.x, Tensor(wide, UINT8, (30, 32), (48, 1)), sf, x_dtype=d.DTYPE_FP32)
        self.assertEqual(b"".join(wide[48 * r:48 * r + 32] for r in range(30)), expected[:960])
        self.assertEqual({bytes(wide[48 * r + 32:48 * r + 48]) for r in range(30)}, {b"\xEE" * 16})
        source = random.randbytes(20 * 4)
        atoms, plain = bytearray(512), bytearray(512)
        d.sf_swizzle_host(Tensor(bytearray(source), UINT8, (10, 4), (8, 1), 4), atoms, 10, 64)
        d.sf_swizzle_host(b"".join(source[8 * r + 4:8 * r + 8] for r in range(10)), plain, 10, 64)
        self.assertEqual(atoms, plain)
        back = bytearray(80)
        d.sf_unswizzle_host(atoms, Tensor(back, UINT8, (10, 4), (8, 1)), 10, 64)
        self.assertEqual(back, b"".join(source[8 * r + 4:8 * r + 8] + bytes(4) for r in range(10)))
        with self.assertRaisesRegex(ValueError, "^src: the strides"):
            d.sf_swizzle_host(Tensor(bytearray(source), UINT8, (10, 4), (8, 2)), atoms, 10, 64)

    def test_vectors_have_no_gaps(self):
        for shape, strides in (((10,), (2,)), ((2, 5), (6, 1)), ((2, 5), (1, 2))):
            with self.assertRaisesRegex(ValueError, "^a_row_scale: its elements lie one behind the other"):
                d.arguments(m=10, n=16, k=16, a_row_scale=self.tensor(shape, strides))
        d.arguments(m=10, n=16, k=16, a_row_scale=self.tensor((2, 5), (5, 1)))

    def test_strides_of_nothing(self):
        """Of a tensor without elements, as numpy has them, and of dimensions of one element."""
        b, sf, fields = bytearray(16 * 64), bytearray(1024), dict(m=0, n=16, k=128)
        for problems in (), (1,):
            a, out = (Tensor(bytearray(16), kind, (*problems, 0, columns), (0,) * (len(problems) + 2))
                      for kind, columns in ((UINT8, 64), (FP32, 16)))
            args = d.arguments(a, b, b, sf, sf, sf, out, n=16)
            self.assertEqual((args.m, args.n, args.k, args.lda, args.ldc), (0, 16, 128, 0, 0))
            d.reference_host(a, b, b, sf, sf, sf, out, n=16)
        args = d.arguments(Tensor(bytearray(16), UINT8, (4, 0), (1, 1)), n=16)
        self.assertEqual((args.m, args.k, args.lda), (4, 0, 0))
        row = array.array("f", self.x[:64])
        self.both(self.tensor((1, 1, 64), (0, 0, 1)), self.compact(row, rows=1, k=64))
        self.assertEqual(d.arguments(m=3, n=1, k=16, out=self.tensor((3, 1), (8, 0))).ldc, 8)
        with self.assertRaisesRegex(ValueError, "^a: its shape says m=0, and m=1 was said"):
            d.arguments(Tensor(bytearray(16), UINT8, (0, 64), (0, 0)), **{**fields, "m": 1})

    def test_tensors_without_elements(self):
        d.arguments(m=0, n=16, k=16, sfa=Tensor(bytearray(8), UINT8, (3, 0), (1, 1)))
        with self.assertRaisesRegex(ValueError, "^alpha1_dev: has 0 bytes, and 4 are needed"):
            d.arguments(**EXTENTS, alpha1_dev=Tensor(bytearray(64), FP32, (8, 0), (1, 1)))

    def test_kinds_of_memory(self):
        """DLPack numbers them: host, CUDA, pinned and managed memory, and those of other makers."""
        class Elsewhere(Tensor):
            def __dlpack_device__(self): return kind, 0

        q, sf, y = bytearray(960), bytearray(512), array.array("f", [1]) * 3
        for kind, good in ((1, True), (2, False), (3, True), (13, True), (10, False), (8, False)):
            x = Elsewhere(bytearray(self.x.tobytes()), FP32, (30, 64))
            if good: d.quantize_host(x, q, sf)
            else: self.assertRaisesRegex(ValueError, "^x: lies in .* memory", d.quantize_host, x, q, sf)
            if kind in (1, 10):  # before a launch reads any of it
                self.assertRaisesRegex(ValueError, "^alpha1_dev: lies in .* memory", d.launch, *[16] * 7, **EXTENTS,
                                       alpha1_dev=Elsewhere(bytearray(y), FP32, (3,)))

    def test_addresses(self):
        good, rows = dict(a=16, b1=16, b2=16, sfa=16, sfb1=16, sfb2=16), dict(rows=1, k=16)
        for wrong in (2**64, 2**70, -1, -2**63):
            text = "={}: no address has this value$".format(re.escape(str(wrong)))
            with self.assertRaisesRegex(ValueError, f"^b1{text}"): d.launch(**{**good, "b1": wrong}, out=16)
            with self.assertRaisesRegex(ValueError, f"^sf{text}"): d.quantize(16, 16, wrong)
            with self.assertRaisesRegex(ValueError, f"^y{text}"): d.reference_host(**good, out=16, y=wrong, **EXTENTS)
            with self.assertRaisesRegex(ValueError, f"^x{text}"): d.global_scale_host(Bytes(wrong, 64), 1, 16)
            with self.assertRaisesRegex(ValueError, f"^stream{text}"): d.quantize(16, 16, 16, **rows, stream=wrong)
        self.assertEqual(d.arguments(a=2**64 - 16, **EXTENTS).a, 2**64 - 16)


class Capsules(unittest.TestCase):
    def inputs(self, **kind):
        x = random.Random(5)
        sizes = (3 * 64, 8 * 64, 8 * 64, 1024, 1024, 1024)
        data = [bytearray(x.choice((0x28, 0x30, 0x38)) for _ in range(size)) for size in sizes]
        shapes = ((3, 64), (8, 64), (8, 64), (1024,), (1024,), (1024,))
        return [Tensor(memory, UINT8, shape, **kind) for memory, shape in zip(data, shapes)]

    def test_capsules_that_own_their_memory_live_until_the_function_returns(self):
        expected = d.reference_host(*(t.memory for t in self.inputs()), array.array("f", [7]) * 24, m=3, n=8, k=128)
        self.assertGreater(len(set(expected)), 8)
        for versioned in (False, True):
            tensors = self.inputs(owning=True, versioned=versioned)
            for passed in (tensors, (t.__dlpack__() for t in tensors)):
                self.assertEqual(d.reference_host(*passed, array.array("f", [7]) * 24, m=3, n=8, k=128), expected)
                del passed
                self.assertEqual(Tensor.live, 0)

    def test_arguments_hold_them(self):
        args = d.arguments(*self.inputs(owning=True))
        self.assertEqual(Tensor.live, 6)
        self.assertEqual((args.m, args.n, args.k), (3, 8, 128))
        del args
        self.assertEqual(Tensor.live, 0)

    def test_arguments_hold_buffers_and_objects(self):
        buffer, tensor = bytearray(64), Bytes(1 << 40, 64)
        args, gone = d.arguments(a=buffer, b1=tensor, m=1, n=1, k=64), weakref.ref(tensor)
        del tensor
        with self.assertRaises(BufferError): buffer.extend(b"x")  # which could move it
        self.assertIsNotNone(gone())
        del args
        buffer.extend(b"x")
        self.assertIsNone(gone())

    def test_a_refusal_gives_them_back(self):
        tensors = self.inputs(owning=True)
        with self.assertRaises(ValueError): d.reference_host(*tensors, bytearray(47))
        self.assertEqual(Tensor.live, 0)

    def test_nothing_is_written_to_a_copy(self):
        copy = Tensor(bytearray(3 * 8 * 2), BF16, (3, 8), read_only=2)  # the flag of a copy
        with self.assertRaisesRegex(ValueError, "^out: this memory is read-only, or a copy"):
            d.reference_host(*self.inputs(), copy)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
