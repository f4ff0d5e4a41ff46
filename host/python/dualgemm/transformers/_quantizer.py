"""The quantizer for transformers. It is registered under a quant_method of its own."""
import logging
import warnings

import torch
import transformers
from packaging import version
from safetensors import safe_open
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightRenaming, rename_source_key
from transformers.quantizers import HfQuantizer, register_quantization_config, register_quantizer
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.utils.quantization_config import QuantizationConfigMixin

from ..nn import Linear
from ..nn._weights import Weights
from ._checkpoint import METHOD, STAYS, WEIGHT_ONLY, kv_cache, reader, unified, with_options
from ._conversions import Quantise, conversions, spelling, words_of_experts
from ._recognise import has_stacks
from ._replace import replace

_log = logging.getLogger(__name__)
_LEAST_VERSION = "5.23"  # its loader hands quantizers what they need to convert tensors
_SCALES_OF_A_CACHE = r"\.(k_scale|v_scale|q_scale|prob_scale)$"  # engines load them for caches in FP8


class DualGemmConfig(QuantizationConfigMixin):
    """The quantization_config of quant_method "dualgemm_nvfp4". `stored` is what a checkpoint says of its own weights.
    Without it the checkpoint is a float one, and its linears are quantised while it is loaded, except those that
    `ignore` means. `a_format` and `flags` are those of dualgemm.nn.Linear. With `share_input` linears that are children
    of one module, get the same tensor and are stored alike, as query, key and value, share a launch."""

    def __init__(self, ignore=None, a_format="auto", flags=0, share_input=True, **stored):
        stored.pop("quant_method", None)
        if not stored: stored, ignore = {"quant_algo": WEIGHT_ONLY}, STAYS if ignore is None else ignore
        self.quant_method, self.a_format, self.flags, self.share_input = METHOD, a_format, flags, share_input
        self.stored = unified({**stored, **({} if ignore is None else {"ignore": ignore})})
        reader(self.stored)
        self.to_dict()  # checks the options

    def to_dict(self):
        return with_options(self.stored, self.a_format, self.flags, self.share_input)


def check_device(device, a_format="auto"):
    """Checks that the library has kernels for the tensor cores of a GPU."""
    if device.type != "cuda": return
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) != (9, 0) and major != 10:
        raise RuntimeError(f"{device}: has compute capability {major}.{minor}; NVFP4 weights need 9.0, 10.x or a CPU")
    if major == 10 and a_format == "16bit":
        raise ValueError(f"a_format='16bit': {device} has compute capability {major}.{minor}, which multiplies NVFP4 "
                         "by NVFP4 alone: use 'auto' or 'nvfp4'")


def _devices(device_map):
    """Yields the devices that a device_map names; "auto" and the like name none."""
    places = device_map.values() if isinstance(device_map, dict) else (device_map,)
    for place in places:
        if isinstance(place, int): place = f"cuda:{place}"
        try:
            yield torch.device(place)
        except (RuntimeError, TypeError):
            if place == "disk": raise ValueError("device_map: 'disk' is not possible with NVFP4 weights") from None


def _keys(files):
    """Yields the names of the tensors in a checkpoint's .safetensors files."""
    for path in files or ():
        if not str(path).endswith(".safetensors"): continue
        with safe_open(path, framework="pt") as file: yield from file.keys()


def _check_float(keys):
    """Checks that no name of a checkpoint that is to be quantised ends in .weight_scale: then it is quantised already.
    transformers says nothing of that if it does not know the checkpoint's quant_method."""
    scale = next((key for key in keys if key.endswith(".weight_scale")), None)
    if scale is not None:
        raise ValueError(f"{scale}: is in the checkpoint, so its weights are quantised already: pass config=dualgemm."
                         "transformers.model_config(checkpoint) and no quantization_config")


def _named(model, keys):
    """Returns the checkpoint's names of modules by the model's names: it turns round what transformers does to
    names."""
    renamings = [each for each in get_model_conversion_mapping(model) if isinstance(each, WeightRenaming)]
    known, named = model.state_dict(), {}
    for stem in {key.rpartition(".")[0] for key in keys}:
        name, _ = rename_source_key(f"{stem}.weight", renamings, [], model.base_model_prefix, known)
        named[name.removesuffix(".weight")] = stem
    return named


def _in_floats(model, keys, named):
    """Yields the names of experts in stacks that the checkpoint has in floats: it has tensors of them, and no scales.
    Its configuration may mean them all the same, by the target Linear. The package then saw no linears in the stacks,
    and left them as they were."""
    scaled = {key.rpartition(".")[0] for key in keys if key.endswith("_scale")}
    for name, module in model.named_modules():
        if not has_stacks(module): continue
        stems = {stem for each, stem in named.items() if f"{each}.".startswith(f"{name}.")}
        if stems and stems.isdisjoint(scaled): yield name


def _missing(name, module):
    """Yields names of tensors that loading has not found. An input scale may be absent; then it is set to None."""
    for path, part in module.named_modules():
        if not isinstance(part, Weights): continue
        for key in part.names:
            tensor = getattr(part, key)
            if tensor is None or getattr(tensor, "_is_hf_initialized", False): continue  # loading sets this
            if key == part.names.input_scale: setattr(part, key, None)
            else: yield ".".join(filter(None, (name, path, key)))


def _groups(replaced):
    """Returns lists of the names of weights whose linears share a launch."""
    groups = {}
    for name, module, _ in replaced:
        if isinstance(module, Linear) and module.shared is not None:
            groups.setdefault(id(module.shared), []).append(f"{name}.weight")
    return groups.values()


class DualGemmQuantizer(HfQuantizer):
    """Puts dualgemm.nn's modules in the place of linears, gated MLPs and experts before tensors are loaded. Afterwards
    it brings the tensors into the layout of launches."""

    requires_calibration = False
    is_trainable = False
    is_compileable = True

    def validate_environment(self, device_map=None, **_):
        if version.parse(transformers.__version__) < version.parse(_LEAST_VERSION):
            raise ImportError(f"transformers {transformers.__version__}: this quantizer needs {_LEAST_VERSION}; "
                              "dualgemm.transformers.convert, for a loaded float model, does not")
        for device in _devices(device_map): check_device(device, self.quantization_config.a_format)

    def update_dtype(self, dtype):
        if dtype in (torch.bfloat16, torch.float16): return dtype
        _log.warning("dtype=%s: NVFP4 weights need activations of 16 bits, so the model is loaded as bfloat16", dtype)
        return torch.bfloat16

    def update_parallel_plan(self, model, plan):
        size = getattr(getattr(model.config, "distributed_config", None), "tp_size", None) or 1
        if size > 1: raise ValueError(f"tp_size={size}: this quantizer loads whole weights; dualgemm.nn has tp_size")

    # ---- before tensors are loaded ----

    def _process_model_before_weight_loading(self, model, checkpoint_files=None, **_):
        config, tied, keys = self.quantization_config, model.all_tied_weights_keys, list(_keys(checkpoint_files))
        if not self.pre_quantized: _check_float(keys)
        keep = {name.removesuffix(".weight") for name in (*tied.keys(), *tied.values())}
        named = _named(model, keys)
        if self.pre_quantized: keep.update(_in_floats(model, keys, named))
        self.replaced = replace(model, reader(config.stored, named), keep, a_format=config.a_format, flags=config.flags,
                                share_input=config.share_input)
        self.quantise = Quantise(_groups(self.replaced))
        if kv_cache(config.stored):
            _log.warning("quantization_config: the cache of keys and values stays in 16 bits; its scheme, %s, is not "
                         "read here", kv_cache(config.stored))
            known = model._keys_to_ignore_on_load_unexpected or ()
            model._keys_to_ignore_on_load_unexpected = {*known, _SCALES_OF_A_CACHE}

    # ---- while they are loaded ----

    def param_needs_quantization(self, model, param_name, **_):
        """Returns whether this is a tensor of a weight. Such tensors come in the checkpoint's shapes, which are checked
        afterwards."""
        path, _, name = param_name.rpartition(".")
        module = model.get_submodule(path)
        return isinstance(module, Weights) and name in module.names[:4]

    def get_quantize_ops(self):
        return self.quantise

    def update_weight_conversions(self, weight_conversions, model):
        self.words = words_of_experts(weight_conversions)
        return conversions(weight_conversions, model, self.replaced, self.pre_quantized)

    # ---- after they are loaded ----

    def _process_model_after_weight_loading(self, model, **_):
        missing = []
        for name, module, _ in self.replaced:
            if f"{name}.weight" not in self.quantise.waiting: missing += _missing(name, module)
        if missing:
            raise ValueError(f"{missing[0]}: the checkpoint does not have it, nor {len(missing) - 1} other tensors of "
                             "linears that its quantization_config says are NVFP4")
        for name, module, was in self.replaced:
            self._prepare(name, module)
            if (layout := spelling(module, was, self.words)) is not None: module.layout = layout
        return model

    def _prepare(self, name, module):
        for tensor in module.buffers():
            if tensor.device.type == "meta":
                raise ValueError(f"{name}: is not on a device; NVFP4 weights cannot be offloaded by a device_map")
            check_device(tensor.device, self.quantization_config.a_format)
        try:
            module.load_state_dict(module.state_dict(), assign=True)  # checks their shapes and types
        except RuntimeError as error:
            raise ValueError(f"{name}: {error}") from None

    def is_serializable(self):
        return True


def _register(register, known, kind):
    """Registers a class under METHOD, unless one is registered already. If that is another class, it warns."""
    if METHOD not in known: register(METHOD)(kind)
    elif known[METHOD].__qualname__ != kind.__qualname__:
        warnings.warn(f"quant_method {METHOD!r} is registered for {known[METHOD]!r} already, which stays")


_register(register_quantization_config, AUTO_QUANTIZATION_CONFIG_MAPPING, DualGemmConfig)
_register(register_quantizer, AUTO_QUANTIZER_MAPPING, DualGemmQuantizer)
