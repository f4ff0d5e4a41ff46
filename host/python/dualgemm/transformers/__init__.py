"""Models of the package transformers with weights in NVFP4: a quantizer that loads checkpoints of ModelOpt and of
compressed-tensors, and quantises float ones. Importing this module registers it. README.md has a section about it."""
from ._convert import convert
from ._quantizer import DualGemmConfig
from ._rewrite import model_config, rewrite

__all__ = ["DualGemmConfig", "convert", "model_config", "rewrite"]
