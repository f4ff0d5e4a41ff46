"""The modules Linear, GatedMLP and MoE."""
import math

import torch

from .._structures import DTYPE_FP8_E4M3, SCALE_ROW, SCALE_TENSOR
from . import _activations, _layouts
from ._options import check_flags, check_one_of
from ._shared import share_input
from ._weights import Weights, aligned, calls, keep, lasting, ops


def _largest(weight):
    """Returns max|weight|, which is NaN if an element is."""
    return float(torch.linalg.vector_norm(weight.detach(), float("inf")))


def check_finite(name, weight):
    """Checks that no element of a weight is NaN or infinite. On the device meta it has none."""
    if weight.device.type != "meta" and not math.isfinite(_largest(weight)):
        raise ValueError(f"{name}: has an element that is NaN or infinite")


@lasting
def quantize_weight(weight, format="modelopt"):
    """Returns a float weight [n, k] as a checkpoint holds it: {name: tensor}. The global scale is max|weight| / (6 *
    448), as ModelOpt chooses it. A factor is max|element| / 6 over 16 elements, in units of that scale. Factors and
    elements are rounded to nearest, ties to even, as dualgemm_quantize does it. A weight that has an element which is
    NaN or infinite is a ValueError."""
    check_one_of("format", format, _layouts.NVFP4)
    check_finite("weight", weight)
    names = _layouts.FORMATS[format]
    elements, atoms, scales = ops.quantize(aligned(weight.detach().contiguous()), scale_mode=SCALE_TENSOR)
    factors = ops.sf_unswizzle(atoms, *weight.shape).view(torch.float8_e4m3fn)
    scale = scales[1:2].clone() if format in _layouts.ENCODES else scales[2].clone()
    return {names.elements: elements, names.factors: factors, names.weight_scale: scale}


_FAR = 16  # weights have one scale if their largest elements differ by at most this factor


@lasting
def quantize_alike(weights, format="modelopt"):
    """Returns quantize_weight of each of several weights [n, k], with the largest one's scale for all.

    With a weight's own scale, the factor of the block with its largest element is 448. A factor is a normal number of
    E4M3 from 2^-6 on. If the scale is 16 times the weight's own, or less, a block's factor is normal as long as the
    block has an element of at least 1/1792 of the weight's largest one (2^-6 * 16 / 448). So the relative errors of
    these blocks do not grow. Where the largest elements are further apart, each weight has its own scale."""
    largest = [_largest(each) for each in weights]
    if max(largest) > _FAR * min(largest): return [quantize_weight(each, format) for each in weights]
    names, rows = _layouts.FORMATS[format], [len(each) for each in weights]
    whole = quantize_weight(torch.cat([each.detach() for each in weights]), format)
    return [{names.elements: elements, names.factors: factors, names.weight_scale: whole[names.weight_scale].clone()}
            for elements, factors in zip(whole[names.elements].split(rows), whole[names.factors].split(rows))]


def _with_bias(tensors, linear, prefix=""):
    if linear.bias is not None: tensors["bias"] = linear.bias.detach()
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _of_linear(linear, prefix, format):
    return _with_bias(quantize_weight(linear.weight, format), linear, prefix)


def _rows(x, k):
    """Returns x [..., k] as a matrix of 16 bits. Where autocast is on, an x in float32 is cast, as for torch.nn.Linear.
    Other types are refused."""
    if x.dim() == 0: raise ValueError(f"x: has no dimensions, and must have {k} elements in its last one")
    if x.shape[-1] != k: raise ValueError(f"x: has {x.shape[-1]} elements in its last dimension, and must have {k}")
    if x.dtype == torch.float32 and x.device.type != "meta" and torch.is_autocast_enabled(x.device.type):
        x = x.to(torch.get_autocast_dtype(x.device.type))
    if x.dtype not in (torch.bfloat16, torch.float16):
        raise TypeError(f"x: its elements are {x.dtype}, and must be torch.bfloat16 or torch.float16")
    rows = (x if x.dim() == 2 else x.reshape(-1, k)).contiguous()
    return rows if torch.compiler.is_compiling() else aligned(rows)


def _check_beside(x, name, tensor, columns=None):
    """Checks that a tensor has a row, of so many columns, for each row of x. It may be a matrix of all these rows."""
    if tensor.dim() > 0 and columns in (None, tensor.shape[-1]):
        if tensor.shape[:-1] in (x.shape[:-1], (x.numel() // x.shape[-1],)): return
    wanted = [*map(str, x.shape[:-1]), "top_k" if columns is None else str(columns)]
    raise ValueError(f"{name}: is {list(tensor.shape)}, and must be [{', '.join(wanted)}]")


def _quantise(x, encode, fp8, **rows):
    """Returns A, its factors and a scale for each row of A. `encode` is the checkpoint's encode scale for A: with it
    there are no scales of rows, and the last is None. FP8 has no factors, and they are None. The operator makes three
    results, which costs it less than torch_op.direct."""
    if fp8: rows["q_dtype"] = DTYPE_FP8_E4M3
    if encode is None: a, sfa, scales = ops.quantize(x, scale_mode=SCALE_ROW, **rows)
    else: (a, sfa, _), scales = ops.quantize(x, 1.0, encode, **rows), None
    return a, None if fp8 else sfa, scales


class Linear(Weights):
    """y = activation(x W^T + bias) with W [out_features, in_features] in NVFP4 or MXFP4, in place of torch.nn.Linear.

    Tensors are the checkpoint's, by its names (`format`: "modelopt" or "compressed-tensors", of MXFP4 "gpt-oss" or
    "deepseek"; load_state_dict finds it). `a_format`: "16bit" leaves x as it is, which needs compute capability 9.0 (or
    a CPU); "nvfp4" quantises it, by the checkpoint's input scale, or where it has none by a scale for each row; "auto"
    does so on 10.x alone. "fp8" is for MXFP4: on 9.0 it quantises x likewise, to FP8, elsewhere it is "auto".
    MXFP4 becomes NVFP4 for any other A, which loses nothing. `activation`
    is one of silu, gelu, gelu_pytorch_tanh, relu, relu2 or None. `parallel`, `tp_rank`, `tp_size`, `group`: this rank
    has a part of the rows ("column") or of the columns ("row": forward takes its columns of x, and adds up the ranks'
    results; it can have no activation, which would see a part of the sum). `flags` are those of a launch, as
    FLAG_BATCH_INVARIANT. out_features are multiples of 8, in_features of 32, of each rank."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, *, activation=None, flags=0,
                 **options):
        check_flags(flags)
        super().__init__(out_features, in_features, bias=bias, device=device, dtype=dtype, **options)
        self.activation, self.flags = _activations.number(activation, _activations.ALONE), flags
        if self.parallel == "row" and self.tp_size > 1 and self.activation != _activations.ALONE[None]:
            raise ValueError(f"activation={activation!r}: is not possible with parallel='row', where each launch has a "
                             "part of the sum: apply it to what forward returns")
        self.shared, self.place = None, 0  # share_input sets them

    @property
    def in_features(self):
        return self.k

    @property
    def out_features(self):
        return self.n

    def extra_repr(self):
        return f"in_features={self.k}, out_features={self.n}, bias={self.bias is not None}, format={self.format!r}"

    def prepare(self):
        super().prepare()
        if self.shared is not None: self.shared.join()
        return self

    def forward(self, x):
        y = None if self.shared is None else self.shared.result(self, x)
        return self.launch(x, self.operands()) if y is None else y

    def launch(self, x, w):
        a = _rows(x, self.k)
        if self.quantises: operands, alpha = _quantise(a, w.encode_a, self.fp8), w.alpha
        else: operands, alpha = (a, None, None), w.decode
        y = self.product(operands, w, alpha, a.dtype)
        return y if x.dim() == 2 else y.reshape(*x.shape[:-1], y.shape[-1])

    def product(self, operands, w, alpha, dtype):
        a, sfa, a_row_scale = operands
        y = calls().linear(a, w.elements, sfa, w.atoms, 1.0, dtype, alpha, a_row_scale=a_row_scale, bias=w.bias,
                           b_row_exponent=w.exponents, activation=self.activation, flags=self.flags)
        return self.reduced(y)

    @classmethod
    def _like(cls, linear, options):
        return cls(linear.in_features, linear.out_features, linear.bias is not None, "meta", linear.weight.dtype,
                   **options)

    @classmethod
    def from_float(cls, linear, **options):
        """Returns the same layer as a torch.nn.Linear, on its device, with its weight quantised (quantize_weight)."""
        module = cls._like(linear, options)
        if linear.weight.device.type != "meta":
            module.load_state_dict(_of_linear(linear, "", module.format), assign=True)
        return module

    @classmethod
    def from_floats(cls, linears, **options):
        """Returns replacements of several torch.nn.Linear that are called with one x, in this order. They share one
        launch (share_input). Their weights have one scale, if that loses nothing (quantize_alike)."""
        modules = [cls._like(linear, options) for linear in linears]
        share_input(*modules)
        if linears[0].weight.device.type != "meta":
            quantised = quantize_alike([linear.weight for linear in linears], modules[0].format)
            for module, linear, tensors in zip(modules, linears, quantised):
                module.load_state_dict(_with_bias(tensors, linear), assign=True)
        return modules


_SCALES = ("encode_a", "alpha_gate", "alpha_up")  # buffers of a _Gated whose A is quantised


def _prepare(module, _):
    """Prepares a _Gated at the end of load_state_dict, which calls this. If tensors of a weight were refused, it
    prepares nothing, and load_state_dict says why."""
    if all(weights.prepared for weights in (module.gate_proj, module.up_proj, module.down_proj)): module.prepare()


class _Gated(torch.nn.Module):
    """What a gated MLP and a layer of experts have in common: three weights, two launches."""

    def __init__(self, hidden, intermediate, experts, weights, activation, rows, flags, parameters):
        super().__init__()
        check_one_of("rows", rows, _layouts.ROWS)
        check_flags(flags)
        for name in parameters:
            if name not in _activations.PARAMETERS: raise TypeError(f"{name}: is no argument, nor one of an activation")
        self.hidden, self.intermediate, self.experts = hidden, intermediate, experts
        self.activation = _activations.number(activation, _activations.GATED)
        self.flags, self.numbers, self.rows, self.layout = flags, parameters, rows, None
        self.gate_proj, self.up_proj = (weights(intermediate, hidden, "column") for _ in range(2))
        self.down_proj = weights(hidden, intermediate, "row")
        self.pair = self.gate_proj.pair = self.up_proj.pair = {"current": False}
        for name in _SCALES: self.register_buffer(name, None, persistent=False)
        self.register_load_state_dict_post_hook(_prepare)

    # ---- scales ----

    @property
    def scale_ratio(self):
        """Returns the largest ratio between the global scales of gate and up: 1 if they are equal. An engine with one
        scale for both loses accuracy if they differ. Here each product has its own scale, and nothing is lost."""
        gate, up = (weights.operands().decode for weights in (self.gate_proj, self.up_proj))
        return float(torch.maximum(gate / up, up / gate).max())

    @lasting
    def prepare(self):
        """Brings everything into the layout of launches now. Loading and the first forward call it, too."""
        for weights in (self.gate_proj, self.up_proj, self.down_proj): weights.prepare()
        if self.gate_proj.prepared and self.up_proj.prepared and not self.pair["current"]:
            scales = self._scales(self.gate_proj.operands(), self.up_proj.operands())
            for name, tensor in zip(_SCALES, scales): keep(self, name, tensor)
            self.pair["current"] = True
        return self

    @staticmethod
    def _scales(gate, up):
        """Returns the scale that A is quantised with, None if the checkpoint has none, and the two alphas. Gate and up
        share A, so both take the larger one of their input scales. An element that saturates with it would saturate
        with either scale."""
        if gate.encode_a is None or up.encode_a is None: return None, gate.decode.clone(), up.decode.clone()
        decode_a = torch.maximum(gate.decode_a, up.decode_a)
        return torch.minimum(gate.encode_a, up.encode_a), gate.decode * decode_a, up.decode * decode_a

    def _operands(self):
        """Returns the operands of gate, of up and of down, and a tuple of A's scale and the two alphas."""
        current, stale = self.pair["current"], self.gate_proj.stale or self.up_proj.stale
        if not (current and self.down_proj.prepared or stale or torch.compiler.is_compiling()):
            current = self.prepare().pair["current"]
        gate, up, down = (weights.operands() for weights in (self.gate_proj, self.up_proj, self.down_proj))
        if not self.gate_proj.quantises: return gate, up, down, (None, gate.decode, up.decode)
        if stale or not current: return gate, up, down, self._scales(gate, up)
        return gate, up, down, (self.encode_a, self.alpha_gate, self.alpha_up)

    @lasting
    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.pair["current"] = False  # the type may be another one
        if self.gate_proj.prepared: self.prepare()
        return self

    # ---- the two launches ----

    def _both(self, x, groups=None, row_token=None):
        """Launches gate, up and their activation. Returns what the caller launches down with: the new A with its
        factors and row factors, the operands of down, and the alpha. The new A has as many rows as that of this
        launch."""
        call = calls()
        gate, up, down, (encode, alpha_gate, alpha_up) = self._operands()
        fp8, rows = self.gate_proj.fp8, dict(group_rows=groups, flags=self.flags)
        launch = dict(bias1=gate.bias, bias2=up.bias, b1_row_exponent=gate.exponents, b2_row_exponent=up.exponents,
                      activation=self.activation, **rows, **self.numbers)
        if self.gate_proj.quantises:
            a, sfa, a_scale = _quantise(x, encode, fp8, row_index=row_token, group_rows=groups)
        else: a, sfa, a_scale = x if row_token is None else call.moe_gather(x, row_token), None, None
        operands = a, gate.elements, up.elements, sfa, gate.atoms, up.atoms, 1.0, 1.0
        if not self.gate_proj.quantises:
            return (call.swiglu(*operands, x.dtype, alpha_gate, alpha_up, **launch), None, None), down, down.decode
        if fp8 and down.encode_a is not None:
            h = call.swiglu(*operands, torch.float8_e4m3fn, alpha_gate, alpha_up, a_row_scale=a_scale,
                            c_global_scale_dev=down.encode_a, **launch)
            return (h, None, None), down, down.alpha
        if down.encode_a is not None:
            h = call.swiglu_nvfp4(*operands, alpha_gate, alpha_up, a_row_scale=a_scale,
                                  c_global_scale_dev=down.encode_a, **launch)
            return (*h, None), down, down.alpha
        h = call.swiglu(*operands, x.dtype, alpha_gate, alpha_up, a_row_scale=a_scale, **launch)
        return _quantise(h, None, fp8, group_rows=groups), down, down.decode

    # ---- state_dict ----

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        held = super().state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        prefix = args[1] if len(args) > 1 else prefix
        if self.layout is not None: _layouts.write(held, prefix, self.experts, self.layout)
        return held

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        self.layout = _layouts.read(state_dict, prefix, self.experts, self.rows, missing_keys,
                                    error_msgs) or self.layout
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


def _drop_biases(module, source):
    """Drops the biases of those linears that have none in the float module."""
    for name in _layouts.MODULES:
        if getattr(source, name).bias is None: getattr(module, name).bias = None


class GatedMLP(_Gated):
    """y = W_down (activation(W_gate x) * (W_up x)), the MLP of Llama, Qwen, Gemma and others, in two launches.

    load_state_dict takes gate_proj, up_proj and down_proj (w1, w3, w2), or gate_up_proj (w13), whose `rows` are
    "stacked", gate's before up's, or "interleaved"; state_dict returns what was loaded. Gate and up keep their own
    global scales. `activation` is one of silu, gelu, gelu_pytorch_tanh, relu, sigmoid, swiglu_step, situ; `parameters`
    are swiglu_alpha, swiglu_beta, swiglu_limit, situ_gate, situ_up. `tp_rank`, `tp_size`, `group`: this rank has a part
    of gate's and up's rows and of down's columns, and forward adds up the ranks' results. `format`, `a_format`, `flags`
    are those of Linear."""

    def __init__(self, hidden, intermediate, activation="silu", bias=False, device=None, dtype=None, *,
                 format="modelopt", a_format="auto", rows="stacked", tp_rank=0, tp_size=1, group=None, flags=0,
                 **parameters):
        def weights(n, k, parallel):
            return Linear(k, n, bias, device, dtype, format=format, a_format=a_format, parallel=parallel,
                          tp_rank=tp_rank, tp_size=tp_size, group=group, flags=flags)
        super().__init__(hidden, intermediate, None, weights, activation, rows, flags, parameters)

    def forward(self, x):
        operands, down, alpha = self._both(rows := _rows(x, self.hidden))
        return self.down_proj.product(operands, down, alpha, rows.dtype).reshape(x.shape)

    @classmethod
    def from_float(cls, mlp, activation=None, **options):
        """Returns the same layer as a module with gate_proj, up_proj and down_proj, with its weights quantised
        (quantize_weight). Without `activation` it takes the module's act_fn."""
        gate, down = mlp.gate_proj, mlp.down_proj
        module = cls(gate.in_features, gate.out_features, activation or _activations.name_of(mlp.act_fn), True, "meta",
                     gate.weight.dtype, **options)
        _drop_biases(module, mlp)
        tensors = {}
        for name in _layouts.MODULES:
            tensors.update(_of_linear(getattr(mlp, name), f"{name}.", module.down_proj.format))
        if down.weight.device.type != "meta": module.load_state_dict(tensors, assign=True)
        return module


_EXPERTS = 1024  # as many as moe_permute takes
_IDS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class MoE(_Gated):
    """Experts, each of which computes a GatedMLP. Each token gets the weighted sum of its `top_k` experts, by two
    launches for all experts.

    load_state_dict takes each expert's tensors (experts.3.gate_proj.weight, ...), or stacks of them (w13_weight,
    w2_weight, ...; experts.gate_up_proj, ...), and state_dict returns what was loaded. forward routes by softmax; other
    routers call apply_experts. The other arguments are those of GatedMLP."""

    def __init__(self, hidden, intermediate, experts, top_k, activation="silu", bias=False, device=None, dtype=None, *,
                 renormalize=True, format="modelopt", a_format="auto", rows="stacked", tp_rank=0, tp_size=1, group=None,
                 flags=0, **parameters):
        if not 0 < experts <= _EXPERTS: raise ValueError(f"experts={experts}: must be 1 to {_EXPERTS}")
        if not 0 < top_k <= experts: raise ValueError(f"top_k={top_k}: must be 1 to experts = {experts}")

        def weights(n, k, parallel):
            return Weights(n, k, experts, bias=bias, format=format, a_format=a_format, parallel=parallel,
                           tp_rank=tp_rank, tp_size=tp_size, group=group, device=device, dtype=dtype)
        super().__init__(hidden, intermediate, experts, weights, activation, rows, flags, parameters)
        self.top_k, self.renormalize = top_k, renormalize

    def forward(self, x, router_logits):
        """Returns the weighted sum of each token's experts, of x [..., hidden] and router_logits [..., experts]. A
        token goes to the top_k experts with the largest logits. Their weights come from the softmax of all logits; with
        `renormalize` they are scaled to add up to 1."""
        _check_beside(x, "router_logits", router_logits, self.experts)
        weights, ids = router_logits.float().softmax(-1).topk(self.top_k, -1)
        if self.renormalize: weights = weights / weights.sum(-1, keepdim=True)
        return self.apply_experts(x, ids.int(), weights)

    def apply_experts(self, x, topk_ids, topk_weights):
        """Returns the weighted sum of each token's experts, of x [..., hidden], and topk_ids and topk_weights
        [..., top_k]. An id outside of 0 to experts - 1 adds nothing."""
        _check_beside(x, "topk_ids", topk_ids)
        _check_beside(x, "topk_weights", topk_weights, topk_ids.shape[-1])
        if topk_ids.dtype not in _IDS:
            raise TypeError(f"topk_ids: its elements are {topk_ids.dtype}, and must be {' or '.join(map(str, _IDS))}")
        call, rows, choices = calls(), _rows(x, self.hidden), topk_ids.shape[-1]
        if choices == 0: raise ValueError("topk_ids: names no experts: its last dimension is 0")
        if topk_ids.dtype == torch.int64: topk_ids = topk_ids.clamp(-1, self.experts)  # 32 bits hold what this returns
        groups, row_token, token_row, _ = call.moe_permute(topk_ids.reshape(-1, choices).int().contiguous(), None,
                                                           self.experts)
        (a, sfa, a_scale), down, alpha = self._both(rows, groups, row_token)
        y = call.linear(a, down.elements, sfa, down.atoms, 1.0, rows.dtype, alpha, a_row_scale=a_scale, bias=down.bias,
                        b_row_exponent=down.exponents, group_rows=groups, flags=self.flags)
        weights = topk_weights.reshape(-1, choices).float().contiguous()
        return self.down_proj.reduced(call.moe_combine(y, token_row, topk_weights=weights)).reshape(x.shape)

    @classmethod
    def from_float(cls, experts, top_k, activation=None, **options):
        """Returns the same layer as a list of modules with gate_proj, up_proj and down_proj, one for each expert, with
        their weights quantised. Without `activation` it takes the first module's act_fn."""
        gate, down = experts[0].gate_proj, experts[0].down_proj
        module = cls(gate.in_features, gate.out_features, len(experts), top_k,
                     activation or _activations.name_of(experts[0].act_fn), True, "meta", gate.weight.dtype, **options)
        _drop_biases(module, experts[0])
        tensors = {}
        for e, expert in enumerate(experts):
            for name in _layouts.MODULES:
                tensors.update(_of_linear(getattr(expert, name), f"experts.{e}.{name}.", module.down_proj.format))
        if down.weight.device.type != "meta": module.load_state_dict(tensors, assign=True)
        return module
