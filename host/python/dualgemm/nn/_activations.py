"""Activations by the names that transformers gives them, and by this library's own."""
from .._structures import (ACTIVATION_GEGLU_ERF, ACTIVATION_GEGLU_TANH, ACTIVATION_GLU, ACTIVATION_REGLU,
                           ACTIVATION_SITU, ACTIVATION_SWIGLU, ACTIVATION_SWIGLU_STEP, LINEAR_ACTIVATION_GELU_ERF,
                           LINEAR_ACTIVATION_GELU_TANH, LINEAR_ACTIVATION_NONE, LINEAR_ACTIVATION_RELU,
                           LINEAR_ACTIVATION_RELU2, LINEAR_ACTIVATION_SILU)
from ._options import check_one_of

# gelu_new and gelu_fast are the same approximation by tanh.
GATED = {"silu": ACTIVATION_SWIGLU, "swish": ACTIVATION_SWIGLU, "gelu": ACTIVATION_GEGLU_ERF,
         "gelu_pytorch_tanh": ACTIVATION_GEGLU_TANH, "gelu_new": ACTIVATION_GEGLU_TANH,
         "gelu_fast": ACTIVATION_GEGLU_TANH, "relu": ACTIVATION_REGLU, "sigmoid": ACTIVATION_GLU,
         "swiglu_step": ACTIVATION_SWIGLU_STEP, "situ": ACTIVATION_SITU}
ALONE = {None: LINEAR_ACTIVATION_NONE, "linear": LINEAR_ACTIVATION_NONE, "silu": LINEAR_ACTIVATION_SILU,
         "swish": LINEAR_ACTIVATION_SILU, "gelu": LINEAR_ACTIVATION_GELU_ERF,
         "gelu_pytorch_tanh": LINEAR_ACTIVATION_GELU_TANH, "gelu_new": LINEAR_ACTIVATION_GELU_TANH,
         "gelu_fast": LINEAR_ACTIVATION_GELU_TANH, "relu": LINEAR_ACTIVATION_RELU, "relu2": LINEAR_ACTIVATION_RELU2}
PARAMETERS = ("swiglu_alpha", "swiglu_beta", "swiglu_limit", "situ_gate", "situ_up")
# The names of classes and functions of torch and of transformers, and what they compute.
_CLASSES = {"SiLU": "silu", "SiLUActivation": "silu", "silu": "silu", "swish": "silu", "GELUActivation": "gelu",
            "PytorchGELUTanh": "gelu_pytorch_tanh", "GELUTanh": "gelu_pytorch_tanh", "NewGELUActivation": "gelu_new",
            "FastGELUActivation": "gelu_fast", "ReLU": "relu", "relu": "relu", "ReLUSquaredActivation": "relu2",
            "Sigmoid": "sigmoid", "sigmoid": "sigmoid", "Identity": "linear", "LinearActivation": "linear"}


def number(name, known):
    check_one_of("activation", name, known)
    return known[name]


def name_of(function):
    """Returns the name of an activation that is a module or a function."""
    kind = getattr(function, "__name__", type(function).__name__)
    if kind == "GELU": return "gelu_pytorch_tanh" if function.approximate == "tanh" else "gelu"
    if kind in _CLASSES: return _CLASSES[kind]
    raise ValueError(f"act_fn={function!r}: is no activation that is known here; pass `activation`")
