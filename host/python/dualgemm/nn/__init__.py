"""Layers of PyTorch whose weights are NVFP4 or MXFP4: Linear, GatedMLP, and MoE for experts.

They hold the tensors of a checkpoint by its names, or quantise a float module (from_float), and call the operators of
torch_op. README.md has a section about them."""
from ._layers import GatedMLP, Linear, MoE, quantize_weight
from ._shared import share_input

__all__ = ["GatedMLP", "Linear", "MoE", "quantize_weight", "share_input"]
