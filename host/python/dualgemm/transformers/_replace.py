"""Replaces the linears and the gated MLPs of a model by those of dualgemm.nn."""
import torch

from .. import nn
from . import _mlp
from ._checkpoint import METHOD, WEIGHT_ONLY, matches


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


def _made(name, function, *args, **options):
    """A module, or an error that says which one could not be made."""
    try:
        return function(*args, **options)
    except ValueError as error:
        raise ValueError(f"{name}: {error} (a model's own linear stays where its name is ignored)") from error


def replace(model, options_of):
    """Replaces modules in place. `options_of(name, linear)` returns the options of dualgemm.nn.Linear for a linear, or
    None if it stays. A gated MLP whose linears have the same options becomes one module; of every other the linears are
    replaced one by one. Returns the names of what was replaced: {name: module}."""
    shared, made = _shared(model), {}

    def options(name, module):
        if type(module) is not torch.nn.Linear or id(module.weight) in shared: return None
        found = options_of(name, module)
        if found is not None: _check_hooks(name, module)
        return found

    for name, module in list(model.named_modules()):
        parent, _, child = name.rpartition(".")
        if parent in made or not name: continue
        found = _mlp.gated(module)
        each = [options(f"{name}.{part}", module._modules[part]) for part in found.linears] if found else []
        if each and each[0] is not None and all(one == each[0] for one in each):
            _check_hooks(name, module)
            new = _made(name, nn.GatedMLP.from_float, _mlp.in_three(module, found), found.activation, **each[0])
        elif (one := options(name, module)) is not None: new = _made(name, nn.Linear.from_float, module, **one)
        else: continue
        setattr(model.get_submodule(parent), child, new.train(module.training))
        made[name] = new
    return made


@torch.no_grad()
def convert(model, a_format="auto", flags=0, ignore=("lm_head",)):
    """Replaces the linears and the gated MLPs of a float model in place, on the model's device, and returns the model.
    Their weights are quantised (dualgemm.nn.quantize_weight).

    `a_format` and `flags` are those of dualgemm.nn.Linear. What `ignore` means stays: names, or the ends of names, with
    wildcards; names of classes; "re:" and a regular expression. So does a linear whose weight is tied to another
    module's. Shapes that a launch cannot have are a ValueError that names the module."""
    config = getattr(model, "config", None)
    if getattr(config, "quantization_config", None) is not None:
        raise ValueError("model: has a quantization_config, so its weights are quantised already")
    replace(model, lambda name, module: None if any(matches(name, module, each) for each in ignore)
            else dict(a_format=a_format, flags=flags))
    if config is not None:  # which save_pretrained writes, and from_pretrained reads
        config.quantization_config = dict(quant_method=METHOD, quant_algo=WEIGHT_ONLY, ignore=list(ignore),
                                          a_format=a_format, flags=flags)
    return model
