"""Makes one dualgemm.nn.MoE of experts whose weights transformers holds in stacks. Their router stays what it is."""
import torch

from .. import nn
from ..nn._layouts import FORMATS, MODULES, Layout


class Experts(nn.MoE):
    """Takes each token's experts and their weights, as modules of transformers do, from a router in front of it."""

    def forward(self, hidden_states, top_k_index, top_k_weights):
        return self.apply_experts(hidden_states, top_k_index, top_k_weights)

    @classmethod
    def of_stacks(cls, module, found, **options):
        """Returns the replacement of a module with gate_up_proj [experts, 2 intermediate, hidden] and down_proj."""
        fused, down = module.gate_up_proj.detach(), module.down_proj.detach()
        experts, hidden, intermediate = down.shape
        top_k = 1  # not used: forward gets as many experts of a token as the router chooses
        made = cls(hidden, intermediate, experts, top_k, found.activation, False, "meta", down.dtype, **options)
        if down.device.type == "meta": return made
        gate, up = fused.chunk(2, 1) if found.rows == "stacked" else fused.unflatten(1, (-1, 2)).unbind(2)
        tensors = {f"{name}.{key}": tensor for name, whole in zip(MODULES, (gate, up, down))
                   for key, tensor in quantised(whole).items()}
        made.load_state_dict(tensors, assign=True)
        made.layout = Layout(each=True)  # state_dict writes each expert's tensors, as checkpoints have them
        return made


def quantised(weight):
    """Returns nn.quantize_weight of a weight [n, k]. Of stacked weights [experts, n, k] it quantises each expert's
    alone, and returns stacks."""
    if weight.dim() == 2: return nn.quantize_weight(weight)
    each = [nn.quantize_weight(one) for one in weight]
    return {name: torch.stack([one.pop(name) for one in each]) for name in FORMATS["modelopt"][:3]}
