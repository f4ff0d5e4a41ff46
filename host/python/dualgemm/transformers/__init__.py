"""Models of the package transformers with weights in NVFP4. README.md has a section about them."""
from ._replace import convert

__all__ = ["convert"]
