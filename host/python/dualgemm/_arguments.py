"""Makes argument structures from tensors: fills in what shapes and strides say, and refuses what disagrees."""
import ctypes
import functools
import operator

from . import _structures as s
from ._library import load
from ._rules import ARGS, ATOMS, BY_ROW, OUTPUTS, PERMUTED, PREPARED
from ._tensors import CPU, CUDA, view

_KINDS = {CPU: "host", CUDA: "device", 3: "pinned host", 13: "managed"}  # kinds of memory, as DLPack numbers them
_EVERYWHERE = (None, 3, 13)
FIELDS = {"out": "c"}  # the field of an argument, if the structure has no field of the argument's name
_EXTENTS = ("m", "n", "k", "rows", "x_rows", "tokens", "top_k")


def initialised(kind):
    """Returns a structure as its initialiser in the library leaves it."""
    names = {s.Args: "args", s.Device: "device", s.InstanceInfo: "instance_info", s.SfArgs: "sf_args",
             s.QuantizeArgs: "quantize_args", s.MoePermuteArgs: "moe_permute_args",
             s.MoeGatherArgs: "moe_gather_args", s.MoeCombineArgs: "moe_combine_args",
             s.PrepareMxfp4Args: "prepare_mxfp4_args", s.TuningInfo: "tuning_info"}
    structure = kind()
    getattr(load(), f"dualgemm_{names[kind]}_init_sized")(ctypes.byref(structure), ctypes.sizeof(kind))
    return structure


@functools.lru_cache(maxsize=None)
def _types(kind):
    """Returns the type of each field of a structure."""
    return dict(kind._fields_)


def checked_view(structure, name, tensor):
    """Returns the View of a tensor of a structure. What the function writes is writable."""
    found = view(tensor, name)
    outputs = {s.MoePermuteArgs: PERMUTED, s.PrepareMxfp4Args: PREPARED}.get(type(structure), OUTPUTS)
    if found.read_only and name in outputs: raise ValueError(f"{name}: this memory is read-only, or a copy")
    return found


def _put_view(structure, name, tensor):
    structure.views[name] = found = checked_view(structure, name, tensor)
    return found.address


def integer(name, value, kind=ctypes.c_int32):
    """Returns the value as an integer. Checks that it fits this type of ctypes, which would cut a larger one."""
    try:
        value = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}={value!r}: an integer is needed") from None
    if kind(value).value != value: raise ValueError(f"{name}={value}: the field has {8 * ctypes.sizeof(kind)} bits")
    return value


def _put_number(structure, name, value):
    kind = _types(type(structure))[name]
    if kind not in (ctypes.c_float, ctypes.c_char * 68): value = integer(name, value, kind)
    try:
        setattr(structure, name, value)
    except (TypeError, ValueError, OverflowError) as error:  # their texts do not name the field
        raise ValueError(f"{name}={value!r}: {error}") from None


def fill(structure, fields):
    """Sets fields by their names; tensors become addresses. The structure keeps the tensors alive by their views."""
    types, structure.views = _types(type(structure)), {}
    renamed = {name: field for name, field in FIELDS.items() if name not in types}
    for name, value in fields.items():
        field = renamed.get(name, name)
        if field not in types or name in ("struct_size", *renamed.values()):
            raise TypeError(f"{name}: {type(structure).__doc__} has no such field that a program sets")
        if types[field] is ctypes.c_void_p: setattr(structure, field, _put_view(structure, name, value))
        else: _put_number(structure, name, value)
    return structure


def check_place(name, tensor, kind):
    """Checks that a tensor lies where a function for this kind of memory may use it."""
    if tensor.device in (kind, *_EVERYWHERE): return
    lies = _KINDS.get(tensor.device, "some other")
    raise ValueError(f"{name}: lies in {lies} memory, and this function takes tensors in {_KINDS[kind]} memory")


def in_place(structure, kind):
    """Returns the structure. Checks that all its tensors lie where a function for this kind of memory may use them."""
    for name, tensor in structure.views.items(): check_place(name, tensor, kind)
    return structure


class _Shapes:
    """What the tensors of a structure say of its extents, types and strides."""

    def __init__(self, structure, rules, fields):
        self.structure, self.rules, self.fields = structure, rules, fields
        self.found = {name: fields[name] for name in _EXTENTS if name in fields}
        self.problems = {}

    def agree(self, name, extent, value):
        said = self.found.setdefault(extent, value)
        if said != value: raise ValueError(f"{name}: its shape says {extent}={value}, and {extent}={said} was said")

    def put(self, field, value):
        if field not in self.fields: _put_number(self.structure, field, value)

    def matrix(self, name, rule, tensor):
        """Takes extents, pitch and stride from the shape of a matrix with a pitch."""
        bits = rule.bits(self.structure)
        if tensor.bits % bits: raise ValueError(f"{name}: elements of {tensor.bits} bits hold none of {bits} bits")
        if len(tensor.shape) > 3: raise ValueError(f"{name}: a matrix has 2 dimensions, or 3 with one for problems")
        per = tensor.bits // bits
        problems, rows, columns = (1, *tensor.shape)[-3:]
        stride, pitch, step = (0, *tensor.strides)[-3:]
        empty = 0 in tensor.shape  # strides of an empty tensor say nothing
        wrong = (columns > 1 and step != 1) or (rows > 1 and pitch < columns) or (problems > 1 and stride < 1)
        if wrong and not empty:
            raise ValueError(f"{name}: the strides {tensor.strides} are not those of rows one behind the other")
        if problems > 1 and not rule.stride: raise ValueError(f"{name}: this matrix has 2 dimensions")
        self.agree(name, rule.rows, rows)
        self.agree(name, rule.columns, columns * per * rule.per)
        self.problems[name] = problems
        if rows > 1 and not empty: self.put(rule.pitch, pitch * per)
        if problems > 1 and not empty: self.put(rule.stride, stride * per)

    def gapless(self, name, rule, tensor):
        """Takes extents from the shape of a matrix whose rows follow each other."""
        for extent, value in zip((rule.rows, rule.columns), tensor.shape): self.agree(name, extent, value)

    def put_extents(self):
        used = {extent for rule in self.rules.values() for extent in (rule.rows, rule.columns)}
        for extent in _EXTENTS:
            if extent in self.found: _put_number(self.structure, extent, self.found[extent])
            elif extent in used:
                raise ValueError(f"{extent}: neither given nor known from the shape of a tensor")

    def count_problems(self):
        """Takes `batch` or `groups` from the first dimension of all matrices; with OFFSETS, from that of B1 and B2
        alone."""
        if not hasattr(self.structure, "batch"): return
        mode = getattr(self.structure, "group_mode", s.GROUP_NONE)
        offsets, rules = mode == s.GROUP_OFFSETS, self.rules
        counts = {name: count for name, count in self.problems.items() if not offsets or rules[name].count != BY_ROW}
        for name in self.problems.keys() - counts.keys():
            if self.problems[name] != 1:
                raise ValueError(f"{name}: with OFFSETS the rows of all groups follow each other, in 2 dimensions")
        if len(set(counts.values())) > 1: raise ValueError(f"matrices of different numbers of problems: {counts}")
        field = "batch" if mode == s.GROUP_NONE else "groups"
        for name, count in counts.items():
            said = self.fields.get(field, count)
            if max(said, 1) != max(count, 1): raise ValueError(f"{field}={said}, and {name} has {count} problems")
            if field == "groups" or count > 1: self.put(field, count)


def _check_element(structure, name, rule):
    element, field = structure.views[name].element, rule.dtype_field
    if rule.takes(structure, element): return
    said = f", as {field}={getattr(structure, field)} says" if field else ""
    raise ValueError(f"{name}: its elements are {element}, and {rule.wanted(structure)} is needed{said}")


def _check_size(structure, name, rule):
    """Checks that the memory is large enough, and that it has no gaps that no field describes."""
    tensor = structure.views[name]
    if tensor.shape is None: return
    if rule.pitch is ATOMS:
        if not tensor.gapless(ordered=False): raise ValueError(f"{name}: scale factors lie without gaps")
    elif (rule.pitch is None or len(tensor.shape) < 2) and not tensor.gapless(ordered=True):
        raise ValueError(f"{name}: its elements lie one behind the other")
    need = rule.size(structure, load().dualgemm_sf_size_of)
    if tensor.size() < need: raise ValueError(f"{name}: has {tensor.size()} bytes, and {need} are needed")


def complete(kind, rules, fields):
    """Returns a structure of these fields. Its tensors give those of the other fields that they know."""
    structure = fill(initialised(kind), fields)
    shapes = _Shapes(structure, rules, fields)
    for name, tensor in structure.views.items():
        said = rules[name].dtype_field and rules[name].said(tensor)
        if said is not None: shapes.put(rules[name].dtype_field, said)
    for name, tensor in structure.views.items():
        _check_element(structure, name, rules[name])
        rule, dimensions = rules[name], len(tensor.shape or ())
        if isinstance(rule.pitch, str) and dimensions > 1: shapes.matrix(name, rule, tensor)
        if rule.pitch is None and isinstance(rule.rows, str) and dimensions == 2: shapes.gapless(name, rule, tensor)
    shapes.put_extents()
    shapes.count_problems()
    for name in structure.views: _check_size(structure, name, rules[name])
    return structure


def beside(structure, name, tensor, rule):
    """Returns the address of a tensor that a function takes beside its structure. The structure keeps it alive."""
    address = _put_view(structure, name, tensor)
    _check_element(structure, name, rule)
    _check_size(structure, name, rule)
    return address


def arguments(a=None, b1=None, b2=None, sfa=None, sfb1=None, sfb2=None, out=None, alpha1=1.0, alpha2=1.0, **fields):
    """Returns a dualgemm_args_t for these tensors. They give m, n, k, batch or groups, pitches, strides and the types
    of A, B, C, D1, D2 and the biases, as far as they know them. Any of these, and every other field, may be given by
    name."""
    return complete(s.Args, ARGS, {"a": a, "b1": b1, "b2": b2, "sfa": sfa, "sfb1": sfb1, "sfb2": sfb2, "out": out,
                                   "alpha1": alpha1, "alpha2": alpha2, **fields})
