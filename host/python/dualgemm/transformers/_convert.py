"""A float model, whose modules are replaced in place."""
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

    `a_format` and `flags` are those of dualgemm.nn.Linear. With `share_input` linears of one input, as query, key and
    value, share a launch, and a global scale. What `ignore` means stays, with everything inside of it: one or
    several names, or ends of names, with wildcards; names of classes; "re:" and a regular expression. By default that
    is what STAYS has: the head, routers, and gates of few rows. So does a linear whose weight is tied to another
    module's. Shapes that a launch cannot have, and experts of another kind, are a ValueError that names the module, and
    so are weights of other types than bfloat16 and float16. Then nothing has been replaced."""
    config = getattr(model, "config", None)
    if getattr(config, "quantization_config", None) is not None:
        raise ValueError("model: has a quantization_config, so its weights are quantised already")
    stored = unified({"quant_algo": WEIGHT_ONLY, "ignore": ignore})
    written = with_options(stored, a_format, flags, share_input)
    words = words_of_experts(get_model_conversion_mapping(model))
    for _, module, was in replace(model, reader(stored), types=_TYPES, share_input=share_input, a_format=a_format,
                                  flags=flags):
        if isinstance(was, Stacks) and words: module.layout = spelling(module, was, words)
    if config is not None:  # which save_pretrained writes, and from_pretrained reads
        config.quantization_config = written
    return model
