"""Turns tensors of a checkpoint into those of the modules while transformers loads them."""
import re

from transformers.core_model_loading import ConversionOps, MergeModulelist, WeightConverter

from ..nn._layers import check_finite, quantize_alike
from ..nn._layouts import MODULES, Layout, _halves
from ._experts import quantised
from ._recognise import FUSED, Gated, Stacks, has_stacks

_STACK = re.compile(r"(gate_up|down)_proj$")  # what transformers calls the experts' weights


class Quantise(ConversionOps):
    """Quantises float weights to the tensors of ModelOpt's format. `groups` are lists of names of weights that are
    quantised together. A weight of a group is held until the last one of its group is there."""

    def __init__(self, groups):
        self.waiting, self.groups = {}, {key: group for group in groups for key in group}

    def convert(self, input_dict, **_):
        made = {}
        for key, tensor in input_dict.items():
            tensor = tensor[0] if isinstance(tensor, list) else tensor
            if not key.endswith(".weight"): made[key] = tensor
            else: made.update(self._quantised(key, tensor))
        return made

    def _quantised(self, key, tensor):
        self.waiting[key] = tensor
        group = self.groups.get(key, [key])
        if not self.waiting.keys() >= set(group): return {}
        weights = [self.waiting.pop(each) for each in group]
        for each, weight in zip(group, weights): check_finite(each, weight)
        made = quantize_alike(weights) if len(group) > 1 else [quantised(weights[0])]
        return {stem[:-len("weight")] + name: each for stem, tensors in zip(group, made)
                for name, each in tensors.items()}


class Halves(ConversionOps):
    """Splits gate_up_proj.NAME into gate_proj.NAME and up_proj.NAME. If both have one scale, each gets a copy of it."""

    def __init__(self, rows):
        self.rows = rows

    def convert(self, input_dict, source_patterns, target_patterns, **_):
        (tensor,), = input_dict.values()
        gate, up, _ = _halves(target_patterns[0].rpartition(".")[2], tensor, None, self.rows)
        return dict(zip(target_patterns, (gate, up)))

    @property
    def reverse_op(self):
        return self  # nothing is left to convert on the way back: state_dict writes gate_up_proj itself


def _names(module, pre_quantized):
    """Returns the names of the tensors that a checkpoint has for each of the module's weights."""
    return module.down_proj.names if pre_quantized else ("weight", "bias")


def _of_gate_up(name, module, was, pre_quantized, prefix):
    stem = name.removeprefix(prefix + ".")
    for key in _names(module, pre_quantized):
        yield WeightConverter(f"{stem}.gate_up_proj.{key}", [f"{stem}.{part}.{key}" for part in MODULES[:2]],
                              [Halves(was.rows)])


def _stacks_weights(conversion):
    """Returns whether a conversion makes one stack of the experts' tensors, each of which has a name of its own."""
    return isinstance(conversion, WeightConverter) and len(conversion.target_patterns) == 1 and \
        _STACK.search(conversion.target_patterns[0]) and "experts" in conversion.target_patterns[0] and \
        isinstance(conversion.operations[0], MergeModulelist)


def _of_experts(conversion, names):
    """Yields what replaces a conversion that makes gate_up_proj, or down_proj: a conversion for each tensor of gate and
    of up, or of down."""
    target, = conversion.target_patterns
    parts = MODULES[2:] if target.endswith("down_proj") else MODULES[:2]
    for source, part in zip(conversion.source_patterns, parts):
        for name in names:
            yield conversion.copy([source.removesuffix("weight") + name], [_STACK.sub(f"{part}.{name}", target)],
                                  operations=[MergeModulelist(dim=0)])


def words_of_experts(known):
    """Returns what checkpoints call gate, up and down of an expert: {name of the stack: words}."""
    return {_STACK.search(each.target_patterns[0])[0]: [source.split(".")[-2] for source in each.source_patterns]
            for each in known if _stacks_weights(each)}


def conversions(known, model, replaced, pre_quantized):
    """Returns the conversions of a checkpoint's tensors to those of a model in which some modules are replaced. `known`
    are the conversions for the model as it was. `replaced` says which modules were replaced, and by what."""
    made, experts = [], [each for each in replaced if isinstance(each.was, Stacks)]
    for name, module, was in replaced:
        if isinstance(was, Gated) and was.linears == FUSED:
            made += _of_gate_up(name, module, was, pre_quantized, model.base_model_prefix)
    if not experts: return made + known
    names = _names(experts[0].module, pre_quantized)[:4 if pre_quantized else 1]
    stay = [name for name, module in model.named_modules() if has_stacks(module)]
    if stay and "weight" in names:
        raise ValueError(f"{stay[0]}: these experts are not quantised, and others are: both have tensors of one name, "
                         "which is not read here")
    if len(words_of_experts(known)) != 2:
        raise ValueError(f"{experts[0].name}: what checkpoints of this model call the tensors of experts is not known "
                         "here")
    for each in known:
        if not _stacks_weights(each): made.append(each)
        else: made += [*_of_experts(each, names), *([each] if stay else [])]
    return made


def spelling(module, was, words):
    """Returns the Layout in which state_dict writes a module, if the checkpoint calls its parts otherwise than MODULES
    does; else None."""
    if isinstance(was, Stacks): return Layout(each=True, stems=(*words["gate_up_proj"], *words["down_proj"]))
    if was is None or was.linears != FUSED: return None
    shared = [name for name in module.gate_proj.names[2:4] if (gate := getattr(module.gate_proj, name)) is not None
              and gate.equal(getattr(module.up_proj, name))]
    return Layout(stems=FUSED, rows=was.rows, shared=frozenset(shared))
