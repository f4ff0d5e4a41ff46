"""Reads from a checkpoint's quantization_config which of its linears are NVFP4, in which format, and with which scales.

Two packages write such configurations. ModelOpt's has `quant_algo` (modelopt.torch.export writes it into config.json,
and in another layout into hf_quant_config.json), and compressed-tensors' has `config_groups` with `format`
(compressed_tensors.quantization.QuantizationConfig). Whatever is not NVFP4 is refused by name."""
import fnmatch
import re
from types import MappingProxyType
from typing import NamedTuple

from ..nn._options import OF_NVFP4, check_a_format, check_flags, check_one_of

METHOD = "dualgemm_nvfp4"  # the quant_method of this package
WEIGHT_ONLY = "W4A16_NVFP4"
# These stay in floats when a float model is quantised, as with ModelOpt: the head; routers, since an error there
# chooses other experts; the gate of a shared expert; decay and step of linear attention's heads.
STAYS = ("lm_head", "*router*", "gate", "*shared_expert_gate", "linear_attn.in_proj_[ab]*")
_ALGORITHMS = {"NVFP4": True, WEIGHT_ONLY: False}  # ModelOpt's `quant_algo`: whether the checkpoint has input scales
_PACKED = "nvfp4-pack-quantized"
_WEIGHTS = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
# Fields of compressed-tensors that change what a linear computes. A configuration that uses one is refused.
_UNREAD = ("transform_config", "sparsity_config", "moe_sparsity_config")


class Scheme(NamedTuple):
    """How a checkpoint holds one linear."""
    format: str         # of dualgemm.nn.Linear
    input_scale: bool   # whether the checkpoint has one


def matches(name, module, pattern):
    """Returns whether a pattern means this module, by ModelOpt's rule. After "re:" stands a regular expression that has
    to match the beginning of the module's name. The name of a class means all modules of that class. Any other pattern
    may have the wildcards of a shell. It has to match the module's name, or all that follows one of the dots in the
    name: "lm_head" means "model.lm_head", too."""
    if pattern.startswith("re:"): return re.match(pattern[3:], name) is not None
    return pattern == type(module).__name__ or any(
        fnmatch.fnmatchcase(end, pattern) for end in (name, *(name[dot.end():] for dot in re.finditer(r"\.", name))))


def _matches_target(name, module, target):
    """Returns whether a pattern means this module, by the rule of compressed-tensors. After "re:" stands a regular
    expression that has to match the beginning of the module's name. Any other pattern is a whole name, or the name of
    the module's class or of a base of that class."""
    if target.startswith("re:"): return re.match(target[3:], name) is not None
    return target == name or any(target == kind.__name__ for kind in type(module).__mro__)


def _check(where, what, value, allowed):
    if value not in allowed:
        raise ValueError(f"{where}: {what}={value!r}: is not read here, and must be "
                         + " or ".join(map(repr, allowed)))


def _both(name, named):
    """Returns the names of a module: the model's, and the checkpoint's if that is another one."""
    return (name, named[name]) if named.get(name, name) != name else (name,)


class _ModelOpt:
    ignores_parts = True  # a pattern that means a module also means everything inside of it

    def __init__(self, stored, named):
        self.algorithm, self.layers, self.named = stored.get("quant_algo"), stored.get("quantized_layers") or {}, named
        groups = stored.get("config_groups") or {}
        sizes = [(group.get("weights") or {}).get("group_size") for group in groups.values()]
        self.group_size = stored.get("group_size") or (sizes[0] if len(set(sizes)) == 1 else None) or 16
        self.ignore = stored["ignore"]
        if self.algorithm != "MIXED_PRECISION":
            _check("quantization_config", "quant_algo", self.algorithm, _ALGORITHMS)

    def ignored(self, name, module):
        return any(matches(each, module, pattern) for each in _both(name, self.named) for pattern in self.ignore)

    def scheme(self, name, module):
        if self.ignored(name, module): return None
        algorithm, size = self.algorithm, self.group_size
        if algorithm == "MIXED_PRECISION":
            layer = next((self.layers[each] for each in _both(name, self.named) if each in self.layers), None)
            if layer is None: return None
            algorithm, size = layer.get("quant_algo"), layer.get("group_size") or 16
            _check(name, "quant_algo", algorithm, _ALGORITHMS)
        _check(name, "group_size", size, (16,))
        return Scheme("modelopt", _ALGORITHMS[algorithm])


class _CompressedTensors:
    ignores_parts = False  # a pattern that means a module means that module alone

    def __init__(self, stored, named):
        self.ignore, self.format, self.named = stored["ignore"], stored.get("format"), named
        for name in _UNREAD:
            if stored.get(name) and stored[name] != {"format": "dense"}:
                raise ValueError(f"quantization_config: {name}={stored[name]!r}: is not read here")
        pairs = [(target, group) for group in stored["config_groups"].values() for target in group.get("targets", ())]
        self.groups = sorted(pairs, key=lambda pair: ("re:" in pair[0], pair[0]))  # its order: the first match counts

    def _meant(self, name, module, target):
        return any(_matches_target(each, module, target) for each in _both(name, self.named))

    def ignored(self, name, module):
        return any(self._meant(name, module, pattern) for pattern in self.ignore)

    def scheme(self, name, module):
        if self.ignored(name, module): return None
        group = next((group for target, group in self.groups if self._meant(name, module, target)), None)
        if group is None: return None
        _check(name, "format", group.get("format") or self.format, (_PACKED,))
        weights, inputs = group.get("weights") or {}, group.get("input_activations")
        for key, value in _WEIGHTS.items(): _check(name, f"weights.{key}", weights.get(key, value), (value,))
        if inputs is not None:
            for key in ("num_bits", "type", "group_size"):
                _check(name, f"input_activations.{key}", inputs.get(key), (_WEIGHTS[key],))
        if group.get("output_activations"):
            raise ValueError(f"{name}: output_activations={group['output_activations']!r}: is not read here")
        return Scheme("compressed-tensors", inputs is not None and inputs.get("dynamic") is not True)


def _names(ignore):
    names = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(names, (list, tuple, set)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"ignore={ignore!r}: must be a name, or a list of names")
    return list(names)


def unified(stored):
    """Returns a stored configuration in one layout, the unified one: a dictionary without quant_method, in which
    `ignore` is a list. hf_quant_config.json has another layout and another word for `ignore`. A stored `ignore` may
    also be a single pattern."""
    if "quantization" in stored:
        producer = {"producer": stored["producer"]} if "producer" in stored else {}
        stored = {**stored["quantization"], **producer}
    found = {key: value for key, value in stored.items() if key not in ("quant_method", "exclude_modules")}
    ignore = stored.get("ignore") or stored.get("exclude_modules") or ()
    found["ignore"] = _names(ignore)
    return found


def with_options(stored, a_format, flags, share_input):
    """Returns a configuration of this package: a unified one with this package's quant_method and options. Checks the
    options."""
    check_a_format(a_format, OF_NVFP4)
    check_flags(flags)
    check_one_of("share_input", share_input, (True, False))
    return {**stored, "quant_method": METHOD, "a_format": a_format, "flags": flags, "share_input": share_input}


def reader(stored, named=MappingProxyType({})):
    """Returns an object that reads a unified configuration. Its `scheme(name, module)` returns the Scheme of a linear,
    or None if the linear is not quantised. If it is quantised, and not in NVFP4, a ValueError names the module and the
    value. `named` maps a module's name in the model to its name in the checkpoint, if the two differ."""
    if "quant_algo" in stored: return _ModelOpt(stored, named)
    if "config_groups" in stored: return _CompressedTensors(stored, named)
    raise ValueError("quantization_config: has neither `quant_algo`, as ModelOpt's, nor `config_groups`, as "
                     "compressed-tensors': nothing else is read here")


def kv_cache(stored):
    """Returns what the configuration says of the cache of keys and values, which this package does not read."""
    return stored.get("kv_cache_scheme") or stored.get("kv_cache_quant_algo")
