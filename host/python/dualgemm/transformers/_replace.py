"""Replaces the linears, gated MLPs and experts of a model by modules of dualgemm.nn."""
from typing import NamedTuple, Union

import torch

from .. import nn
from ..nn._layers import check_finite
from ..nn._shared import ATOM, obstacle
from ._experts import Experts
from ._inputs import same_input
from ._recognise import Gated, Stacks, gated, has_stacks, in_three, on_meta, stacks


class Replaced(NamedTuple):
    name: str
    module: torch.nn.Module
    was: Union[Gated, Stacks, None]  # None: a linear


def _shared(model):
    """Returns the ids of parameters that more than one module holds, as an lm_head and its embeddings may."""
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


def _check_weights(name, module, types):
    for key, each in module.named_parameters():
        if each.ndim > 1: check_finite(f"{name}.{key}", each)
        if each.dtype not in types:
            raise ValueError(f"{name}: its weights are {each.dtype}, and its replacement takes activations of 16 bits: "
                             "call model.to(torch.bfloat16) before, or ignore this module")


def _declare_input_scale(linear):
    """Declares an input scale, since the loader puts a checkpoint's only where a tensor of that name is."""
    setattr(linear, linear.names.input_scale, torch.ones((), dtype=torch.float32, device="meta"))


class _Replacing:
    def __init__(self, model, reader, keep, options):
        self.model, self.reader, self.keep, self.options = model, reader, keep, options
        self.shared = _shared(model)

    def scheme(self, name, linear):
        """Returns the Scheme of a linear, or None if it stays."""
        if type(linear) is not torch.nn.Linear or id(linear.weight) in self.shared or name in self.keep: return None
        return self.reader.scheme(name, linear)

    def scheme_of_experts(self, name, module):
        """Returns the Scheme of the first expert's down projection, by the name that it has in checkpoints."""
        *_, n, k = module.down_proj.shape
        words = [f"{name}.0.down_proj", f"{name}.0.w2"]
        known = next((word for word in words if word in self.reader.named), words[0])
        return self.reader.scheme(known, torch.nn.Linear(k, n, False, device="meta"))

    def found(self, name, module):
        """Returns (scheme, what the module is), or None if it stays. What a module is is None for a linear."""
        if has_stacks(module):
            scheme = None if name in self.keep else self.scheme_of_experts(name, module)
            if scheme is None: return None
            was = stacks(module)
            if was is None: raise ValueError(f"{name}: experts of the class {type(module).__name__} are no gated MLPs "
                                             "that are known here: they stay where their name is ignored")
            return scheme, was
        if (was := gated(module)) is not None:
            schemes = {self.scheme(f"{name}.{part}", module._modules[part]) for part in was.linears}
            if len(schemes) == 1 and None not in schemes: return schemes.pop(), was
        scheme = self.scheme(name, module)
        return scheme and (scheme, None)

    def plan(self, types):
        """Yields (name, scheme, what the module is) of each module that is to be replaced. It checks all, and changes
        none."""
        done = ()
        if type(self.model) is torch.nn.Linear or has_stacks(self.model):
            raise ValueError(f"model: is a {type(self.model).__name__} itself, which cannot be replaced in place: pass "
                             "a module that has it, or call from_float of dualgemm.nn")
        for name, module in self.model.named_modules():
            if not name or name.startswith(done): continue
            if self.reader.ignores_parts and self.reader.ignored(name, module):
                done = (name + ".",)
                continue
            found = self.found(name, module)
            if found is None: continue
            for part in module.modules(): _check_hooks(name, part)
            if types: _check_weights(name, module, types)
            try:
                self.make([on_meta(module)], *found)
            except ValueError as error:
                raise ValueError(f"{name}: {error}; a model's own module stays where its name is ignored") from error
            yield name, *found
            done = (name + ".",)

    def groups(self, plan):
        """Yields lists of names of linears that share a launch, in the order of their calls. They are children of one
        module, and have one scheme. A linear whose rows do not fill atoms can only be the last of its list; elsewhere
        it is left out."""
        children = {}  # by the name of the module that has them
        for name, scheme, was in plan:
            parent, _, child = name.rpartition(".")
            if was is None: children.setdefault(parent, {})[child] = scheme
        for parent, schemes in children.items():
            module = self.model.get_submodule(parent)
            for names in same_input(module, {name: module._modules[name] for name in schemes}):
                rows = {name: module._modules[name].out_features for name in names}
                names = [name for name in names if rows[name] % ATOM == 0 or name == names[-1]]
                made = [self.make([on_meta(module._modules[name])], schemes[name], None)[0] for name in names]
                if len(names) > 1 and len({schemes[name] for name in names}) == 1 and obstacle(made) is None:
                    yield [f"{parent}.{name}" if parent else name for name in names]

    def make(self, modules, scheme, was):
        """Returns the replacements of one module, or of linears that share a launch."""
        module, options = modules[0], dict(format=scheme.format, **self.options)
        if isinstance(was, Stacks): made = [Experts.of_stacks(module, was, **options)]
        elif isinstance(was, Gated): made = [nn.GatedMLP.from_float(in_three(module, was), was.activation, **options)]
        elif len(modules) > 1: made = nn.Linear.from_floats(modules, **options)
        else: made = [nn.Linear.from_float(module, **options)]
        for each in made:
            for part in each.train(module.training).modules():
                if scheme.input_scale and hasattr(part, "names"): _declare_input_scale(part)
        return made


def replace(model, reader, keep=(), types=(), share_input=True, **options):
    """Replaces modules in place, and returns a Replaced for each. `reader` says which linears are quantised; linears
    and experts with a name of `keep` stay. A gated MLP whose linears have the same scheme becomes one module. Elsewhere
    linears are replaced one by one; with `share_input` those that get the same tensor share a launch. `types`, unless
    empty, are the types that weights may have; they then have to be finite, too. `options` are those of every
    dualgemm.nn.Linear. If anything is refused, nothing is replaced."""
    replacing, made = _Replacing(model, reader, keep, options), {}
    plan = list(replacing.plan(types))  # names alone: a weight is freed once quantised
    groups = {group[0]: group for group in (replacing.groups(plan) if share_input else ())}
    others = {name for group in groups.values() for name in group[1:]}
    for first, scheme, was in plan:
        if first in others: continue
        names = groups.get(first, [first])
        for name, new in zip(names, replacing.make([model.get_submodule(name) for name in names], scheme, was)):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, new)
            made[name] = Replaced(name, new, was)
    return [made[name] for name, *_ in plan]
