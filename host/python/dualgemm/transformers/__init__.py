"""Gives models of the package transformers weights in NVFP4, by a quantizer that loads checkpoints of ModelOpt and of
compressed-tensors, and quantises float ones. Importing this module registers the quantizer. README.md has a section
about it."""
from ._convert import convert
from ._quantizer import DualGemmConfig
from ._rewrite import model_config, rewrite

__all__ = ["DualGemmConfig", "convert", "model_config", "rewrite"]
