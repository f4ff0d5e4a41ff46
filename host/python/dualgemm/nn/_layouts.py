"""Turns the names and shapes that checkpoints have for a gated MLP, or for all experts, into the modules', and back.

    gate_proj.NAME, up_proj.NAME, down_proj.NAME     a dense MLP; w1, w3, w2 are other words for the three
    gate_up_proj.NAME, down_proj.NAME                [2 n, ...]; w13 is another word. No file says which rows are gate's
    experts.3.gate_proj.NAME, ...                    each expert alone, in any of these words; `experts.` may be absent
    experts.w13_weight_scale, experts.w2_weight, ... all experts in one, [experts, rows, ...]; `experts.` may be absent
    experts.gate_up_proj, ..._weight_scale, ...      the same, where the elements have no NAME
    experts.gate_up_proj_blocks, ..._scales, ...     the same, as gpt-oss names MXFP4

The modules hold gate_proj.NAME, up_proj.NAME and down_proj.NAME. In a module of experts these tensors have one more
dimension in front, for the expert. Gate's and up's parts of a fused tensor, and an expert's part of a stack, are views;
no two of them share memory. A fused tensor has one scale for gate and up, or two: [2], or [experts, 2].
test/example/checkpoint/names.cpp lists the checkpoints and loaders that this was read from."""
import re
from typing import NamedTuple, Optional

import torch


class Names(NamedTuple):
    """What a format calls the tensors of a weight."""
    elements: str                # uint8 [n, k/2]: E2M1, element 2i in the low nibble; MXFP4 also [n, k/32, 16]
    factors: str                 # float8_e4m3fn [n, k/16] in rows, of MXFP4 float8_e8m0fnu [n, k/32]; or their bytes
    weight_scale: Optional[str]  # float32, one number; MXFP4 has none
    input_scale: str             # float32, one number; optional
    bias: str = "bias"

    @property
    def needed(self):
        """Returns the names of the tensors that a weight cannot be without."""
        return tuple(name for name in self[:3] if name is not None)


NVFP4 = {"modelopt": Names("weight", "weight_scale", "weight_scale_2", "input_scale"),
         "compressed-tensors": Names("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
MXFP4 = {"gpt-oss": Names("blocks", "scales", None, "input_scale"),
         "deepseek": Names("weight", "scale", None, "input_scale")}
FORMATS = {**NVFP4, **MXFP4}
ENCODES = {"compressed-tensors"}  # formats whose scales are the reciprocals of those that a product is multiplied by
_SCALES = {name for names in FORMATS.values() for name in (names.weight_scale, names.input_scale)} - {None}
_NAMES = sorted({name for names in FORMATS.values() for name in names} - {None}, key=len, reverse=True)
_PARTS = {"gate_proj": 0, "w1": 0, "up_proj": 1, "w3": 1, "down_proj": 2, "w2": 2, "gate_up_proj": 3, "w13": 3}
MODULES = ("gate_proj", "up_proj", "down_proj")
ROWS = ("stacked", "interleaved")  # gate's, then up's; or g0, u0, g1, u1, ..., as gpt-oss has them
_KEY = re.compile(r"(experts\.)?(?:(\d+)\.)?(gate_up_proj|gate_proj|up_proj|down_proj|w13|w1|w3|w2)"
                  rf"(?:([._])({'|'.join(_NAMES)}))?")


class Layout(NamedTuple):
    """How a checkpoint spells what a module holds."""
    before: str = ""                    # "experts." or nothing
    each: bool = False                  # experts have tensors of their own
    stems: tuple = MODULES              # words for gate, up and down; without up where gate and up are one tensor
    separator: str = "."
    bare: bool = False                  # elements have no name
    rows: str = "stacked"               # one of ROWS
    shared: frozenset = frozenset()     # scales that gate and up have in one number

    def key(self, stem, name, expert=None):
        number = "" if expert is None else f"{expert}."
        return f"{self.before}{number}{stem}" + ("" if self.bare and name == "weight" else self.separator + name)


def _gather(state_dict, prefix):
    """Returns the tensors whose names are known, {(part, name): {expert or None: (key, tensor)}}, and their layout.
    `part` is a number of _PARTS."""
    found, layout, stems = {}, Layout(), {}
    for key, tensor in state_dict.items():
        match = _KEY.fullmatch(key[len(prefix):]) if key.startswith(prefix) else None
        if not match: continue
        before, expert, stem, separator, name = match.groups()
        if name is None and expert is not None: continue
        stems[_PARTS[stem]] = stem
        layout = layout._replace(before=before or "", each=expert is not None, separator=separator or "_",
                                 bare=layout.bare or name is None)
        place = None if expert is None else int(expert)
        found.setdefault((_PARTS[stem], name or "weight"), {})[place] = (key, tensor)
    if layout.bare: layout = layout._replace(separator="_")
    down = stems.get(2, "down_proj")
    stems = (stems[3], down) if 3 in stems else (stems.get(0, "gate_proj"), stems.get(1, "up_proj"), down)
    return found, layout._replace(stems=stems)


def _halves(name, tensor, experts, rows):
    """Returns gate's part of a fused tensor, up's part, and whether the two are one number."""
    dims = 0 if experts is None else 1
    if name in _SCALES:
        if tensor.dim() > dims and tensor.shape[dims] == 2: return tensor.select(dims, 0), tensor.select(dims, 1), False
        return tensor, tensor.clone(), True  # two tensors: a later load may copy other numbers into each
    if rows == "interleaved": return (*tensor.unflatten(dims, (-1, 2)).unbind(dims + 1), False)
    return (*tensor.chunk(2, dims), False)


def read(state_dict, prefix, experts, rows, missing, errors):
    """Puts a checkpoint's tensors under the modules' names, in `state_dict` itself. Returns the layout that they had,
    or None if there are no such tensors. Adds the keys of experts that are not there to `missing`, and to `errors` a
    sentence if there are more experts than the module has."""
    found, layout = _gather(state_dict, prefix)
    if not found: return None
    known = experts or 0
    beyond = [(e, key) for tensors in found.values() for e, (key, _) in tensors.items() if e is not None and e >= known]
    if beyond: errors.append(f"{max(beyond)[1]}: is of expert {max(beyond)[0]}, and the module has {known} experts")
    shared = set()
    for (part, name), tensors in found.items():
        for key, _ in tensors.values(): del state_dict[key]
        if None in tensors:
            tensor = tensors[None][1]
        else:
            stem = layout.stems[{3: 0, 2: -1}.get(part, part)]
            absent = [e for e in range(known) if e not in tensors]
            missing += [prefix + layout.key(stem, name, e) for e in absent]
            if absent or not known: continue
            tensor = torch.stack([tensors[e][1] for e in range(known)])
        if part < 3:
            state_dict[f"{prefix}{MODULES[part]}.{name}"] = tensor
            continue
        gate, up, one = _halves(name, tensor, experts, rows)
        if one: shared.add(name)
        state_dict[f"{prefix}gate_proj.{name}"], state_dict[f"{prefix}up_proj.{name}"] = gate, up
    return layout._replace(rows=rows, shared=frozenset(shared))


def write(state_dict, prefix, experts, layout):
    """Puts the modules' tensors under a checkpoint's names, in `state_dict` itself."""
    held = {}
    for part, module in enumerate(MODULES):
        begin = f"{prefix}{module}."
        for key in [key for key in state_dict if key.startswith(begin)]:
            held[part, key[len(begin):]] = state_dict.pop(key)
    if len(layout.stems) == 2: held = _fuse(held, layout, experts)
    for (part, name), tensor in held.items():
        stem = layout.stems[part]
        for e, each in enumerate(tensor) if layout.each else ((None, tensor),):
            state_dict[prefix + layout.key(stem, name, e)] = each


def _fuse(held, layout, experts):
    fused = {(1, name): tensor for (part, name), tensor in held.items() if part == 2}
    for (part, name), gate in held.items():
        if part != 0: continue
        up, dims = held[1, name], 0 if experts is None else 1
        if name in layout.shared: fused[0, name] = gate
        elif name in _SCALES: fused[0, name] = torch.stack((gate, up), dims)
        elif layout.rows == "interleaved": fused[0, name] = torch.stack((gate, up), dims + 1).flatten(dims, dims + 1)
        else: fused[0, name] = torch.cat((gate, up), dims)
    return fused
