"""contender.py -- somebody else's kernel as layers of PyTorch: a shared object that defines the functions of
../contender.h, those of a layer among them."""
import argparse
import ctypes
import pathlib
import weakref

import torch

from dualgemm import nn

E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
ROWS = (1, 16, 100)  # of the products that check a layer: kernels differ by them
ALLOWED_ERROR = 0.01  # of |y - y32| / |y32|; bf16, of the scale too, makes half of it


class Layer(ctypes.Structure):
    """contender_layer."""
    _fields_ = [("n", ctypes.c_int32), ("k", ctypes.c_int32), ("b", ctypes.c_void_p), ("scale", ctypes.c_float),
                ("bf16", ctypes.c_int32)]


class Contender:
    """The functions of a file, and what its tables call it."""
    FUNCTIONS = {"name": (ctypes.c_char_p,), "layer_bytes": (ctypes.c_int64, ctypes.POINTER(Layer)),
                 "create_layer": (ctypes.c_void_p, ctypes.POINTER(Layer), ctypes.c_void_p),
                 "multiply_layer": (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                                    ctypes.c_void_p), "destroy": (None, ctypes.c_void_p)}

    def __init__(self, path):
        library = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        for name, (result, *arguments) in self.FUNCTIONS.items():
            function = getattr(library, f"contender_{name}", None)
            if function is None: raise ValueError(f"{path} does not define contender_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.title = self.name().decode()


def add_option(parser):
    """--contender FILE.so, which may be given several times: a list of Contender."""
    def loaded(path):
        try:
            return Contender(path)
        except (OSError, ValueError) as error:
            raise argparse.ArgumentTypeError(error) from error
    parser.add_argument("--contender", metavar="FILE.so", action="append", default=[], type=loaded,
                        help="a kernel of somebody else's, by the functions of a layer in bench/contender.h")


def quantised(weight):
    """A float weight [n, k] in NVFP4: fp16 numbers of its codes and factors, exactly, and the scale of all."""
    held = nn.quantize_weight(weight)
    values = torch.tensor(E2M1 + tuple(-x for x in E2M1), dtype=torch.float16, device=weight.device)
    pairs = torch.stack((values.repeat(16), values.repeat_interleave(16)), -1)  # of a byte, low bits first
    exact = pairs[held["weight"].int()].view(weight.shape[0], -1, 16)
    exact *= held["weight_scale"].half()[..., None]
    return exact.view(weight.shape), float(held["weight_scale_2"])


class Linear(torch.nn.Module):
    """y = x W^T by a contender, of what `quantised` returns, which is read now and not kept."""

    def __init__(self, contender, exact, scale, dtype):
        super().__init__()
        self.n, self.k = exact.shape
        self.contender, self.dtype = contender, dtype
        exact = exact.contiguous()
        layer = Layer(self.n, self.k, exact.data_ptr(), scale, int(dtype == torch.bfloat16))
        size = contender.layer_bytes(ctypes.byref(layer))
        if size <= 0: raise ValueError(f"{contender.title} does not take a weight {self.n} x {self.k}")
        self.register_buffer("memory", torch.empty(size, dtype=torch.uint8, device=exact.device), persistent=False)
        if exact.is_cuda: torch.cuda.synchronize()  # the contender need not know of this stream
        self.created = contender.create_layer(ctypes.byref(layer), self.memory.data_ptr())
        if not self.created: raise RuntimeError(f"{contender.title} failed to prepare a weight {self.n} x {self.k}")
        weakref.finalize(self, contender.destroy, self.created)
        LAYERS[self.created] = self
        self.check(exact, scale)

    def check(self, exact, scale):
        """A kernel that computes something else is noticed here."""
        random = torch.Generator(exact.device).manual_seed(1)
        a = torch.randn(max(ROWS), self.k, generator=random, device=exact.device).to(self.dtype)
        expected = torch.cat([a.float() @ part.float().t() for part in exact.split(4096)], -1) * scale
        for rows in ROWS:
            error = float((self(a[:rows]).float() - expected[:rows]).norm() / expected[:rows].norm())
            if not error < ALLOWED_ERROR:
                raise RuntimeError(f"{self.contender.title}: {rows} x {self.n} x {self.k}: another product: relative "
                                   f"error {error:.4f}")

    def multiply(self, x, out):
        """Of matrices x [m, k] and out [m, n], on the current stream."""
        stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else None
        status = self.contender.multiply_layer(self.created, x.data_ptr(), len(x), out.data_ptr(), stream)
        if status != 0: raise RuntimeError(f"{self.contender.title}: contender_multiply_layer returned {status}")

    def forward(self, x):
        return torch.ops.dualgemm_bench.linear(x.reshape(-1, self.k), self.created, self.n).view(*x.shape[:-1], self.n)


LAYERS = weakref.WeakValueDictionary()  # by what contender_create_layer returned


@torch.library.custom_op("dualgemm_bench::linear", mutates_args=())
def linear(x: torch.Tensor, created: int, n: int) -> torch.Tensor:
    """An operator, so that torch.compile does not look into it."""
    layer = LAYERS[created]
    if x.dtype != layer.dtype: raise TypeError(f"x: its elements are {x.dtype}, and must be {layer.dtype}")
    out = x.new_empty(len(x), n)
    layer.multiply(x.contiguous(), out)
    return out


@linear.register_fake
def _(x, created, n): return x.new_empty(len(x), n)
