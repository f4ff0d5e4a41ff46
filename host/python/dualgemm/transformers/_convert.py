"""Replaces the modules of a float model in place."""
import torch
from transformers.conversion_mapping import get_model_conversion_mapping

from ._checkpoint import STAYS, WEIGHT_ONLY, reader, unified, with_options
from ._conversions import spelling, words_of_experts
from ._recognise import Stacks
from ._replace import replace

_TYPES = (torch.bfloat16, torch.float16)


@torch.no_grad()
def convert(model, a_format="auto", flags=0, ignore=STAYS, share_input=True):
    """Replaces the linears, the gated MLPs and the experts of a float model in place, on the model's device, and
    returns the model. Their weights are quantised (dualgemm.nn.quantize_weight).

    `a_format` and `flags` are those of dualgemm.nn.Linear. With `share_input` linears that are children of one module
    and get the same tensor, as query, key and value, share a launch, and where possible a global scale.

    `ignore` is a pattern or several: a name or the end of a name, with wildcards; the name of a class; "re:" and a
    regular expression. A module that a pattern means is not replaced, nor is anything inside of it. The default, STAYS,
    means the head, routers, and gates of few rows. A linear whose weight is tied to another module's is not replaced
    either. A ValueError names a module with a shape that a launch cannot have, with experts of another kind, with
    weights of another type than bfloat16 and float16, or with a weight that has an element which is NaN or infinite. A
    model that is itself a linear, or experts, is refused, too. Then nothing has been replaced."""
    config = getattr(model, "config", None)
    if getattr(config, "quantization_config", None) is not None:
        raise ValueError("model: has a quantization_config, so its weights are quantised already")
    stored = unified({"quant_algo": WEIGHT_ONLY, "ignore": ignore})
    written = with_options(stored, a_format, flags, share_input)
    words = words_of_experts(get_model_conversion_mapping(model))
    for _, module, was in replace(model, reader(stored), types=_TYPES, share_input=share_input, a_format=a_format,
                                  flags=flags):
        if isinstance(was, Stacks) and words: module.layout = spelling(module, was, words)
    if config is not None:  # save_pretrained writes it, and from_pretrained reads it
        config.quantization_config = written
    return model
