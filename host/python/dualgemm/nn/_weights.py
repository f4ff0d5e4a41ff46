"""Holds a weight in NVFP4 or MXFP4, or one for each expert. Outside it has a checkpoint's tensors, inside what a launch
takes."""
from typing import NamedTuple, Optional

import torch

from .. import torch_op
from . import _mxfp4
from ._layouts import ENCODES, FORMATS, MXFP4
from ._options import check_a_format, check_one_of

ops = torch.ops.dualgemm
_AS_INTEGERS = {torch.float32: torch.int32, torch.float8_e4m3fn: torch.uint8, torch.float8_e8m0fnu: torch.uint8}
_DERIVED = ("atoms", "decode", "alpha", "encode_a", "decode_a", "launch_bias", "exponents")
_LOST = ("lost_places", "lost_bytes")  # of MXFP4: factors that `atoms` do not give back


class Operands(NamedTuple):
    """What a launch takes of a weight. A scale has one number for each expert, or one number."""
    elements: torch.Tensor
    atoms: torch.Tensor                # the factors in 128x4 atoms
    decode: torch.Tensor               # what makes weights of their elements and factors
    alpha: torch.Tensor                # decode times decode_a, for an A that is quantised by the checkpoint's scale
    encode_a: Optional[torch.Tensor]   # the checkpoint's encode scale for A; None: it has none
    decode_a: Optional[torch.Tensor]   # the reciprocal of encode_a
    bias: Optional[torch.Tensor]
    exponents: Optional[torch.Tensor]  # of the rows, of MXFP4 that is multiplied by an A in FP8


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
        self.prepared, self.quantises, self.fp8, self.in_blocks = False, False, False, False
        self.factor_dtype = torch.float8_e4m3fn
        self.pair = {}  # a _Gated shares it: whether what it has made of these scales is "current"
        for name in (*_DERIVED, *_LOST): self.register_buffer(name, None, persistent=False)
        lead = () if experts is None else (experts,)
        self.register_buffer("bias", torch.zeros(*lead, self.n, device=device, dtype=dtype) if bias else None)
        self._declare(format, device)

    def _declare(self, format, device):
        for name in FORMATS[self.format][:4]: self._buffers.pop(name, None)
        self.format, names = format, FORMATS[format]
        self.factor_dtype = torch.float8_e8m0fnu if format in MXFP4 else torch.float8_e4m3fn
        lead = () if self.experts is None else (self.experts,)
        self.register_buffer(names.elements, torch.zeros(*lead, self.n, self.k // 2, dtype=torch.uint8, device=device))
        self.register_buffer(names.factors, torch.zeros(*lead, self.n, self.k // self.block, dtype=torch.uint8,
                                                        device=device).view(self.factor_dtype))
        if names.weight_scale is not None:
            self.register_buffer(names.weight_scale, torch.ones(lead, dtype=torch.float32, device=device))
        self.register_buffer(names.input_scale, None)
        for name in (*_DERIVED, *_LOST): self._buffers[name] = None
        self.prepared = False
        self._choose()

    @property
    def names(self):
        return FORMATS[self.format]

    @property
    def block(self):
        """Returns how many elements have one factor."""
        return _mxfp4.BLOCK if self.format in MXFP4 else 16

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
        bias = held["bias"]
        atoms, decode, exponents = self._derive_weight(held[names.elements], held[names.factors])
        alpha, encode_a, decode_a = decode.clone(), None, held[names.input_scale]
        if decode_a is not None:
            decode_a = _own(decode_a.float().flatten())
            encode_a = 1 / decode_a
            if self.format in ENCODES: encode_a, decode_a = decode_a, encode_a
            alpha = decode * decode_a
        if bias is not None:  # a launch takes bfloat16 and float32
            bias = _own(bias if bias.dtype in (torch.bfloat16, torch.float32) else bias.float())
            if self.parallel == "row" and self.tp_rank > 0: bias = None  # the sum of the ranks has it once
        return atoms, decode, alpha, encode_a, decode_a, bias, exponents

    def _derive_weight(self, elements, factors):
        """Returns the atoms of factors, what a product is multiplied by, and the exponents of rows. Without factors the
        atoms that are there stay, and all that is made of factors."""
        held = self._buffers
        if self.format not in MXFP4:
            decode = _own(held[self.names.weight_scale].float().flatten())
            return (held["atoms"] if factors is None else ops.sf_swizzle(factors),
                    1 / decode if self.format in ENCODES else decode, None)
        if factors is None: return held["atoms"], held["decode"], held["exponents"]
        if self.fp8:
            atoms, exponents, _ = ops.prepare_mxfp4(elements, factors)
            return atoms, torch.ones(self.experts or 1, dtype=torch.float32, device=elements.device), exponents
        waits = not (elements.device.type == "meta" or torch.compiler.is_compiling())
        made, decode = _mxfp4.to_nvfp4(elements, factors, check=waits)
        return ops.sf_swizzle(made), decode, None

    def _factors_back(self):
        """Returns the checkpoint's factors, in rows, of a weight that is prepared."""
        held = self._buffers
        if self.format not in MXFP4: return ops.sf_unswizzle(self.atoms, self.n, self.k).view(self.factor_dtype)
        factors = self._given_by_atoms()
        factors.view(-1)[held["lost_places"]] = held["lost_bytes"]
        return factors.view(self.factor_dtype)

    def _given_by_atoms(self):
        if self.exponents is not None: return _mxfp4.from_prepared(self.atoms, self.exponents, self.n, self.k)
        return _mxfp4.from_nvfp4(self.atoms, self.decode, self.n, self.k)

    @lasting
    def prepare(self):
        """Brings everything into the layout of launches, unless that is done. Memory that a launch has read before
        keeps its address. On the device meta it does nothing."""
        if (self.prepared and not self.stale) or self.device.type == "meta": return self
        if (problem := self._problem()) is not None: raise ValueError(problem)
        self._choose()  # tensors may have come with another device
        for name in (self.names.elements, "bias"): self._buffers[name] = aligned(self._buffers[name])
        for name, tensor in zip(_DERIVED, self._derive()): keep(self, name, tensor)
        factors = self._buffers[self.names.factors]
        if self.format in MXFP4 and factors is not None:
            for name, tensor in zip(_LOST, _mxfp4.lost(factors, self._given_by_atoms())): keep(self, name, tensor)
        self._buffers[self.names.factors] = None
        self.prepared = True
        self.pair["current"] = False
        return self

    def _choose(self):
        """Decides whether an A of 16 bits is quantised, and whether to FP8. With "auto" it is quantised only if the
        tensor cores cannot multiply 16 bits by NVFP4 weights. "fp8" is "auto" on GPUs that have no launch of FP8."""
        capability = torch.cuda.get_device_capability(self.device) if self.device.type == "cuda" else (9, 0)
        self.fp8 = self.a_format == "fp8" and self.format in MXFP4 and capability == (9, 0)
        self.quantises = self.a_format == "nvfp4" or self.fp8 or (self.a_format != "16bit" and capability[0] >= 10)

    def _problem(self):
        """Returns why these weights cannot be multiplied by an A of this a_format, or None."""
        if self.a_format != "fp8" or self.format in MXFP4: return None
        return (f"a_format='fp8': needs weights in MXFP4 ({' or '.join(map(repr, MXFP4))}), and these are "
                f"{self.format!r}")

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
        for name in filter(None, self.names):
            tensor = self._buffers[name]
            if name == self.names.factors and tensor is None: tensor = self._factors_back()
            if name == self.names.elements and self.in_blocks: tensor = tensor.unflatten(-1, (-1, _mxfp4.BLOCK // 2))
            if tensor is not None: destination[prefix + name] = tensor if keep_vars else tensor.detach()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        found = {key[len(prefix):]: tensor for key, tensor in state_dict.items() if key.startswith(prefix)}
        for format, names in FORMATS.items():
            if format != self.format and {names.elements, names.weight_scale or names.factors} <= found.keys():
                self._declare(format, self.device)
        names = self.names
        needed = [name for name in filter(None, names) if name in found or name in names.needed or
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
        if self._problem() is not None: error_msgs.append(f"{prefix}{names.elements}: {self._problem()}")
        if error_msgs: return
        try:
            self.prepare()
        except ValueError as error:
            error_msgs.append(f"{prefix}{names.factors}: {error}")

    @lasting
    def _take(self, name, tensor, assign):
        """Takes over a checkpoint's tensor of this name, or this rank's part of it."""
        if name == self.names.elements:
            self.in_blocks = self._has_blocks(tensor)
            if self.in_blocks: tensor = tensor.flatten(-2)
        part = self._part(name, tensor)
        if not assign and self.device.type == "meta": raise ValueError("the module lies on meta: pass assign=True")
        if name == self.names.factors: self.factor_dtype = tensor.dtype
        old = self._buffers[name]
        if assign and part is tensor: self._buffers[name] = tensor.detach()
        elif assign: self._buffers[name] = part.clone(memory_format=torch.contiguous_format).detach()
        elif old is not None and (old.shape, old.dtype) == (part.shape, part.dtype) and not old.is_inference():
            old.copy_(part)
        else: self._buffers[name] = part.to(self.device, copy=True, memory_format=torch.contiguous_format).detach()

    def _has_blocks(self, tensor):
        """Returns whether elements come as [..., n, k/32, 16], one dimension more than they are held in."""
        dims = 3 if self.experts is None else 4
        return self.format in MXFP4 and tensor.dim() == dims and tensor.shape[-1] == _mxfp4.BLOCK // 2

    def _part(self, name, tensor):
        names, lead = self.names, () if self.experts is None else (self.experts,)
        if name in (names.weight_scale, names.input_scale):
            if tensor.dtype != torch.float32 or tensor.numel() != (self.experts or 1):
                raise ValueError(f"is {tensor.dtype} {list(tensor.shape)}, and must be {self.experts or 1} numbers of "
                                 "torch.float32")
            if tensor.device.type == "cpu": self._check_scale(name, tensor)  # elsewhere it would wait for the device
            return tensor
        divisor = {names.elements: 2, names.factors: self.block}.get(name)
        factor_types = torch.float8_e8m0fnu if self.format in MXFP4 else torch.float8_e4m3fn, torch.uint8
        types = {names.elements: (torch.uint8, torch.int8, torch.float4_e2m1fn_x2),
                 names.factors: factor_types}.get(name, (torch.bfloat16, torch.float16,
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
            if self.format in MXFP4 and self.fp8 != (self.exponents is not None):  # the device takes the other form
                self._buffers[self.names.factors] = self._factors_back()
            self.prepared = False
            self.prepare()
        return self

    # ---- several ranks ----

    def reduced(self, y):
        """Returns y, or the sum of y over the ranks if each has a part of k."""
        if self.parallel == "row" and self.tp_size > 1: torch.distributed.all_reduce(y, group=self.group)
        return y
