"""Puts a checkpoint of another quant_method under this package's, in memory or in its config.json."""
import json
import os
import pathlib

from transformers import AutoConfig
from transformers.utils import cached_file

from ._checkpoint import reader, unified, with_options

_ORIGINAL = "original_quant_method"  # this field holds the quantization_config that was there before; null: none was
_LEGACY = "hf_quant_config.json"  # ModelOpt's file, for a config.json without a quantization_config


def renamed(stored, original, a_format, flags, share_input):
    """Returns a stored quantization_config, a dictionary, with this package's quant_method. `original` is the one that
    config.json has, or None. Raises ValueError if this package does not read the stored one."""
    found = unified(stored)
    reader(found)
    return with_options({**found, _ORIGINAL: original}, a_format, flags, share_input)


def model_config(checkpoint, a_format="auto", flags=0, share_input=True, **named):
    """Returns the configuration of a model, for from_pretrained(checkpoint, config=...): the one that
    AutoConfig.from_pretrained reads, with this package's quant_method. The checkpoint does not change. `a_format`,
    `flags` and `share_input` are those of DualGemmConfig. `named` goes to AutoConfig.from_pretrained."""
    config = AutoConfig.from_pretrained(checkpoint, **named)
    stored = getattr(config, "quantization_config", None) or getattr(config.get_text_config(decoder=True),
                                                                     "quantization_config", None)
    if stored is None:
        path = cached_file(checkpoint, _LEGACY, _raise_exceptions_for_missing_entries=False)
        if path is None:
            raise ValueError(f"{checkpoint}: has neither a quantization_config nor {_LEGACY}: if it holds floats, "
                             "from_pretrained(..., quantization_config=DualGemmConfig()) quantises one")
        stored = json.loads(pathlib.Path(path).read_text())
        stored = {**unified(stored), "quant_method": "modelopt"}  # as ModelOpt writes it into config.json
    config.quantization_config = renamed(stored, stored.get(_ORIGINAL, dict(stored)), a_format, flags,
                                         share_input)
    return config


def rewrite(folder, a_format="auto", flags=0, restore=False):
    """Changes the quantization_config of a folder's config.json, or with `restore` changes it back to what it was.
    Returns the new quant_method, or None if config.json has none now. No other file changes, and config.json changes in
    one step."""
    path = pathlib.Path(folder) / "config.json"
    config, legacy = json.loads(path.read_text()), path.with_name(_LEGACY)
    original = stored = config.get("quantization_config")
    if stored is None and legacy.exists(): stored = json.loads(legacy.read_text())
    if stored is None: raise ValueError(f"{path}: has no quantization_config")
    if restore: changed = _restored(path, stored, legacy)
    elif _ORIGINAL in stored: changed = with_options(stored, a_format, flags, stored.get("share_input", True))
    else: changed = renamed(stored, original, a_format, flags, True)
    config.update(quantization_config=changed)
    if changed is None: del config["quantization_config"]
    beside = path.with_name("config.json.new")
    beside.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    os.replace(beside, path)
    return (changed or {}).get("quant_method")


def _restored(path, stored, legacy):
    if _ORIGINAL not in stored: raise ValueError(f"{path}: was not rewritten: it has no {_ORIGINAL}")
    if stored[_ORIGINAL] is None and not legacy.exists():
        raise ValueError(f"{path}: had no quantization_config, and {legacy.name}, which said the same, is not here")
    return stored[_ORIGINAL]
