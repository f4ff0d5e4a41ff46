"""Replaces the linears, gated MLPs and experts of a model by modules of dualgemm.nn."""
from typing import NamedTuple, Union

import torch

from .. import nn
from ._experts import Experts
from ._recognise import Gated, Stacks, gated, has_stacks, in_three, stacks


class Replaced(NamedTuple):
    name: str
    module: torch.nn.Module
    was: Union[Gated, Stacks, None]  # None: a linear


def _shared(model):
    """Parameters that more than one module holds, as an lm_head and its embeddings may."""
    seen, shared = set(), set()
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is None: continue
            if id(parameter) in seen: shared.add(id(parameter))
            seen.add(id(parameter))
    return shared


def _check_hooks(name, module):
    hooks = [kind for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
             if getattr(module, kind)]
    if hooks or "forward" in module.__dict__:
        raise ValueError(f"{name}: has a hook, or a forward of its own, which its replacement would lose: replace "
                         "modules first, or ignore this one")


def _declare_input_scale(linear):
    """For a checkpoint's: the loader puts it where it finds a tensor of that name."""
    setattr(linear, linear.names.input_scale, torch.ones((), dtype=torch.float32, device="meta"))


class _Replacing:
    def __init__(self, model, reader, keep, options):
        self.model, self.reader, self.keep, self.options = model, reader, keep, options
        self.shared = _shared(model)

    def scheme(self, name, linear):
        """None if the linear stays."""
        if type(linear) is not torch.nn.Linear or id(linear.weight) in self.shared or name in self.keep: return None
        return self.reader.scheme(name, linear)

    def scheme_of_experts(self, name, module):
        """That of the first expert's linear, by the name that it has in checkpoints."""
        *_, n, k = module.down_proj.shape
        words = [f"{name}.0.down_proj", f"{name}.0.w2"]
        known = next((word for word in words if word in self.reader.named), words[0])
        return self.reader.scheme(known, torch.nn.Linear(k, n, False, device="meta"))

    def replacement(self, name, module):
        """(function, its arguments, scheme, what the module was), or None if it stays."""
        if has_stacks(module):
            scheme = self.scheme_of_experts(name, module)
            if scheme is None: return None
            was = stacks(module)
            if was is None: raise ValueError(f"{name}: experts of the class {type(module).__name__} are no gated MLPs "
                                             "that are known here: they stay where their name is ignored")
            return Experts.of_stacks, (module, was), scheme, was
        if (was := gated(module)) is not None:
            schemes = {self.scheme(f"{name}.{part}", module._modules[part]) for part in was.linears}
            if len(schemes) == 1 and None not in schemes:
                return nn.GatedMLP.from_float, (in_three(module, was), was.activation), schemes.pop(), was
        scheme = self.scheme(name, module)
        return scheme and (nn.Linear.from_float, (module,), scheme, None)

    def make(self, name, module):
        found = self.replacement(name, module)
        if found is None: return None
        function, arguments, scheme, was = found
        for part in module.modules(): _check_hooks(name, part)
        try:
            made = function(*arguments, format=scheme.format, **self.options)
        except ValueError as error:
            raise ValueError(f"{name}: {error}; a model's own module stays where its name is ignored") from error
        for part in made.modules():
            if scheme.input_scale and hasattr(part, "names"): _declare_input_scale(part)
        return Replaced(name, made.train(module.training), was)


def replace(model, reader, keep=(), **options):
    """Replaces modules in place, and returns them, each a Replaced. `reader` says which linears are quantised; those of
    the names `keep` stay. A gated MLP whose linears have the same scheme becomes one module; of every other the linears
    are replaced one by one. `options` are those of every dualgemm.nn.Linear."""
    replacing, made, done = _Replacing(model, reader, keep, options), [], ()
    for name in [name for name, _ in model.named_modules()]:  # names alone: each weight is freed once it is quantised
        if not name or name.startswith(done): continue
        module = model.get_submodule(name)
        if reader.ignores_parts and reader.ignored(name, module):
            done = (name + ".",)
            continue
        new = replacing.make(name, module)
        if new is None: continue
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, new.module)
        made.append(new)
        done = (name + ".",)
    return made
