"""A checkpoint of another quant_method under this package's: in memory, or in its config.json."""
import json
import os
import pathlib

from transformers import AutoConfig
from transformers.utils import cached_file

from ._checkpoint import METHOD, reader, unified

_ORIGINAL = "original_quant_method"
_LEGACY = "hf_quant_config.json"  # ModelOpt's, beside a config.json that says nothing


def renamed(stored, a_format="auto", flags=0):
    """A stored quantization_config, as a dictionary, with this package's quant_method. Raises ValueError if it is none
    that is read here."""
    found = unified(stored)
    reader(found)
    original = stored.get("quant_method", "modelopt" if "quant_algo" in found else "compressed-tensors")
    return {_ORIGINAL: original, **found, "quant_method": METHOD, "a_format": a_format, "flags": flags}


def model_config(checkpoint, a_format="auto", flags=0, **named):
    """The configuration of a model, for from_pretrained(checkpoint, config=...): as AutoConfig.from_pretrained reads
    it, with this package's quant_method. The checkpoint does not change. `named` goes to AutoConfig.from_pretrained."""
    config = AutoConfig.from_pretrained(checkpoint, **named)
    stored = getattr(config, "quantization_config", None) or getattr(config.get_text_config(decoder=True),
                                                                     "quantization_config", None)
    if stored is None:
        path = cached_file(checkpoint, _LEGACY, _raise_exceptions_for_missing_entries=False)
        if path is None:
            raise ValueError(f"{checkpoint}: has neither a quantization_config nor {_LEGACY}: if it holds floats, "
                             "from_pretrained(..., quantization_config=DualGemmConfig()) quantises one")
        stored = json.loads(pathlib.Path(path).read_text())
    config.quantization_config = renamed(dict(stored), a_format, flags)
    return config


def rewrite(folder, a_format="auto", flags=0, restore=False):
    """Changes the quantization_config of a folder's config.json; with `restore` back to what wrote it. Returns the new
    quant_method. Nothing but config.json changes, and that in one step."""
    path = pathlib.Path(folder) / "config.json"
    config = json.loads(path.read_text())
    stored = config.get("quantization_config")
    if stored is None and (legacy := path.with_name(_LEGACY)).exists(): stored = json.loads(legacy.read_text())
    if stored is None: raise ValueError(f"{path}: has no quantization_config")
    if restore:
        if _ORIGINAL not in stored: raise ValueError(f"{path}: was not rewritten: it has no {_ORIGINAL}")
        kept = {key: value for key, value in stored.items() if key not in (_ORIGINAL, "a_format", "flags")}
        config["quantization_config"] = {**kept, "quant_method": stored[_ORIGINAL]}
    elif _ORIGINAL in stored: config["quantization_config"] = {**stored, "a_format": a_format, "flags": flags}
    else: config["quantization_config"] = renamed(stored, a_format, flags)
    beside = path.with_name("config.json.new")
    beside.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    os.replace(beside, path)
    return config["quantization_config"]["quant_method"]
