"""Checkpoints in NVFP4 as the packages that others use make them, calibrated on a few tokens. One that cannot be
imported is in MISSING, with the reason, and makes none."""
import contextlib
import io
import warnings

import torch
from transformers_models import BF16, MAKERS, tokens

MISSING = {}
try:
    import compressed_tensors.quantization as ct
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
except ImportError as error:
    MISSING["compressed-tensors"] = str(error)
try:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import modelopt.torch.quantization as mtq
        from modelopt.torch.export import export_hf_checkpoint
except ImportError as error:
    mtq = None
    MISSING["modelopt"] = str(error)


def by_modelopt(path, model, config=None):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        mtq.quantize(model, config or mtq.NVFP4_DEFAULT_CFG, lambda model: model(tokens(8, 16)))
        export_hf_checkpoint(model, dtype=BF16, export_dir=path)


class EachExpert(torch.nn.Module):
    """Experts of transformers as linears, which compressed-tensors quantises."""

    def __init__(self, stacks, words):
        super().__init__()
        self.words, (gate, up) = words, stacks.gate_up_proj.chunk(2, 1)
        for e, weights in enumerate(zip(gate, up, stacks.down_proj)):
            linears = [torch.nn.Linear(*weight.T.shape, False, dtype=weight.dtype) for weight in weights]
            for linear, weight in zip(linears, weights): linear.weight.data.copy_(weight)
            self.add_module(str(e), torch.nn.ModuleDict(dict(zip(words, linears))))

    def forward(self, x, ids, weights):
        y = torch.zeros_like(x)
        for e, expert in self._modules.items():
            gate, up, down = (expert[word] for word in self.words)
            y += down(torch.nn.functional.silu(gate(x)) * up(x)) * (weights * (ids == int(e))).sum(1, keepdim=True)
        return y


@torch.no_grad()
def by_compressed_tensors(path, model, scheme="NVFP4", ignore=("lm_head",)):
    with contextlib.redirect_stderr(io.StringIO()):
        ct.apply_quantization_config(model, ct.QuantizationConfig(
            config_groups={"group_0": ct.preset_name_to_scheme(scheme, ["Linear"])}, ignore=list(ignore)))
        modules = [module for module in model.modules() if getattr(module, "quantization_scheme", None)]
        seen = {module: [] for module in modules}
        model.apply(ct.disable_quantization)
        hooks = [module.register_forward_pre_hook(lambda module, x: seen[module].append(x[0].aminmax()))
                 for module in modules]
        model(tokens(8, 16))
        for hook in hooks: hook.remove()
        for module in modules:
            weight = module.weight.float()
            scale = generate_gparam(*weight.aminmax())
            blocks = weight.unflatten(-1, (-1, 16))
            factors, _ = calculate_qparams(blocks.amin(-1), blocks.amax(-1), module.quantization_scheme.weights, scale)
            module.weight_global_scale.copy_(scale)
            module.weight_scale.copy_(factors)
            if module.quantization_scheme.input_activations is not None:
                module.input_global_scale.copy_(generate_gparam(min(low for low, _ in seen[module]).float(),
                                                                max(high for _, high in seen[module]).float()))
        compressor = ModelCompressor.from_pretrained_model(model)
        compressor.compress_model(model)
    model.save_pretrained(path)
    compressor.update_config(path)


if "modelopt" not in MISSING: MAKERS["modelopt"] = by_modelopt
if "compressed-tensors" not in MISSING: MAKERS["compressed-tensors"] = by_compressed_tensors
