"""Finds out which modules are gated MLPs, or experts of that kind: it runs the forward of a small copy, and compares it
with what GatedMLP and MoE compute. Names and classes alone decide nothing."""
import copy
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch.nn import functional

from ..nn import _activations
from ..nn._layouts import MODULES, ROWS

_FUNCTIONS = {"silu": functional.silu, "gelu": functional.gelu, "relu": functional.relu, "sigmoid": torch.sigmoid,
              "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh")}
_BY_NUMBER = {_activations.GATED[name]: function for name, function in _FUNCTIONS.items()}
_ACTIVATIONS = ("act_fn", "activation_fn", "act", "activation")  # what classes of transformers call their activation
_WIDTH, _INNER = 32, 48            # sizes of the copy
_MAGNITUDES = (0.1, 1.0, 30.0)     # of its inputs; the largest shows whether it clamps
_CLOSE = 1e-5                      # relative to the largest output, so that a forward may compute in float32
FUSED = ("gate_up_proj", "down_proj")


class Gated(NamedTuple):
    """What a gated MLP computes."""
    linears: tuple      # MODULES, or FUSED
    activation: str
    rows: str           # one of ROWS: the order of a gate_up_proj's rows


class Stacks(NamedTuple):
    """What experts compute, if their weights are gate_up_proj [experts, 2 intermediate, hidden] and down_proj."""
    activation: str
    rows: str


def _activation(module):
    """Returns the name that GatedMLP has for a module's activation, or None."""
    function = next((getattr(module, name) for name in _ACTIVATIONS if hasattr(module, name)), None)
    try:
        name = _activations.name_of(function)
    except ValueError:
        return None
    return name if _activations.GATED.get(name) in _BY_NUMBER else None


def _numbers(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")


def _parameter(generator, shape):
    """Returns a parameter with random numbers, in float64 on the CPU."""
    return torch.nn.Parameter(_numbers(generator, *shape) / shape[-1]**0.5, requires_grad=False)


def _small(linear, n, k, generator):
    """Returns a linear of random numbers, with a bias if `linear` has one."""
    made = torch.nn.Linear(k, n, linear.bias is not None, device="meta", dtype=torch.float64)
    for name, parameter in list(made.named_parameters()): setattr(made, name, _parameter(generator, parameter.shape))
    return made


def _copy_of(module, **others):
    """Returns a copy of the module that has other parameters or modules, and shares everything else."""
    made = torch.nn.Module.__new__(type(module))
    made.__dict__.update(module.__dict__, training=False, **others)
    return made


def on_meta(module):
    """Returns a copy of the module whose parameters have shapes and types, and no memory."""
    parameters = {name: each if each is None else torch.nn.Parameter(each.detach().to("meta"), requires_grad=False)
                  for name, each in module._parameters.items()}
    children = {name: child if child is None else on_meta(child) for name, child in module._modules.items()}
    return _copy_of(module, _parameters=parameters, _modules=children)


def _combined(act, both, rows):
    """Returns act(gate) * up of what a gate_up_proj returns."""
    gate, up = both.chunk(2, -1) if rows == "stacked" else both.unflatten(-1, (-1, 2)).unbind(-1)
    return act(gate) * up


@torch.no_grad()
def _agrees(module, expected, inputs):
    """Returns whether the module's forward and another function return the same for inputs of every magnitude."""
    for magnitude in _MAGNITUDES:
        x, *others = inputs(magnitude)
        wanted = expected(x, *others)
        try:
            got = module(x.clone(), *others)
        except Exception:  # a forward of another kind fails in whatever way it likes
            return False
        if not isinstance(got, torch.Tensor) or got.shape != wanted.shape: return False
        if not bool((got.double() - wanted).abs().max() <= _CLOSE * wanted.abs().max()): return False
    return True


def _has_others(module, names):
    """Returns whether a module has parameters or buffers besides those of `names`."""
    own = [value for name, value in (*module._parameters.items(), *module._buffers.items()) if name not in names]
    children = [child for name, child in module._modules.items() if name not in names and child is not None]
    return any(value is not None for value in own) or any(
        True for each in children for _ in (*each.parameters(), *each.buffers()))


# ---- a gated MLP ----

def _has_linears(module, names):
    linears = [module._modules.get(name) for name in names]
    return all(type(each) is torch.nn.Linear for each in linears) and \
        len({each.bias is None for each in linears}) == 1 and not _has_others(module, names)


def gated(module):
    """Returns a Gated if the module computes down_proj(act(gate_proj(x)) * up_proj(x)), or the same with a
    gate_up_proj, and GatedMLP has the activation; else None."""
    names = next((names for names in (MODULES, FUSED) if _has_linears(module, names)), None)
    activation = names and _activation(module)
    if not activation: return None
    generator = torch.Generator("cpu").manual_seed(7)
    shapes = {"down_proj": (_WIDTH, _INNER), "gate_up_proj": (2 * _INNER, _WIDTH)}
    linears = {name: _small(module._modules[name], *shapes.get(name, (_INNER, _WIDTH)), generator) for name in names}
    small = _copy_of(module, _modules={**module._modules, **linears})
    act = _BY_NUMBER[_activations.GATED[activation]]

    def expected(x):
        if names == FUSED: h = _combined(act, small.gate_up_proj(x), rows)
        else: h = act(small.gate_proj(x)) * small.up_proj(x)
        return small.down_proj(h)
    for rows in ROWS if names == FUSED else ROWS[:1]:
        if _agrees(small, expected, lambda size: (size * _numbers(generator, 2, 5, _WIDTH),)):
            return Gated(names, activation, rows)
    return None


def in_three(module, found):
    """Returns the module's three linears, as GatedMLP.from_float takes them. Gate and up are views of a
    gate_up_proj."""
    if found.linears == MODULES: return module
    fused, parts = module.gate_up_proj, {}
    for part, name in enumerate(MODULES[:2]):
        parts[name] = torch.nn.Linear(fused.in_features, fused.out_features // 2, fused.bias is not None,
                                      device="meta", dtype=fused.weight.dtype)
        for key, whole in list(fused.named_parameters()):
            rows = whole.chunk(2)[part] if found.rows == "stacked" else whole[part::2]
            setattr(parts[name], key, torch.nn.Parameter(rows.detach(), requires_grad=False))
    return SimpleNamespace(**parts, down_proj=module.down_proj)


# ---- experts ----

def has_stacks(module):
    """Returns whether the module has stacked weights of experts."""
    return all(getattr(module._parameters.get(name), "ndim", 0) == 3 for name in FUSED)


def stacks(module):
    """Returns a Stacks if the module computes each token's weighted sum of its experts from x, top_k_index and
    top_k_weights; else None. The small copy has as many experts as the module."""
    activation = None if _has_others(module, FUSED) else _activation(module)
    if not activation: return None
    experts, generator = len(module.down_proj), torch.Generator("cpu").manual_seed(7)
    weights = {"gate_up_proj": _parameter(generator, (experts, 2 * _INNER, _WIDTH)),
               "down_proj": _parameter(generator, (experts, _WIDTH, _INNER))}
    small = _copy_of(module, _parameters={**module._parameters, **weights})
    if hasattr(module, "config"):  # an implementation other than eager may not take float64
        small.config = copy.deepcopy(module.config)
        small.config._experts_implementation = "eager"
    act = _BY_NUMBER[_activations.GATED[activation]]

    def inputs(size):
        ids = torch.randint(experts, (5, 2), generator=generator, device="cpu")
        return size * _numbers(generator, 5, _WIDTH), ids, _numbers(generator, 5, 2)

    def expected(x, ids, shares):
        both = torch.einsum("tk,tcnk->tcn", x, small.gate_up_proj[ids])
        return torch.einsum("tcn,tckn,tc->tk", _combined(act, both, rows), small.down_proj[ids], shares)
    for rows in ROWS:
        if _agrees(small, expected, inputs): return Stacks(activation, rows)
    return None
