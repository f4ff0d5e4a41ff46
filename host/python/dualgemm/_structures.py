"""The structures and numbers of dualgemm.h, which is their documentation. A test compares them with the header."""
import ctypes
from ctypes import c_char, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_void_p

STATUS_SUCCESS = 0

DTYPE_BF16, DTYPE_FP16, DTYPE_FP32, DTYPE_NVFP4, DTYPE_FP8_E4M3, DTYPE_MXFP4 = range(6)

(ACTIVATION_SWIGLU, ACTIVATION_GEGLU_TANH, ACTIVATION_GEGLU_ERF, ACTIVATION_REGLU, ACTIVATION_GLU,
 ACTIVATION_SWIGLU_STEP, ACTIVATION_SITU) = range(7)
(LINEAR_ACTIVATION_NONE, LINEAR_ACTIVATION_SILU, LINEAR_ACTIVATION_GELU_TANH, LINEAR_ACTIVATION_GELU_ERF,
 LINEAR_ACTIVATION_RELU, LINEAR_ACTIVATION_RELU2) = range(6)

(FLAG_PDL, FLAG_STATIC_WEIGHTS, FLAG_BATCH_INVARIANT, FLAG_CHECK_POINTERS, FLAG_EXACT_ACT,
 FLAG_NO_FALLBACK) = (1 << i for i in range(6))

GROUP_NONE, GROUP_OFFSETS, GROUP_MASKED = range(3)
SCALE_GIVEN, SCALE_TENSOR, SCALE_ROW = range(3)
ROWS_STACKED, ROWS_INTERLEAVED = range(2)


def _fields(kind, names):
    return [(name, kind) for name in names.split()]


class Structure(ctypes.Structure):
    """A structure of the header, whose first field is its size. `views` hold the objects in whose memory its pointers
    lead."""
    views = {}

    def __repr__(self):
        values = (f"{name}={getattr(self, name)!r}" for name, _ in self._fields_)
        return f"{type(self).__name__}({', '.join(values)})"


class Args(Structure):
    """dualgemm_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "m n k batch"),
        *_fields(c_void_p, "a b1 b2 sfa sfb1 sfb2 c sfc"),
        *_fields(c_int64, "lda ldb1 ldb2 ldc batch_stride_a batch_stride_b1 batch_stride_b2 batch_stride_c "
                          "batch_stride_sfa batch_stride_sfb1 batch_stride_sfb2 batch_stride_sfc"),
        *_fields(c_float, "alpha1 alpha2"),
        *_fields(c_void_p, "alpha1_dev alpha2_dev a_row_scale bias1 bias2 c_row_scale"),
        ("c_global_scale", c_float), ("activation", c_int32), ("c_global_scale_dev", c_void_p),
        *_fields(c_float, "swiglu_alpha swiglu_beta swiglu_limit situ_gate situ_up"),
        *_fields(c_int32, "c_dtype bias_dtype reserved2"),
        *_fields(c_void_p, "amax_out d1 d2"),
        *_fields(c_int64, "ldd1 ldd2 batch_stride_d1 batch_stride_d2"),
        *_fields(c_int32, "d_dtype instance_id max_sms reserved0"),
        ("workspace", c_void_p), ("workspace_size", c_size_t),
        *_fields(c_int32, "group_mode groups"),
        ("group_rows", c_void_p),
        *_fields(c_int32, "expected_rows alpha_stride c_global_scale_stride reserved1"),
        *_fields(c_int64, "bias_stride batch_stride_a_row_scale batch_stride_c_row_scale"),
        *_fields(c_int32, "a_dtype reserved3 products linear_activation"),
        ("c_add", c_void_p),
        *_fields(c_int64, "ld_c_add batch_stride_c_add"),
        *_fields(c_int32, "b_dtype reserved4"),
        *_fields(c_void_p, "b1_row_exponent b2_row_exponent"),
        ("batch_stride_b_row_exponent", c_int64),
    ]


class Device(Structure):
    """dualgemm_device_t"""
    _fields_ = [
        ("struct_size", c_uint32),
        *_fields(c_int32, "cc_major cc_minor sm_count driver_version ordinal"),
        ("name", c_char * 68),
        *_fields(c_int32, "clusters_of_2 clusters_of_4 memory_gb_s"),
    ]


class InstanceInfo(Structure):
    """dualgemm_instance_info_t"""
    _fields_ = [
        ("struct_size", c_uint32), ("c_dtype", c_int32), ("name", c_char_p),
        *_fields(c_int32, "cta_group tile_m tile_n tile_k stages acc_stages mma_n mmas_per_step split_k threads "
                          "smem_bytes tmem_columns scale_stages scale_k_tiles grouped overlapped general cc_major "
                          "a_dtype reserved0 products stream_k"),
    ]


class SfArgs(Structure):
    """dualgemm_sf_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "rows k batch group_mode groups reserved0"),
        *_fields(c_void_p, "group_rows src dst"),
        *_fields(c_int64, "pitch batch_stride_src batch_stride_dst"),
    ]


class QuantizeArgs(Structure):
    """dualgemm_quantize_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "rows k batch group_mode groups x_dtype"),
        *_fields(c_void_p, "group_rows x q sf"),
        *_fields(c_int64, "ldx ldq batch_stride_x batch_stride_q batch_stride_sf"),
        ("scale_mode", c_int32), ("global_scale", c_float), ("global_scale_dev", c_void_p),
        ("global_scale_stride", c_int64),
        *_fields(c_void_p, "tensor_scales row_scale"),
        ("batch_stride_row_scale", c_int64), ("row_index", c_void_p),
        *_fields(c_int32, "x_rows reserved0 q_dtype reserved1"),
    ]


class PrepareMxfp4Args(Structure):
    """dualgemm_prepare_mxfp4_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "rows k batch reserved0"),
        *_fields(c_void_p, "q scales sf row_exponent counts"),
        *_fields(c_int64, "ldq pitch batch_stride_q batch_stride_scales batch_stride_sf batch_stride_row_exponent"),
    ]


class MoePermuteArgs(Structure):
    """dualgemm_moe_permute_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "tokens top_k experts reserved0"),
        *_fields(c_void_p, "topk_ids topk_weights group_rows row_token token_row row_weight"),
    ]


class MoeGatherArgs(Structure):
    """dualgemm_moe_gather_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "rows k x_rows x_dtype"),
        *_fields(c_void_p, "row_index x out"),
        *_fields(c_int64, "ldx ld_out"),
    ]


class MoeCombineArgs(Structure):
    """dualgemm_moe_combine_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "tokens top_k n c_dtype out_dtype reserved0"),
        *_fields(c_void_p, "token_row c add out"),
        *_fields(c_int64, "ldc ld_add ld_out"),
        ("topk_weights", c_void_p),
    ]


class PrepareMxfp4Args(Structure):
    """dualgemm_prepare_mxfp4_args_t"""
    _fields_ = [
        *_fields(c_uint32, "struct_size flags"),
        *_fields(c_int32, "rows k batch reserved0"),
        *_fields(c_void_p, "q scales sf row_exponent counts"),
        *_fields(c_int64, "ldq pitch batch_stride_q batch_stride_scales batch_stride_sf batch_stride_row_exponent"),
    ]


class TuningInfo(Structure):
    """dualgemm_tuning_info_t"""
    _fields_ = [
        ("struct_size", c_uint32),
        *_fields(c_int32, "entries status from_environment"),
        ("library", c_char_p), ("path", c_char * 512), ("message", c_char * 1024),
    ]
