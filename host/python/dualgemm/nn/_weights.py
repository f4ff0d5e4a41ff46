"""Holds a weight in NVFP4, or one for each expert. Outside it has a checkpoint's tensors, inside what a launch
takes."""
from typing import NamedTuple, Optional

import torch

from .. import torch_op
from ._layouts import ENCODES, FORMATS
from ._options import check_a_format, check_one_of

ops = torch.ops.dualgemm
_AS_INTEGERS = {torch.float32: torch.int32, torch.float8_e4m3fn: torch.uint8}
_DERIVED = ("atoms", "decode", "alpha", "encode_a", "decode_a", "launch_bias")


class Operands(NamedTuple):
    """What a launch takes of a weight. A scale has one number for each expert, or one number."""
    elements: torch.Tensor
    atoms: torch.Tensor                # the factors in 128x4 atoms
    decode: torch.Tensor               # what makes weights of their elements and factors
    alpha: torch.Tensor                # decode times decode_a, for an A that is quantised by the checkpoint's scale
    encode_a: Optional[torch.Tensor]   # the checkpoint's encode scale for A; None: it has none
    decode_a: Optional[torch.Tensor]   # the reciprocal of encode_a
    bias: Optional[torch.Tensor]


def calls():
    """Returns the operators for a forward: inside of torch.compile those that it can trace, else those that cost
    less."""
    return ops if torch.compiler.is_compiling() else torch_op.direct


def check_multiple(name, value, of):
    if value <= 0 or value % of: raise ValueError(f"{name}={value}: must be a positive multiple of {of}")


def split(name, value, size, of):
    """Returns a rank's part of a dimension."""
    if value % size or value // size % of:
        raise ValueError(f"{name}={value}: tensor parallelism by tp_size={size} needs a multiple of {size} x {of}")
    return value // size


def aligned(tensor):
    """Returns the tensor, or a copy if its address is no multiple of 16, which launches need. A file of safetensors
    that is mapped into memory has tensors at any address. Tensors of another class, such as those of tracers, have no
    address."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.data_ptr() % 16 == 0: return tensor
    return tensor.clone()


def lasting(function):
    """Decorates a function that makes tensors which stay. If it made them under torch.inference_mode(), nothing could
    write to them outside of it."""
    return torch.inference_mode(False)(torch.no_grad()(function))


def alike(old, new):
    """Returns whether a tensor can take the numbers of another one."""
    return not old.is_inference() and all(getattr(old, what) == getattr(new, what)
                                          for what in ("shape", "dtype", "device"))


@lasting
def keep(module, name, tensor):
    """Sets a buffer. If the old one is alike, its memory gets the new numbers, since a CUDA graph may know its
    address."""
    old = module._buffers[name]
    if old is tensor: return
    if old is not None and tensor is not None and alike(old, tensor): old.copy_(tensor)
    else: module._buffers[name] = tensor


def _own(tensor):
    """Returns a copy without gaps."""
    return tensor.clone(memory_format=torch.contiguous_format)


class Weights(torch.nn.Module):
    """Holds the tensors of a checkpoint under the checkpoint's names. The factors lie in rows until prepare(), which
    load_state_dict and the first forward call, and in atoms after it; state_dict() moves them back, which changes no
    bit. With `parallel` the module holds a rank's part: with "column" a part of the rows, with "row" a part of the
    columns. load_state_dict takes whole tensors or parts."""

    def __init__(self, n, k, experts=None, *, bias=False, format="modelopt", a_format="auto", parallel=None, tp_rank=0,
                 tp_size=1, group=None, device=None, dtype=None):
        super().__init__()
        check_one_of("format", format, FORMATS)
        check_a_format(a_format)
        check_one_of("parallel", parallel, (None, "column", "row"))
        if not 0 <= tp_rank < tp_size: raise ValueError(f"tp_rank={tp_rank}: must be 0 to tp_size - 1 = {tp_size - 1}")
        if tp_size > 1 and parallel is None:
            raise ValueError(f"tp_size={tp_size}: needs a parallel of 'column' or 'row'")
        self.whole = (n, k)
        self.n = split("out_features", n, tp_size, 8) if parallel == "column" else n
        self.k = split("in_features", k, tp_size, 32) if parallel == "row" else k
        check_multiple("out_features", self.n, 8)
        check_multiple("in_features", self.k, 32)
        self.experts, self.a_format, self.format = experts, a_format, format
        self.parallel, self.tp_rank, self.tp_size, self.group = parallel, tp_rank, tp_size, group
        self.prepared, self.quantises, self.factor_dtype = False, False, torch.float8_e4m3fn
        self.pair = {}  # a _Gated shares it: whether what it has made of these scales is "current"
        for name in _DERIVED: self.register_buffer(name, None, persistent=False)
        lead = () if experts is None else (experts,)
        self.register_buffer("bias", torch.zeros(*lead, self.n, device=device, dtype=dtype) if bias else None)
        self._declare(format, device)

    def _declare(self, format, device):
        for name in FORMATS[self.format][:4]: self._buffers.pop(name, None)
        self.format, names = format, FORMATS[format]
        lead = () if self.experts is None else (self.experts,)
        self.register_buffer(names.elements, torch.zeros(*lead, self.n, self.k // 2, dtype=torch.uint8, device=device))
        self.register_buffer(names.factors, torch.zeros(*lead, self.n, self.k // 16, dtype=torch.uint8, device=device)
                             .view(self.factor_dtype))
        self.register_buffer(names.weight_scale, torch.ones(lead, dtype=torch.float32, device=device))
        self.register_buffer(names.input_scale, None)
        for name in _DERIVED: self._buffers[name] = None
        self.prepared = False
        self._choose()

    @property
    def names(self):
        return FORMATS[self.format]

    @property
    def device(self):
        return self._buffers[self.names.elements].device

    @property
    def stale(self):
        """Returns whether factors have been set by name after prepare() had made what launches take."""
        return self.prepared and self._buffers[self.names.factors] is not None

    # ---- what a launch takes ----

    def _derive(self):
        """Returns the tensors of _DERIVED. Each has memory of its own, so that keep() may write to it: the tensors that
        the module holds may be the caller's."""
        names, held = self.names, self._buffers
        factors, bias = held[names.factors], held["bias"]
        atoms = held["atoms"] if factors is None else ops.sf_swizzle(factors)
        decode = _own(held[names.weight_scale].float().flatten())
        if self.format in ENCODES: decode = 1 / decode
        alpha, encode_a, decode_a = decode.clone(), None, held[names.input_scale]
        if decode_a is not None:
            decode_a = _own(decode_a.float().flatten())
            encode_a = 1 / decode_a
            if self.format in ENCODES: encode_a, decode_a = decode_a, encode_a
            alpha = decode * decode_a
        if bias is not None:  # a launch takes bfloat16 and float32
            bias = _own(bias if bias.dtype in (torch.bfloat16, torch.float32) else bias.float())
            if self.parallel == "row" and self.tp_rank > 0: bias = None  # the sum of the ranks has it once
        return atoms, decode, alpha, encode_a, decode_a, bias

    @lasting
    def prepare(self):
        """Brings everything into the layout of launches, unless that is done. Memory that a launch has read before
        keeps its address. On the device meta it does nothing."""
        if (self.prepared and not self.stale) or self.device.type == "meta": return self
        for name in (self.names.elements, "bias"): self._buffers[name] = aligned(self._buffers[name])
        for name, tensor in zip(_DERIVED, self._derive()): keep(self, name, tensor)
        self._buffers[self.names.factors] = None
        self.prepared = True
        self.pair["current"] = False
        self._choose()
        return self

    def _choose(self):
        """Decides whether an A of 16 bits is quantised: with "auto" only if the tensor cores cannot multiply 16 bits by
        NVFP4 weights."""
        blackwell = self.device.type == "cuda" and torch.cuda.get_device_capability(self.device)[0] >= 10
        self.quantises = self.a_format == "nvfp4" or (self.a_format == "auto" and blackwell)

    def operands(self):
        """Returns what launches take. It is made anew where nothing may be kept: inside of torch.compile, on the device
        meta, and if factors were set after prepare(), which torch.func.functional_call does for the time of one
        call."""
        compiling = torch.compiler.is_compiling()
        if not (self.prepared or compiling): self.prepare()
        held, names = self._buffers, FORMATS[self.format]  # reading a buffer as an attribute takes a microsecond
        elements, stale = held[names.elements], held[names.factors] is not None
        if self.prepared and not stale: return Operands(elements, *[held[name] for name in _DERIVED])
        return Operands(elements if compiling or not self.prepared else aligned(elements), *self._derive())

    # ---- state_dict ----

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name in self.names:
            tensor = self._buffers[name]
            if name == self.names.factors and tensor is None:
                tensor = ops.sf_unswizzle(self.atoms, self.n, self.k).view(self.factor_dtype)
            if tensor is not None: destination[prefix + name] = tensor if keep_vars else tensor.detach()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        found = {key[len(prefix):]: tensor for key, tensor in state_dict.items() if key.startswith(prefix)}
        for format, names in FORMATS.items():
            if format != self.format and {names.elements, names.weight_scale} <= found.keys():
                self._declare(format, self.device)
        names = self.names
        needed = [name for name in names if name in found or name in names[:3] or
                  (name == "bias" and self.bias is not None)]
        missing_keys += [prefix + name for name in needed if name not in found]
        if strict: unexpected_keys += [prefix + name for name in found if name not in names]
        taken = [name for name in needed if name in found]
        if not taken: return
        if names.elements in taken and names.input_scale not in taken: self._buffers[names.input_scale] = None
        for name in taken:
            try:
                self._take(name, found[name], local_metadata.get("assign_to_params_buffers", False))
            except ValueError as error:
                error_msgs.append(f"{prefix}{name}: {error}")
        self.prepared = False
        if not error_msgs: self.prepare()

    @lasting
    def _take(self, name, tensor, assign):
        """Takes over a checkpoint's tensor of this name, or this rank's part of it."""
        part = self._part(name, tensor)
        if not assign and self.device.type == "meta": raise ValueError("the module lies on meta: pass assign=True")
        if name == self.names.factors: self.factor_dtype = tensor.dtype
        old = self._buffers[name]
        if assign and part is tensor: self._buffers[name] = tensor.detach()
        elif assign: self._buffers[name] = part.clone(memory_format=torch.contiguous_format).detach()
        elif old is not None and (old.shape, old.dtype) == (part.shape, part.dtype) and not old.is_inference():
            old.copy_(part)
        else: self._buffers[name] = part.to(self.device, copy=True, memory_format=torch.contiguous_format).detach()

    def _part(self, name, tensor):
        names, lead = self.names, () if self.experts is None else (self.experts,)
        if name in (names.weight_scale, names.input_scale):
            if tensor.dtype != torch.float32 or tensor.numel() != (self.experts or 1):
                raise ValueError(f"is {tensor.dtype} {list(tensor.shape)}, and must be {self.experts or 1} numbers of "
                                 "torch.float32")
            if tensor.device.type == "cpu": self._check_scale(name, tensor)  # elsewhere it would wait for the device
            return tensor
        divisor = {names.elements: 2, names.factors: 16}.get(name)
        types = {names.elements: (torch.uint8, torch.int8, torch.float4_e2m1fn_x2),
                 names.factors: (torch.float8_e4m3fn, torch.uint8)}.get(name, (torch.bfloat16, torch.float16,
                                                                               torch.float32))
        if tensor.dtype not in types:
            raise ValueError(f"is {tensor.dtype}, and must be {' or '.join(map(str, types))}")

        def shape(n, k): return (*lead, n) if divisor is None else (*lead, n, k // divisor)
        if tuple(tensor.shape) == shape(self.n, self.k): return tensor
        if tuple(tensor.shape) != shape(*self.whole):
            raise ValueError(f"is {list(tensor.shape)}, and must be {list(shape(*self.whole))}"
                             + (f" or a rank's {list(shape(self.n, self.k))}" if self.tp_size > 1 else ""))
        if self.parallel == "column": return tensor.narrow(len(lead), self.tp_rank * self.n, self.n)
        width = self.k // divisor  # a bias is whole in a "row"
        return tensor.narrow(-1, self.tp_rank * width, width)

    def _check_scale(self, name, tensor):
        """Checks the numbers of a global scale. A weight of zeros may have the decode scale 0, and an A may not."""
        decode = 1 / tensor if self.format in ENCODES else tensor
        good = decode.isfinite() & (decode >= 0 if name == self.names.weight_scale else decode > 0)
        if not good.all(): raise ValueError(f"is {float(tensor[~good][0])}, and must be positive and finite")

    # ---- devices and types ----

    @lasting
    def _apply(self, fn, recurse=True):
        """Moves everything. A change of type changes the bias alone: scales and factors keep their bits."""
        views = {name: tensor.dtype for name, tensor in self._buffers.items()
                 if tensor is not None and name != "bias" and tensor.dtype in _AS_INTEGERS}
        for name, dtype in views.items(): self._buffers[name] = self._buffers[name].view(_AS_INTEGERS[dtype])
        try:
            super()._apply(fn, recurse)
        finally:
            for name, dtype in views.items(): self._buffers[name] = self._buffers[name].view(dtype)
        self._choose()
        if self.prepared and self.device.type != "meta":
            self.prepared = False
            self.prepare()
        return self

    # ---- several ranks ----

    def reduced(self, y):
        """Returns y, or the sum of y over the ranks if each has a part of k."""
        if self.parallel == "row" and self.tp_size > 1: torch.distributed.all_reduce(y, group=self.group)
        return y
