"""The rules for every tensor of a structure, which dualgemm.h says in words: its element, and where its bytes lie."""
from typing import NamedTuple, Optional, Union

from ._structures import DTYPE_MXFP4, DTYPE_NVFP4, GROUP_OFFSETS
from ._tensors import ELEMENTS

E2M1, UE4M3, E8M0 = "float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu"
FP32, FP64, INT16, INT32, UINT32 = "float32", "float64", "int16", "int32", "uint32"
_BYTES = ("uint8", "int8")  # of any meaning
_BITS = {E2M1: 4, UE4M3: 8, E8M0: 8, "bfloat16": 16, "float16": 16, FP32: 32, FP64: 64, INT16: 16, INT32: 32,
         UINT32: 32}
_FACTORS = {DTYPE_NVFP4: UE4M3, DTYPE_MXFP4: E8M0}  # the element of the factors of a type

# How many tensors there are. EACH: one for each problem of a batch, or each group. BY_ROW: the same, but with OFFSETS a
# single one, in which the rows of all groups follow each other. SHARED: one for all, or with a stride one for each.
EACH, BY_ROW, SHARED = range(3)
ATOMS = object()  # in the place of a pitch: the rows lie in 128x4 atoms
PERMUTED = {"group_rows", "row_token", "token_row", "row_weight"}  # what dualgemm_moe_permute writes
OUTPUTS = {"out", "sfc", "d1", "d2", "amax_out", "workspace", "y", "dst", "q", "sf", "tensor_scales", "row_scale"}
PREPARED = {"sf", "row_exponent", "counts"}  # what dualgemm_prepare_mxfp4 writes


class Tensor(NamedTuple):
    """A tensor has `rows` rows of `columns` elements. An extent is a number, a field, or computed from the
    structure."""
    element: Optional[str]  # the name of its type, or the field that says the type; None: any
    rows: Union[str, int]
    columns: object
    count: int = SHARED
    pitch: object = None  # the field for it; None: rows follow each other
    stride: Optional[str] = None  # the field for it; None: problems follow each other
    per: int = 1  # how many of `columns` one element stands for
    factors: bool = False  # the field says the type that the elements are factors of

    @property
    def dtype_field(self):
        return self.element if str(self.element).endswith("_dtype") else None

    def wanted(self, args):
        """Returns the name of its element. None stands for any, or for a type that the library refuses."""
        if not self.dtype_field: return self.element
        number = getattr(args, self.dtype_field)
        if self.factors: return _FACTORS.get(number)
        return ELEMENTS[number] if 0 <= number < len(ELEMENTS) else None

    def said(self, view):
        """Returns the number that a tensor's element says for the field, or None."""
        if not self.factors: return view.dtype
        return next((number for number, element in _FACTORS.items() if element == view.element), None)

    def takes(self, args, element):
        """Returns whether its elements may be these; None is an element that is not known."""
        wanted = self.wanted(args)
        return wanted is None or element in (wanted, None, *_BYTES)

    def bits(self, args):
        return _BITS.get(self.wanted(args), 8)

    def size(self, args, sf_size_of):
        """Returns the bytes from its first element to its last. With OFFSETS only the device knows how many blocks of
        factors there are, so their largest possible number counts."""
        rows, columns = (x(args) if callable(x) else getattr(args, x) if isinstance(x, str) else x
                         for x in (self.rows, self.columns))
        if rows <= 0 or columns <= 0: return 0
        follow = self.count == BY_ROW and args.group_mode == GROUP_OFFSETS
        groups = getattr(args, "groups", 0)
        stride = getattr(args, self.stride) if self.stride else 0
        if self.pitch is ATOMS:
            format = DTYPE_MXFP4 if self.wanted(args) == E8M0 else DTYPE_NVFP4
            blocks = (rows + 127 * (min(groups, rows) if follow else 1)) // 128
            one = compact = blocks * sf_size_of(format, 128, columns)
        else:
            columns //= self.per
            pitch = self.pitch and getattr(args, self.pitch) or columns
            one, compact = (rows - 1) * pitch + columns, rows * pitch
        alone = follow or self.count == SHARED and stride == 0
        problems = 1 if alone else max(args.batch, groups, 1)
        return -(-((problems - 1) * (stride or compact) + one) * self.bits(args) // 8)


def _group_rows(args):
    return args.groups + (args.group_mode == GROUP_OFFSETS)


# Keys are the names that arguments have in Python: `out` is the field c.
ARGS = {
    "a": Tensor("a_dtype", "m", "k", BY_ROW, "lda", "batch_stride_a"),
    "b1": Tensor(E2M1, "n", "k", EACH, "ldb1", "batch_stride_b1"),
    "b2": Tensor(E2M1, "n", "k", EACH, "ldb2", "batch_stride_b2"),
    "sfa": Tensor(UE4M3, "m", "k", BY_ROW, ATOMS, "batch_stride_sfa"),
    "sfb1": Tensor("b_dtype", "n", "k", EACH, ATOMS, "batch_stride_sfb1", factors=True),
    "sfb2": Tensor("b_dtype", "n", "k", EACH, ATOMS, "batch_stride_sfb2", factors=True),
    "b1_row_exponent": Tensor(INT16, 1, "n", EACH, None, "batch_stride_b_row_exponent"),
    "b2_row_exponent": Tensor(INT16, 1, "n", EACH, None, "batch_stride_b_row_exponent"),
    "out": Tensor("c_dtype", "m", "n", BY_ROW, "ldc", "batch_stride_c"),
    "c_add": Tensor("c_dtype", "m", "n", BY_ROW, "ld_c_add", "batch_stride_c_add"),
    "d1": Tensor("d_dtype", "m", "n", BY_ROW, "ldd1", "batch_stride_d1"),
    "d2": Tensor("d_dtype", "m", "n", BY_ROW, "ldd2", "batch_stride_d2"),
    "sfc": Tensor(UE4M3, "m", "n", BY_ROW, ATOMS, "batch_stride_sfc"),
    "alpha1_dev": Tensor(FP32, 1, 1, SHARED, None, "alpha_stride"),
    "alpha2_dev": Tensor(FP32, 1, 1, SHARED, None, "alpha_stride"),
    "bias1": Tensor("bias_dtype", 1, "n", SHARED, None, "bias_stride"),
    "bias2": Tensor("bias_dtype", 1, "n", SHARED, None, "bias_stride"),
    "a_row_scale": Tensor(FP32, 1, "m", BY_ROW, None, "batch_stride_a_row_scale"),
    "c_row_scale": Tensor(FP32, 1, "m", BY_ROW, None, "batch_stride_c_row_scale"),
    "c_global_scale_dev": Tensor(FP32, 1, 1, SHARED, None, "c_global_scale_stride"),
    "amax_out": Tensor(FP32, 1, 1),
    "group_rows": Tensor(INT32, 1, _group_rows),
    "workspace": Tensor(None, 1, "workspace_size"),
}
Y = Tensor(FP64, "m", "n", BY_ROW)  # dualgemm_reference_host takes it beside its structure
QUANTIZE = {
    "x": Tensor("x_dtype", "rows", "k", BY_ROW, "ldx", "batch_stride_x"),
    "q": Tensor("q_dtype", "rows", "k", BY_ROW, "ldq", "batch_stride_q"),
    "sf": Tensor(UE4M3, "rows", "k", BY_ROW, ATOMS, "batch_stride_sf"),
    "global_scale_dev": Tensor(FP32, 1, 1, SHARED, None, "global_scale_stride"),
    "tensor_scales": Tensor(FP32, 1, 3),
    "row_scale": Tensor(FP32, 1, "rows", BY_ROW, None, "batch_stride_row_scale"),
    "group_rows": Tensor(INT32, 1, _group_rows),
}
# The tensors of dualgemm_quantize if a row_index says which rows of x are quantised.
GATHER = {**QUANTIZE, "x": Tensor("x_dtype", "x_rows", "k", BY_ROW, "ldx"), "row_index": Tensor(INT32, 1, "rows")}


PREPARE_MXFP4 = {
    "q": Tensor(E2M1, "rows", "k", EACH, "ldq", "batch_stride_q"),
    "scales": Tensor(E8M0, "rows", "k", EACH, "pitch", "batch_stride_scales", 32),
    "sf": Tensor(E8M0, "rows", "k", EACH, ATOMS, "batch_stride_sf"),
    "row_exponent": Tensor(INT16, 1, "rows", EACH, None, "batch_stride_row_exponent"),
    "counts": Tensor(UINT32, 1, 4),
}


def _choices(args):
    return args.tokens * args.top_k


PERMUTE = {
    "topk_ids": Tensor(INT32, "tokens", "top_k"),
    "topk_weights": Tensor(FP32, "tokens", "top_k"),
    "group_rows": Tensor(INT32, 1, lambda args: args.experts + 1),
    "row_token": Tensor(INT32, 1, _choices),
    "token_row": Tensor(INT32, "tokens", "top_k"),
    "row_weight": Tensor(FP32, 1, _choices),
}
ROWS_BY_INDEX = {
    "row_index": Tensor(INT32, 1, "rows"),
    "x": Tensor("x_dtype", "x_rows", "k", SHARED, "ldx"),
    "out": Tensor("x_dtype", "rows", "k", SHARED, "ld_out"),
}
COMBINE = {
    "token_row": Tensor(INT32, "tokens", "top_k"),
    "topk_weights": Tensor(FP32, "tokens", "top_k"),
    "c": Tensor("c_dtype", _choices, "n", SHARED, "ldc"),
    "add": Tensor("out_dtype", "tokens", "n", SHARED, "ld_add"),
    "out": Tensor("out_dtype", "tokens", "n", SHARED, "ld_out"),
}


def _conversion(linear, atoms):
    return {linear: Tensor(UE4M3, "rows", "k", BY_ROW, "pitch", f"batch_stride_{linear}", 16),
            atoms: Tensor(UE4M3, "rows", "k", BY_ROW, ATOMS, f"batch_stride_{atoms}"),
            "group_rows": Tensor(INT32, 1, _group_rows)}


SWIZZLE, UNSWIZZLE = _conversion("src", "dst"), _conversion("dst", "src")
