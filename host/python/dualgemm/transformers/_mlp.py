"""Which modules are gated MLPs: their forward is run on a small copy, and compared with what GatedMLP computes."""
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch.nn import functional

from ..nn import _activations
from ..nn._layouts import ROWS

_FUNCTIONS = {"silu": functional.silu, "gelu": functional.gelu, "relu": functional.relu, "sigmoid": torch.sigmoid,
              "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh")}
_BY_NUMBER = {_activations.GATED[name]: function for name, function in _FUNCTIONS.items()}
_ACTIVATIONS = ("act_fn", "activation_fn", "act", "activation")  # what classes of transformers call theirs
_WIDTH, _INNER = 32, 48            # of the copy
_MAGNITUDES = (0.1, 1.0, 30.0)     # of its inputs: the last one reaches what clamps
_CLOSE = 1e-5                      # relative to the largest output: float32 inside of a forward is allowed
LINEARS = (("gate_proj", "up_proj", "down_proj"), ("gate_up_proj", "down_proj"))


class Gated(NamedTuple):
    """What a gated MLP computes."""
    linears: tuple      # one of LINEARS
    activation: str
    rows: str           # one of ROWS, of a gate_up_proj


def _small(linear, n, k, generator):
    """A linear of random numbers, on the CPU in float64, with a bias where `linear` has one."""
    copy = torch.nn.Linear(k, n, linear.bias is not None, device="meta", dtype=torch.float64)
    for name, parameter in list(copy.named_parameters()):
        numbers = torch.randn(parameter.shape, generator=generator, dtype=torch.float64, device="cpu")
        setattr(copy, name, torch.nn.Parameter(numbers / k**0.5, requires_grad=False))
    return copy


def _copy_of(module, names):
    """The module with small linears, and everything else shared."""
    generator = torch.Generator("cpu").manual_seed(7)
    shapes = {"down_proj": (_WIDTH, _INNER), "gate_up_proj": (2 * _INNER, _WIDTH)}
    linears = {name: _small(module._modules[name], *shapes.get(name, (_INNER, _WIDTH)), generator) for name in names}
    copy = torch.nn.Module.__new__(type(module))
    copy.__dict__.update(module.__dict__, training=False, _modules={**module._modules, **linears})
    return copy, generator


def _expected(copy, names, activation, rows, x):
    act = _BY_NUMBER[_activations.GATED[activation]]
    if names == LINEARS[0]: gate, up = copy.gate_proj(x), copy.up_proj(x)
    elif rows == "stacked": gate, up = copy.gate_up_proj(x).chunk(2, -1)
    else: gate, up = copy.gate_up_proj(x).unflatten(-1, (-1, 2)).unbind(-1)
    return copy.down_proj(act(gate) * up)


@torch.no_grad()
def _computes(module, names, activation, rows):
    copy, generator = _copy_of(module, names)
    for magnitude in _MAGNITUDES:
        x = magnitude * torch.randn(2, 5, _WIDTH, generator=generator, dtype=torch.float64, device="cpu")
        wanted = _expected(copy, names, activation, rows, x)
        try:
            got = copy(x)
        except Exception:  # a forward of another kind fails in whatever way it likes
            return False
        if not isinstance(got, torch.Tensor) or got.shape != wanted.shape: return False
        if not bool((got.double() - wanted).abs().max() <= _CLOSE * wanted.abs().max()): return False
    return True


def _suits(module, names):
    """Whether the linears are plain, and nothing else of the module has numbers of its own."""
    children = module._modules
    if any(type(children.get(name)) is not torch.nn.Linear for name in names): return False
    if len({children[name].bias is None for name in names}) > 1: return False
    others = [child for name, child in children.items() if name not in names and child is not None]
    return not any(True for each in others for _ in (*each.parameters(), *each.buffers())) and \
        not any(value is not None for value in (*module._parameters.values(), *module._buffers.values()))


def gated(module):
    """A Gated if the module computes down_proj(act(gate_proj(x)) * up_proj(x)), or the same of a gate_up_proj, with an
    activation that GatedMLP has; else None. Names alone decide nothing, nor does the class."""
    names = next((names for names in LINEARS if _suits(module, names)), None)
    function = next((getattr(module, name) for name in _ACTIVATIONS if hasattr(module, name)), None)
    if names is None or function is None: return None
    try:
        activation = _activations.name_of(function)
    except ValueError:
        return None
    if _activations.GATED.get(activation) not in _BY_NUMBER: return None
    for rows in ROWS if names == LINEARS[1] else ROWS[:1]:
        if _computes(module, names, activation, rows): return Gated(names, activation, rows)
    return None


def in_three(module, found):
    """The module's three linears, as GatedMLP.from_float takes them. Those of a gate_up_proj are views of it."""
    if found.linears == LINEARS[0]: return module
    fused, parts = module.gate_up_proj, {}
    for part, name in enumerate(LINEARS[0][:2]):
        n = fused.out_features // 2
        parts[name] = torch.nn.Linear(fused.in_features, n, fused.bias is not None, device="meta",
                                      dtype=fused.weight.dtype)
        for key, whole in list(fused.named_parameters()):
            rows = whole[part * n:(part + 1) * n] if found.rows == "stacked" else whole[part::2]
            setattr(parts[name], key, torch.nn.Parameter(rows.detach(), requires_grad=False))
    return SimpleNamespace(**parts, down_proj=module.down_proj)
