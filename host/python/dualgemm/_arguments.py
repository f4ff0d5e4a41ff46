"""Argument structures from tensors: what their shapes and strides say is filled in, and what disagrees is refused."""
import ctypes
import math

from . import _structures as s
from ._library import load
from ._tensors import CPU, CUDA, view

_BITS = {s.DTYPE_BF16: 16, s.DTYPE_FP16: 16, s.DTYPE_FP32: 32, s.DTYPE_NVFP4: 4, s.DTYPE_FP8_E4M3: 8}
_OUTPUTS = {"c", "sfc", "d1", "d2", "amax_out", "workspace", "dst", "q", "sf", "tensor_scales", "row_scale"}

# Matrices of a launch: their rows and columns, and the fields for their strides.
_MATRICES = {"a": ("m", "k"), "b1": ("n", "k"), "b2": ("n", "k"), "c": ("m", "n"), "d1": ("m", "n"), "d2": ("m", "n")}
_FACTORS = {"sfa": ("m", "k"), "sfb1": ("n", "k"), "sfb2": ("n", "k"), "sfc": ("m", "n")}


def initialised(kind):
    """A structure as its initialiser in the library leaves it."""
    names = {s.Args: "args", s.Device: "device", s.InstanceInfo: "instance_info", s.SfArgs: "sf_args",
             s.QuantizeArgs: "quantize_args"}
    structure = kind()
    getattr(load(), f"dualgemm_{names[kind]}_init_sized")(ctypes.byref(structure), ctypes.sizeof(kind))
    return structure


def fill(structure, fields):
    """Sets fields by their names; tensors become addresses. The structure holds the tensors."""
    types, views = dict(structure._fields_), {}
    for name, value in fields.items():
        if name not in types or name == "struct_size":
            raise TypeError(f"{name}: {type(structure).__doc__} has no such field that a program sets")
        if types[name] is ctypes.c_void_p:
            views[name] = view(value, name)
            if views[name].read_only and name in _OUTPUTS: raise ValueError(f"{name}: this memory is read-only")
            value = views[name].address
        elif types[name] not in (ctypes.c_float, ctypes.c_char * 68):
            value = int(value)
            if types[name](value).value != value:  # ctypes cuts what is too large
                raise OverflowError(f"{name}={value}: the field has {8 * ctypes.sizeof(types[name])} bits")
        setattr(structure, name, value)
    structure.views = views
    structure.held = tuple(fields.values())
    return structure


def in_place(structure, kind):
    """The structure, if all its tensors may lie in this kind of memory."""
    for name, tensor in structure.views.items():
        if tensor.device in (CPU, CUDA) and tensor.device != kind:
            lies, taken = ("host", "device") if kind == CUDA else ("device", "host")
            raise ValueError(f"{name}: lies in {lies} memory, and this function takes tensors in {taken} memory")
    return structure


class _Shapes:
    """What the tensors of a launch say of its extents and strides."""

    def __init__(self, args, fields):
        self.args, self.fields = args, fields
        self.found = {name: fields[name] for name in ("m", "n", "k") if name in fields}
        self.problems = {}

    def agree(self, name, extent, value):
        said = self.found.setdefault(extent, value)
        if said != value: raise ValueError(f"{name}: its shape says {extent}={value}, and {extent}={said} was said")

    def put(self, field, value):
        if field not in self.fields: setattr(self.args, field, value)

    def matrix(self, name, bits):
        tensor = self.args.views[name]
        if tensor.shape is None or len(tensor.shape) < 2: return
        if tensor.bits % bits: raise ValueError(f"{name}: elements of {tensor.bits} bits hold none of {bits} bits")
        if len(tensor.shape) > 3: raise ValueError(f"{name}: a matrix has 2 dimensions, or 3 with one for problems")
        per = tensor.bits // bits
        problems, rows, columns = (1, *tensor.shape)[-3:]
        stride, pitch, step = (0, *tensor.strides)[-3:]
        if (columns > 1 and step != 1) or (rows > 1 and pitch < columns) or (problems > 1 and stride < 1):
            raise ValueError(f"{name}: the strides {tensor.strides} are not those of rows one behind the other")
        self.agree(name, _MATRICES[name][0], rows)
        self.agree(name, _MATRICES[name][1], columns * per)
        self.problems[name] = problems
        if rows > 1: self.put(f"ld{name}", pitch * per)
        if problems > 1: self.put(f"batch_stride_{name}", stride * per)

    def count_problems(self):
        """A batch, or groups, is a first dimension of all matrices; with OFFSETS, of B1 and B2 alone."""
        offsets = self.args.group_mode == s.GROUP_OFFSETS
        counts = {name: count for name, count in self.problems.items() if not offsets or name in ("b1", "b2")}
        if any(self.problems[name] != 1 for name in self.problems.keys() - counts.keys()):
            raise ValueError("with OFFSETS only b1 and b2 have a dimension for groups")
        if len(set(counts.values())) > 1: raise ValueError(f"matrices of different numbers of problems: {counts}")
        field = "batch" if self.args.group_mode == s.GROUP_NONE else "groups"
        if counts:
            count = next(iter(counts.values()))
            said = self.fields.get(field, count)
            if max(said, 1) != max(count, 1): raise ValueError(f"{field}={said}, and b1 has {count} problems")
            if field == "groups" or count > 1: self.put(field, count)

    def check_sizes(self):
        """Memory that is too small. With OFFSETS the factors of A and C depend on where groups begin."""
        args = self.args
        problems = max(args.batch, args.groups, 1)
        for name, tensor in args.views.items():
            if tensor.shape is None: continue
            offsets = args.group_mode == s.GROUP_OFFSETS and name in ("a", "c", "d1", "d2", "sfa", "sfc")
            extents = [getattr(args, x) for x in (_MATRICES | _FACTORS).get(name, ())]
            need = 0
            if name in _FACTORS:
                if not tensor.gapless(ordered=False): raise ValueError(f"{name}: scale factors lie without gaps")
                need = 0 if offsets else problems * load().dualgemm_sf_size(*extents)
            elif name in _MATRICES and len(tensor.shape) < 2 and not getattr(args, f"ld{name}"):
                need = (1 if offsets else problems) * math.prod(extents) * bits_of(args, name) // 8
            elif name not in _MATRICES and not tensor.gapless(ordered=True):
                raise ValueError(f"{name}: its elements lie one behind the other")
            if tensor.size() < need: raise ValueError(f"{name}: has {tensor.size()} bytes, and {need} are needed")


def bits_of(args, name):
    """Bits of an element of a matrix of a launch."""
    if name in ("a", "b1", "b2"): return 4
    dtype = args.c_dtype if name == "c" else args.d_dtype
    return _BITS.get(dtype, 8)  # the library refuses what is no type


def arguments(a=None, b1=None, b2=None, sfa=None, sfb1=None, sfb2=None, out=None, alpha1=1.0, alpha2=1.0, **fields):
    """dualgemm_args_t for these tensors. m, n, k, batch or groups, pitches, strides and the type of C come from the
    tensors as far as they know them; every other field, and any of these, may be given by its name."""
    args = initialised(s.Args)
    fill(args, {"a": a, "b1": b1, "b2": b2, "sfa": sfa, "sfb1": sfb1, "sfb2": sfb2, "c": out, "alpha1": alpha1,
                "alpha2": alpha2, **fields})
    shapes = _Shapes(args, fields)
    if args.views["c"].dtype is not None: shapes.put("c_dtype", args.views["c"].dtype)
    for name in [x for x in _MATRICES if x in args.views]: shapes.matrix(name, bits_of(args, name))
    for extent, value in shapes.found.items(): setattr(args, extent, value)
    shapes.count_problems()
    shapes.check_sizes()
    return args
