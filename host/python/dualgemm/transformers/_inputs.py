"""Finds out which linears of a module get the same tensor. It runs a copy of the module on the device meta. There each
linear returns a part of a wider tensor's columns, as in a shared launch. If that fails, for example because the module
needs results without gaps, its linears share nothing. Names and classes alone decide nothing."""
import copy
import inspect

import torch

from ..nn._weights import lasting
from ._recognise import _copy_of, on_meta

_BATCH, _LENGTH = 2, 3
_ROTATED = ("head_dim", "qk_rope_head_dim")  # what modules call the number of rotated elements of a head
# What forwards call the tensor that keys and values are made of, if it is another one than the queries'.
_CROSSED = {"key_value_states", "encoder_hidden_states", "cross_attention_states"}


class _Part(torch.nn.Module):
    """Notes what a linear is called with, and returns rows that do not lie one behind the other."""

    def __init__(self, name, linear, calls):
        super().__init__()
        self.name, self.k, self.n, self.calls = name, linear.in_features, linear.out_features, calls
        self.weight, self.bias = linear.weight, linear.bias  # a forward may read their type

    def forward(self, x):
        if x.shape[-1] != self.k: raise ValueError(f"{self.name}: x is {list(x.shape)}")
        self.calls.append((self.name, x, x._version))
        return x.new_empty(*x.shape[:-1], 3 * self.n).narrow(-1, self.n, self.n)


def _arguments(module, width, dtype, crossed):
    """Yields ways to call the module's forward. An argument whose name is known gets what attention modules expect. Any
    other argument without a default gets a tensor with the shape of x, and with `crossed` so does one of _CROSSED."""
    def numbers(*shape): return torch.empty(*shape, dtype=dtype, device="meta")
    parameters = inspect.signature(module.forward).parameters.values()
    sizes = [size for name in _ROTATED if isinstance(size := getattr(module, name, None), int)]
    for shape, rotations in (((_BATCH, _LENGTH, width), (_BATCH, _LENGTH)), ((_LENGTH, width), (_LENGTH,))):
        for size in (*sizes, 1):
            known = {"position_embeddings": tuple(numbers(*rotations, size) for _ in range(2)),
                     "position_ids": torch.arange(_LENGTH, device="meta")[None], "attention_mask": None, "mask": None,
                     "cu_seqlens": torch.tensor([0, _LENGTH], device="cpu"), "max_seqlen": _LENGTH, "layer_idx": 0}
            given = {}
            for each in parameters:
                if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD): continue
                if each.name in known and (each.default is each.empty or each.name == "position_embeddings"):
                    given[each.name] = known[each.name]
                elif each.default is each.empty or (crossed and each.name in _CROSSED):
                    given[each.name] = numbers(*shape)
            yield given


def _copied(module, linears, calls):
    """Returns the module on meta, with a _Part for each linear."""
    modules = {name: _Part(name, linears[name], calls) if name in linears else child and on_meta(child)
               for name, child in module._modules.items()}
    buffers = {name: each if each is None else each.to("meta") for name, each in module._buffers.items()}
    made = _copy_of(on_meta(module), _modules=modules, _buffers=buffers)
    if hasattr(module, "config"):  # an implementation other than eager may not take tensors on meta
        made.config = copy.deepcopy(module.config)
        made.config._attn_implementation = "eager"
    return made


def _inputs(module, linears, calls, crossed):
    """Returns {name: key of its x} of the linears that are called once. Equal keys mean the same tensor, unchanged. The
    module is called in the first way that works; if none does, the result is empty."""
    first = next(iter(linears.values()))
    for given in _arguments(module, first.in_features, first.weight.dtype, crossed):
        calls.clear()
        try:
            module(**given)
        except Exception:  # a forward of another kind fails in whatever way it likes
            continue
        names = [name for name, *_ in calls]
        return {name: (id(x), version) for name, x, version in calls if names.count(name) == 1}
    return {}


@lasting
def same_input(module, linears):
    """Returns lists of names of children of a module that get the same tensor, unchanged, each child once, in the order
    of their calls. `linears` are torch.nn.Linear by name. If the forward may take another tensor for keys and values,
    the children get the same tensor with it and without it."""
    if len(linears) < 2: return []
    calls, groups = [], {}
    copied = _copied(module, linears, calls)
    ways = [_inputs(copied, linears, calls, False)]
    if not _CROSSED.isdisjoint(inspect.signature(module.forward).parameters):
        ways.append(_inputs(copied, linears, calls, True))
    for name in ways[0]:
        if all(name in way for way in ways): groups.setdefault(tuple(way[name] for way in ways), []).append(name)
    return [group for group in groups.values() if len(group) > 1]
