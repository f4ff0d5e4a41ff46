/* dualgemm.h -- the public interface of libdualgemm: C99, no CUDA header needed.
 *
 *     C = silu(alpha1 * A * B1^T) * (alpha2 * A * B2^T)      elementwise product of two GEMMs, in one kernel
 *
 *     g = alpha1 * A * B1^T     the gate, it goes through silu(g) = g / (1 + exp(-g))  ("gate_proj", "w1")
 *     u = alpha2 * A * B2^T     the value, it stays linear                             ("up_proj",   "w3")
 *
 * B1 and B2 are two plain tensors; nothing is interleaved or repacked. Swapping them changes the result.
 *
 * A [M, K], B1 and B2 [N, K] are NVFP4 (E2M1, one UE4M3 factor per 16 elements along K); on Hopper A may be
 * BF16 or FP16, too, and B1 and B2 may be MXFP4 (E2M1, one E8M0 factor per 32) with an A in FP8 E4M3. C [M, N]
 * is BF16, FP16, FP32, FP8 E4M3 or NVFP4 again; all are row-major. A launch may ask for other activations than
 * silu, and for factors of rows, biases and more. host/README.md lists the pages of the manual: formulas,
 * drawings of layouts, batches and groups, the promise of every flag. Here each function and field says what it
 * takes.
 *
 * A launch may also compute only one product, C = f(alpha1 * A * B1^T), for every other linear layer. On
 * Hopper, where it has a workspace and many rows, a kernel in front of the one that multiplies prepares A.
 *
 * For all functions: pointers in argument structures are device pointers unless the comment says "host";
 * nothing is allocated or synchronised; several threads may call at once. A function that returns another
 * status than SUCCESS leaves every output untouched (except the bytes that dualgemm_try_launch answers), and
 * dualgemm_last_error() then names the argument and its value. (Where one call does several things on the
 * device, and CUDA refuses a later one, the earlier ones are done.)
 *
 * 0.2.0 is the first release whose structures stay: it may break programs of 0.1, later releases break none
 * of 0.2. A structure begins with its size, which its initialiser sets; later releases append fields. A field
 * that an older program does not know keeps its default. A field that this library does not know is refused
 * if a newer program sets it. A structure that the library fills is written up to the size that the caller's
 * structure has. A size below that of 0.2.0, or above 4,096, is VERSION_MISMATCH.
 *
 * Whoever comes with a checkpoint begins at "from a checkpoint to a launch" below.
 */
#ifndef DUALGEMM_H
#define DUALGEMM_H

/* Columns and tables are laid out by hand. */
/* clang-format off */

#include <stddef.h>
#include <stdint.h>

/* This release; between two releases the earlier one, which does not tell what is there of the coming one. As
 * one number 10000 major + 100 minor + patch. */
#define DUALGEMM_VERSION_MAJOR 0
#define DUALGEMM_VERSION_MINOR 2
#define DUALGEMM_VERSION_PATCH 0
#define DUALGEMM_VERSION \
  (DUALGEMM_VERSION_MAJOR * 10000 + DUALGEMM_VERSION_MINOR * 100 + DUALGEMM_VERSION_PATCH)

#if defined(__GNUC__)
#define DUALGEMM_API __attribute__((visibility("default")))
#else
#define DUALGEMM_API
#endif

#ifdef __cplusplus
#define DUALGEMM_NOEXCEPT noexcept
extern "C" {
#else
#define DUALGEMM_NOEXCEPT
#endif

/* The same type as cudaStream_t. */
struct CUstream_st;
typedef struct CUstream_st* dualgemm_stream_t;

/* ---- status -------------------------------------------------------------------------------------------- */

/* What became of a call. */
typedef enum {
  DUALGEMM_STATUS_SUCCESS = 0,
  DUALGEMM_STATUS_NULL_POINTER = 1,         /* a required pointer is NULL */
  DUALGEMM_STATUS_INVALID_VALUE = 2,        /* a number, enum or flag outside its range */
  DUALGEMM_STATUS_INVALID_SHAPE = 3,        /* N or K is not a multiple of what the format needs */
  DUALGEMM_STATUS_INVALID_STRIDE = 4,       /* a pitch or a stride is too small, too large or misaligned */
  DUALGEMM_STATUS_MISALIGNED = 5,           /* a pointer is not aligned */
  DUALGEMM_STATUS_ALIASING = 6,             /* an output overlaps an input, or another */
  DUALGEMM_STATUS_VERSION_MISMATCH = 7,     /* struct_size fits no release this library knows */
  DUALGEMM_STATUS_NOT_SUPPORTED = 8,        /* legal, but this release does not compute it */
  DUALGEMM_STATUS_NO_DEVICE = 9,            /* no CUDA device or no driver */
  DUALGEMM_STATUS_ARCH_MISMATCH = 10,       /* the library, or this program, has no kernel for the device */
  DUALGEMM_STATUS_DRIVER_TOO_OLD = 11,      /* the driver is older than the major CUDA version of the build */
  DUALGEMM_STATUS_WORKSPACE_TOO_SMALL = 12, /* the instance that is asked for, or a try, needs more of it */
  DUALGEMM_STATUS_CUDA_ERROR = 13,          /* a CUDA call failed; see dualgemm_last_cuda_error() */
  DUALGEMM_STATUS_INTERNAL = 14,            /* a bug in this library */
  DUALGEMM_STATUS_RUNTIME_MISMATCH = 15,    /* the CUDA runtime has another major version than the build */
  DUALGEMM_STATUS_MAX_ENUM = 0x7fffffff
} dualgemm_status_t;

/* "DUALGEMM_STATUS_INVALID_SHAPE", and one sentence about it. Both accept any value. Static strings. */
DUALGEMM_API const char* dualgemm_status_name(dualgemm_status_t status) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_status_string(dualgemm_status_t status) DUALGEMM_NOEXCEPT;

/* What the last function of this library that returned a status on this thread had to say: "k=1000: must be a
 * multiple of 16", or "" after a success. Valid until this thread's next such call. Never NULL. */
DUALGEMM_API const char* dualgemm_last_error(void) DUALGEMM_NOEXCEPT;

/* The cudaError_t behind this thread's most recent DUALGEMM_STATUS_CUDA_ERROR, 0 when there was none. */
DUALGEMM_API int dualgemm_last_cuda_error(void) DUALGEMM_NOEXCEPT;

/* ---- version ------------------------------------------------------------------------------------------- */

/* DUALGEMM_VERSION of the linked library, and the same in words with its CUDA version and architectures. */
DUALGEMM_API int dualgemm_version(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_build_info(void) DUALGEMM_NOEXCEPT;

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* The type of an element. */
typedef enum {
  DUALGEMM_DTYPE_BF16 = 0,
  DUALGEMM_DTYPE_FP16 = 1,
  DUALGEMM_DTYPE_FP32 = 2,
  DUALGEMM_DTYPE_NVFP4 = 3,    /* packed E2M1 with a UE4M3 factor for each 16 elements of a row */
  DUALGEMM_DTYPE_FP8_E4M3 = 4, /* largest 448, no infinity */
  DUALGEMM_DTYPE_MXFP4 = 5,    /* packed E2M1 with an E8M0 factor, 2^(byte - 127), for each 32 elements of a
                                  row; B1 and B2 only. Since 0.3.0 */
  DUALGEMM_DTYPE_MAX_ENUM = 0x7fffffff
} dualgemm_dtype_t;

/* What becomes of gate g and value u. */
typedef enum {
  /* With alpha, beta, limit = swiglu_alpha, swiglu_beta, swiglu_limit, by default silu(g) * u:
     min(g, limit) * sigmoid(alpha * min(g, limit)) * (clamp(u, -limit, limit) + beta) */
  DUALGEMM_ACTIVATION_SWIGLU = 0,
  /* g * sigmoid(2 sqrt(2 / pi) (g + 0.044715 g^3)) * u, which is gelu(g) * u in its approximation by tanh */
  DUALGEMM_ACTIVATION_GEGLU_TANH = 1,
  DUALGEMM_ACTIVATION_GEGLU_ERF = 2, /* g * (1 + erf(g / sqrt(2))) / 2 * u */
  DUALGEMM_ACTIVATION_REGLU = 3,     /* max(g, 0) * u */
  DUALGEMM_ACTIVATION_GLU = 4,       /* sigmoid(g) * u */
  /* The limit behind silu: min(g * sigmoid(alpha * g), limit) * (clamp(u, -limit, limit) + beta) */
  DUALGEMM_ACTIVATION_SWIGLU_STEP = 5,
  /* situ_gate * tanh(g / situ_gate) * sigmoid(g) * situ_up * tanh(u / situ_up) */
  DUALGEMM_ACTIVATION_SITU = 6,
  DUALGEMM_ACTIVATION_MAX_ENUM = 0x7fffffff
} dualgemm_activation_t;

/* What becomes of the one product x of a launch with products = 1. */
typedef enum {
  DUALGEMM_LINEAR_ACTIVATION_NONE = 0, /* x */
  DUALGEMM_LINEAR_ACTIVATION_SILU = 1, /* x * sigmoid(x) */
  DUALGEMM_LINEAR_ACTIVATION_GELU_TANH = 2, /* x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)) */
  DUALGEMM_LINEAR_ACTIVATION_GELU_ERF = 3,  /* x * (1 + erf(x / sqrt(2))) / 2 */
  DUALGEMM_LINEAR_ACTIVATION_RELU = 4,      /* max(x, 0) */
  DUALGEMM_LINEAR_ACTIVATION_RELU2 = 5,     /* max(x, 0)^2 */
  DUALGEMM_LINEAR_ACTIVATION_MAX_ENUM = 0x7fffffff
} dualgemm_linear_activation_t;

/* dualgemm_args_t.flags */
enum {
  /* The launch may start before the preceding grid of the stream has ended (programmatic dependent launch). It
     waits for the end of that grid before it uses any input or writes any output. */
  DUALGEMM_FLAG_PDL = 1 << 0,
  /* With PDL the launch may read B1, B2, SFB1 and SFB2 before the preceding grid has ended: the caller promises
     that no work that may still run writes them. */
  DUALGEMM_FLAG_STATIC_WEIGHTS = 1 << 1,
  /* A row of C has the same bits whatever M, batch, groups and expected_rows are, among launches that all have
     a group_mode or all have none (manual: LAUNCHING.md has the other conditions). */
  DUALGEMM_FLAG_BATCH_INVARIANT = 1 << 2,
  /* The driver is asked about every pointer: INVALID_VALUE unless the whole tensor lies in memory of the
     current device, or in managed or registered host memory (manual: ERRORS.md). Functions that look at no
     current device, such as dualgemm_can_implement_on, do not ask it. */
  DUALGEMM_FLAG_CHECK_POINTERS = 1 << 3,
  /* The activation is computed in fp64: f(g) * h(u) is within 2 ulp of fp32, for g and u as the products gave
     them. It is slow, and slower on GPUs with little fp64, such as B300 (manual: MODEL.md). */
  DUALGEMM_FLAG_EXACT_ACT = 1 << 4,
  DUALGEMM_FLAG_NO_FALLBACK = 1 << 5 /* refuse emulation; this release has none, so it always holds */
};

/* Groups: problems whose rows are known only on the device, as in a mixture of experts (MoE). */
typedef enum {
  DUALGEMM_GROUP_NONE = 0,
  DUALGEMM_GROUP_OFFSETS = 1, /* the rows of all groups follow each other in A and C, M in all */
  DUALGEMM_GROUP_MASKED = 2,  /* every group has M rows in A and C; the first group_rows[g] are in use */
  DUALGEMM_GROUP_MAX_ENUM = 0x7fffffff
} dualgemm_group_mode_t;

#define DUALGEMM_MAX_GROUPS 1024 /* groups of one launch */

/* Everything a launch can be told. Fill it with dualgemm_args_init, then set what differs. Pointers are
 * device pointers, numbers are host values. Vectors, alphas and encode scales are aligned to an element.
 * Strides are from one problem, of the batch or a group, to the next.
 *
 * What a field asks for is done or refused, never ignored:
 *   - flags and enumerators have to be among those defined here, also where the launch has no tensor of that
 *     type. Two flags are never refused: STATIC_WEIGHTS is the caller's promise, which only launches with PDL
 *     use, and NO_FALLBACK a condition, which every launch of this release keeps;
 *   - pitches, strides and sizes of a tensor whose pointer is NULL have to be 0, and so have strides between
 *     groups whose rows follow each other (OFFSETS);
 *   - pointers and numbers that the c_dtype, the activation or the group_mode does not take have to keep their
 *     default;
 *   - a stride between problems may have any value where there is only one problem; strides of 32 bits must not
 *     be negative. */
typedef struct dualgemm_args {
  uint32_t struct_size;          /* set by dualgemm_args_init */
  uint32_t flags;                /* DUALGEMM_FLAG_* */
  int32_t m, n, k;               /* elements; k a multiple of 16, n of 16 (NVFP4 C), 4 (FP32 C, with D1 and D2
                                    in FP32, too), else 8. With m or n 0 nothing is done. With k 0 no input is
                                    read and all outputs but amax_out become zero, whatever instance_id and
                                    max_sms are; groups, a bias or c_add are NOT_SUPPORTED then */
  int32_t batch;                 /* problems of one shape; 0 = 1 */
  const void *a, *b1, *b2;       /* [m, k], [n, k], [n, k] packed E2M1, element 2i in the low nibble, or a of
                                    another a_dtype; 16-byte aligned */
  const void *sfa, *sfb1, *sfb2; /* UE4M3, dualgemm_sf_size bytes each (b_dtype says what MXFP4 has); 16-byte
                                    aligned. Where k is no multiple of 64, each has factors beyond k / 16,
                                    which have to be 0x00: NaN there (0x7F, 0xFF) makes every result of its row
                                    or column NaN, except in sfa where a pass prepares A (9.0). Factors of rows
                                    beyond the last may have any value. sfa is NULL where a_dtype is not
                                    NVFP4 */
  void* c;                       /* [m, n] of c_dtype; 16-byte aligned; overlaps nothing else */
  /* Factors of an NVFP4 C, which the next launch takes as SFA: dualgemm_sf_size(m, n) bytes, with OFFSETS the
     blocks of all groups as in SFA; 16-byte aligned. NULL for any other c_dtype. */
  void* sfc;
  /* From one row to the next, in elements; 0 = compact. A multiple of 16 bytes. */
  int64_t lda, ldb1, ldb2, ldc;
  /* From one problem to the next: elements for the operands and C, bytes for the scale factors; a multiple of
     16 bytes; 0 = compact. */
  int64_t batch_stride_a, batch_stride_b1, batch_stride_b2, batch_stride_c;
  int64_t batch_stride_sfa, batch_stride_sfb1, batch_stride_sfb2, batch_stride_sfc;
  float alpha1, alpha2;                 /* default 1 */
  const float *alpha1_dev, *alpha2_dev; /* optional, multiplied in; see alpha_stride */
  const float* a_row_scale;             /* optional [m], a factor for each row of A */
  const void *bias1, *bias2;            /* optional [n] of bias_dtype, added to g and u after all factors */
  const float* c_row_scale;             /* optional [m], a factor for each row of C after the activation */
  float c_global_scale;                 /* encode scale of an NVFP4 or FP8 C, above 0, at most the largest
                                           float over 512; default 1 */
  int32_t activation;                   /* dualgemm_activation_t, default SWIGLU */
  const float* c_global_scale_dev;      /* optional, multiplied into c_global_scale */
  float swiglu_alpha;                   /* default 1, at most 2^127 in magnitude; this and the next two:
                                           SWIGLU, SWIGLU_STEP */
  float swiglu_beta;                    /* default 0 */
  float swiglu_limit;                   /* default +infinity, above 0 */
  float situ_gate, situ_up;             /* default 4 and 25, above 0, not subnormal; SITU */
  int32_t c_dtype;                      /* dualgemm_dtype_t, default BF16 */
  int32_t bias_dtype;                   /* BF16 (default) or FP32 */
  int32_t reserved2;                    /* 0 */
  float* amax_out;                      /* optional, one float: raised to the largest |C| before its
                                           conversion, NaN if any is NaN; set it to 0 first */
  void *d1, *d2;                        /* optional [m, n] of d_dtype: g and u as the activation takes them,
                                           both or none; 16-byte aligned; overlap nothing else */
  int64_t ldd1, ldd2;                       /* as ldc */
  int64_t batch_stride_d1, batch_stride_d2; /* as batch_stride_c */
  int32_t d_dtype;       /* BF16 (default), FP16 or FP32 */
  int32_t instance_id;   /* 0 = automatic, else 1 .. dualgemm_instance_count() */
  int32_t max_sms;       /* 0 = all, else at most this many CTAs run at once */
  int32_t reserved0;     /* 0 */
  void* workspace;       /* device, 256-byte aligned, overlaps nothing else: optional memory. A launch is
                            faster with dualgemm_workspace_size() bytes if that is not 0. Launches on two
                            streams need a workspace each, launches on one stream may share one */
  size_t workspace_size; /* bytes, below 2^48 */
  int32_t group_mode;    /* dualgemm_group_mode_t */
  int32_t groups;        /* with a group_mode 1 .. DUALGEMM_MAX_GROUPS, else 0 */
  /* Device memory, 4-byte aligned, with a group_mode. OFFSETS [groups + 1]: group g has the rows
     group_rows[g] to group_rows[g + 1] - 1. MASKED [groups]: group g has group_rows[g] rows. The
     kernel clamps these numbers. */
  const int32_t* group_rows;
  int32_t expected_rows; /* rows of a usual group, a hint for the choice of the instance and for nothing
                            else; 0 = unknown: M over the groups with OFFSETS, M with MASKED */
  /* Elements from one problem's numbers to the next; 0 = one for all. reserved1: 0. */
  int32_t alpha_stride, c_global_scale_stride, reserved1;
  int64_t bias_stride;
  /* Floats from the row factors of one problem to those of the next; 0 = m. With OFFSETS there is one factor
     for each row of A, or of C. */
  int64_t batch_stride_a_row_scale, batch_stride_c_row_scale;
  /* NVFP4 (default), or BF16, FP16 or, since 0.3.0, FP8_E4M3: a is [m, k] of that type then, and sfa NULL. Only
     on compute capability 9.0, NOT_SUPPORTED elsewhere. FP8_E4M3 is for MXFP4 weights, and the other types are
     for NVFP4 weights: see b_dtype */
  int32_t a_dtype;
  int32_t reserved3; /* 0 */
  /* Since 0.3.0. Products of A: 2 (or 0), or 1:
         C = linear_activation(alpha1 * a_row_scale[m] * A * B1^T + bias1[n]) * c_row_scale[m] + c_add
     With 1, the fields of the second product, and `activation`, have to keep their defaults. */
  int32_t products;
  int32_t linear_activation; /* dualgemm_linear_activation_t, default NONE; with products = 1 */
  /* Optional [m, n] of c_dtype, which is BF16, FP16 or FP32; 16-byte aligned; with products = 1. It may be C
     itself, with C's pitch and stride, and overlaps C in no other way. Pitch and stride are those of an output;
     0 = compact. */
  const void* c_add;
  int64_t ld_c_add, batch_stride_c_add;
  /* Since 0.3.0, as all that follows. The type of b1 and b2: NVFP4 (default) or MXFP4. With MXFP4 k is a multiple
     of 32, sfb1 and sfb2 have dualgemm_sf_size_of(DUALGEMM_DTYPE_MXFP4, n, k) bytes each, and a weight is

         element * 2^(byte - 127 + row_exponent[n])

     A byte above 133 makes the 32 weights of its block NaN: 0xFF is E8M0's NaN, and dualgemm_prepare_mxfp4 makes
     no other. The bytes of blocks beyond k / 32 have to be at most 133, those of rows beyond n may have any
     value.

     MXFP4 needs an A in FP8_E4M3, and such an A needs MXFP4; NOT_SUPPORTED otherwise. The kernel multiplies by
     element * 2^(byte - 127), rounded to the nearest number of E4M3, ties to even. For the bytes 119 to 133 that
     is exact. Below it is off by at most 2^-10, where the largest factor of a row is 2^6 once it is prepared. */
  int32_t b_dtype;
  int32_t reserved4; /* 0 */
  /* Optional [n], with MXFP4: exponents of two for the rows of b1 and b2, as dualgemm_prepare_mxfp4 writes them;
     2-byte aligned. NULL: 0 each. The products are multiplied by 2^row_exponent[n], in fp32, before all other
     factors; exponents outside -149 .. 127 make 0 or infinity of that power. */
  const int16_t *b1_row_exponent, *b2_row_exponent;
  int64_t batch_stride_b_row_exponent; /* elements of both from one problem to the next; 0 = n */
} dualgemm_args_t;

/* Sets defaults: a plain SwiGLU with BF16 output, compact tensors, alpha1 = alpha2 = 1, every pointer NULL.
 * The macro passes the caller's idea of the structure, so that programs built against an older header keep
 * working. */
DUALGEMM_API void dualgemm_args_init_sized(dualgemm_args_t* args, size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_args_init(args) dualgemm_args_init_sized((args), sizeof(dualgemm_args_t))

/* ---- launch -------------------------------------------------------------------------------------------- */

/* One problem with compact tensors and host alphas; pointers and sizes as in dualgemm_args_t. Compact tensors
 * need k to be a multiple of 32, and n of 16 with an FP8 C. An NVFP4 C needs dualgemm_launch_ex, which has its
 * factors. Asynchronous on `stream`, which belongs to the current device; may be captured into a graph once its
 * kernel is loaded (dualgemm_init). Returns NULL_POINTER, INVALID_VALUE, INVALID_SHAPE, INVALID_STRIDE,
 * MISALIGNED, ALIASING, NOT_SUPPORTED, NO_DEVICE, ARCH_MISMATCH, DRIVER_TOO_OLD, RUNTIME_MISMATCH or CUDA_ERROR
 * before anything is launched; m == 0 or n == 0 succeeds without a launch, and k == 0 fills C with zeros. */
DUALGEMM_API dualgemm_status_t dualgemm_launch(const void* a, const void* b1, const void* b2, const void* sfa,
                                               const void* sfb1, const void* sfb2, void* c, int32_t m,
                                               int32_t n, int32_t k, float alpha1, float alpha2,
                                               dualgemm_dtype_t c_dtype,
                                               dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;

/* One product, C = alpha * A * B^T, of one problem: B [n, k] and sfb are b1 and sfb1 of a launch with products
 * = 1. All else is as for dualgemm_launch. Since 0.3.0. */
DUALGEMM_API dualgemm_status_t dualgemm_launch_linear(const void* a, const void* b, const void* sfa,
                                                      const void* sfb, void* c, int32_t m, int32_t n,
                                                      int32_t k, float alpha, dualgemm_dtype_t c_dtype,
                                                      dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;

/* The same with everything a launch can be told. */
DUALGEMM_API dualgemm_status_t dualgemm_launch_ex(const dualgemm_args_t* args,
                                                  dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;

/* For a program that allocates a workspace only when a launch makes use of one: dualgemm_workspace_size() and
 * dualgemm_launch_ex() in one call, which checks the arguments once. Where the arguments have a smaller
 * workspace nothing is launched, and the status is WORKSPACE_TOO_SMALL: launch again with *bytes of workspace,
 * or without any by dualgemm_launch_ex(). *bytes becomes that size once the arguments alone are in order,
 * whatever the status is then: 0 without a device, or where the device refuses them. Since 0.3.0. */
DUALGEMM_API dualgemm_status_t dualgemm_try_launch(const dualgemm_args_t* args, size_t* bytes,
                                                   dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;

/* Optional: loads every kernel on the current device now, so that the first launch, or one inside a stream
 * capture, has nothing left to load. It also reads the file of DUALGEMM_TUNING (below). */
DUALGEMM_API dualgemm_status_t dualgemm_init(void) DUALGEMM_NOEXCEPT;

/* ---- questions ----------------------------------------------------------------------------------------- */

/* A device, as far as this library looks at one. Host memory; may be filled by hand to ask about a machine
 * that is not at hand: after dualgemm_device_init a B200 is cc_major = 10, sm_count = 148,
 * driver_version = 13000. */
typedef struct dualgemm_device {
  uint32_t struct_size;       /* set by dualgemm_device_init */
  int32_t cc_major, cc_minor; /* compute capability */
  int32_t sm_count;           /* 1 .. 65535 */
  int32_t driver_version; /* what cudaDriverGetVersion reports, e.g. 13000 for CUDA 13.0 */
  int32_t ordinal;        /* for messages only */
  char name[68];          /* NUL-terminated, may be empty; messages and tuning files have it */
  /* Clusters of 2 and of 4 CTAs with full shared memory that run at once (cudaOccupancyMaxActiveClusters): an
   * odd SM of a part of the chip belongs to none. 0 = not known: the library then assumes as many clusters of 2
   * as the SMs allow, and as many of 4 as the largest chip of this architecture has, in proportion to its SMs.
   * -1 = none: dualgemm_current_device says so where CUDA counts 0, or cannot count, and a launch then takes an
   * instance without such clusters. Libraries of 0.2 refuse -1. */
  int32_t clusters_of_2, clusters_of_4;
  /* Since 0.3.0. 10^9 bytes per second at the pins of DRAM: two transfers per clock of the memory, times the width of
   * its bus. By it the choice tells an H200 from an H100. 0 = not known. */
  int32_t memory_gb_s;
} dualgemm_device_t;

/* Sets the size, and all else to 0. */
DUALGEMM_API void dualgemm_device_init_sized(dualgemm_device_t* device,
                                             size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_device_init(device) dualgemm_device_init_sized((device), sizeof(dualgemm_device_t))

/* Describes the calling thread's current device in a structure that dualgemm_device_init has seen. A device is
 * asked once, in the context that is current then, and remembered. */
DUALGEMM_API dualgemm_status_t dualgemm_current_device(dualgemm_device_t* device) DUALGEMM_NOEXCEPT;

/* What a launch with these arguments would return before it launches: SUCCESS or the first violated rule. The
 * first form asks about the current device, the second one needs no GPU. Pointers are compared, never
 * followed. With DUALGEMM_FLAG_CHECK_POINTERS the first form asks the driver about them; the second form, which
 * has no driver to ask, accepts any address. */
DUALGEMM_API dualgemm_status_t dualgemm_can_implement(const dualgemm_args_t* args) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_can_implement_on(const dualgemm_args_t* args,
                                                         const dualgemm_device_t* device) DUALGEMM_NOEXCEPT;

/* Bytes of workspace that make a launch with these arguments faster on the current device: on compute
 * capability 9.0, with many rows of A, which are expanded in the workspace once, or put in order if they have
 * 16 bits; for instances with stream-K up to 26 MB of sums are added. 0 elsewhere, and without a device. With
 * a smaller workspace, or none, a launch takes an instance that needs no more. */
DUALGEMM_API dualgemm_status_t dualgemm_workspace_size(const dualgemm_args_t* args,
                                                       size_t* bytes) DUALGEMM_NOEXCEPT;

/* ---- instances ----------------------------------------------------------------------------------------- */

/* One kernel instance and what it costs: everything here is known when the library is built. */
typedef struct dualgemm_instance_info {
  uint32_t struct_size;           /* set by dualgemm_instance_info_init */
  int32_t c_dtype;                /* dualgemm_dtype_t; -1 where `general` is 1: any, as the launch says */
  const char* name;               /* "m128n64k256_fp16"; k256o: overlapped, k256g: grouped, k256s2: split_k,
                                     k256sk: stream_k, k256x: a pass prepares A; one: one product;
                                     abf16, afp16: the type of A; general: its epilogue */
  int32_t cta_group;              /* CTAs that share one tcgen05.mma: 1, or a pair; 1 with wgmma (9.0) */
  int32_t tile_m, tile_n, tile_k; /* tile of C, and K of a k-tile; tile_n columns of both products */
  int32_t stages;                 /* depth of the shared-memory ring of A, B1, B2 */
  int32_t acc_stages;             /* accumulator pairs in tensor memory; 0 where there is none (9.0) */
  int32_t mma_n;                  /* N of one tcgen05.mma, or wgmma */
  int32_t mmas_per_step;          /* tcgen05.mma per 64 elements of K; 1 with wgmma: four of 16 in a warpgroup */
  int32_t split_k;                /* parts of K, each computed by its own CTA or pair of one cluster */
  int32_t threads;                /* per CTA */
  int32_t smem_bytes;             /* dynamic shared memory per CTA */
  int32_t tmem_columns;           /* tensor-memory columns allocated per CTA */
  int32_t scale_stages;           /* depth of the ring of scale factors */
  int32_t scale_k_tiles;          /* k-tiles whose scale factors share one of its stages */
  int32_t grouped;                /* 1: for launches with a group_mode, 0: for those without */
  int32_t overlapped;             /* 1: the accumulator pairs share columns */
  int32_t general;                /* 1: computes whatever a launch asks for; 0: a plain SwiGLU, or alpha1
                                     times the one product */
  int32_t cc_major;               /* compute capability that it is for: 9 (9.0), 10 (10.x) */
  int32_t a_dtype;                /* dualgemm_dtype_t: NVFP4, BF16 or FP16 */
  int32_t reserved0;              /* 0 */
  int32_t products;               /* 2, or 1: for launches with products = 1. Since 0.3.0 */
  int32_t stream_k;               /* 1: CTAs share tiles along K in even spans. Since 0.3.0 */
} dualgemm_instance_info_t;

/* Sets the size, and all else to 0. */
DUALGEMM_API void dualgemm_instance_info_init_sized(dualgemm_instance_info_t* info,
                                                    size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_instance_info_init(info) \
  dualgemm_instance_info_init_sized((info), sizeof(dualgemm_instance_info_t))

/* Ids are 1 .. dualgemm_instance_count(), the same for the life of a build; `info` is host memory that
 * dualgemm_instance_info_init has seen. INVALID_VALUE for any other id. */
DUALGEMM_API int32_t dualgemm_instance_count(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_instance_info(int32_t id,
                                                      dualgemm_instance_info_t* info) DUALGEMM_NOEXCEPT;

/* The id a launch with these arguments on this device would use, 0 when it would run no kernel.
 * Needs no GPU. */
DUALGEMM_API dualgemm_status_t dualgemm_select_instance(const dualgemm_args_t* args,
                                                        const dualgemm_device_t* device,
                                                        int32_t* id) DUALGEMM_NOEXCEPT;

/* ---- scale factors and quantisation, on the host ------------------------------------------------------- */

/* For all functions on host memory that take no structure: a matrix takes less than 2^48 bytes; matrices and
 * factors that are written overlap neither an input nor each other (ALIASING). If a function also writes the
 * bytes between the rows of a matrix, these belong to the matrix. Otherwise rows of another matrix may lie
 * between them, if the rows of both are the same number of bytes apart. */

/* Size of a scale-factor buffer, padding included; 0 when an argument is negative. */
DUALGEMM_API size_t dualgemm_sf_size(int32_t rows, int32_t k) DUALGEMM_NOEXCEPT;

/* Where the factor of elements [16 * block, 16 * block + 16) of a row lies in the buffer; -1 when there is no
 * such place. Padding has offsets, too: row < 128 * ceil(rows / 128), block < 4 * ceil(k / 64). */
DUALGEMM_API int64_t dualgemm_sf_offset(int32_t rows, int32_t k, int32_t row,
                                        int32_t block) DUALGEMM_NOEXCEPT;

/* The same for the factors of a type: those of NVFP4 are for 16 elements each, as above, those of MXFP4 for 32.
 * Atoms of MXFP4 have 128 elements of each row: block < 4 * ceil(k / 128). 0 and -1 for a type without factors.
 * Since 0.3.0. */
DUALGEMM_API size_t dualgemm_sf_size_of(dualgemm_dtype_t dtype, int32_t rows, int32_t k) DUALGEMM_NOEXCEPT;
DUALGEMM_API int64_t dualgemm_sf_offset_of(dualgemm_dtype_t dtype, int32_t rows, int32_t k, int32_t row,
                                           int32_t block) DUALGEMM_NOEXCEPT;

/* Encode scale of x [rows, k]: 448 * 6 / max|x|, so that the largest element becomes the largest NVFP4
 * number. 1 when all of x is zero, and at most FLT_MAX / 512, so that no `encode` below overflows. Host
 * memory; x must be finite. ldx counts elements, 0 = k. */
DUALGEMM_API dualgemm_status_t dualgemm_global_scale_host(const float* x, int32_t rows, int32_t k,
                                                          int64_t ldx, float* global_scale) DUALGEMM_NOEXCEPT;

/* Quantises x [rows, k] to packed E2M1 (q) and 128x4 UE4M3 factors (sf). Host memory. All arithmetic is fp32,
 * each operation rounded to nearest even, so that kernels get the same bits:
 *     sixth  = global_scale * (1 / 6)         factor = UE4M3(max|x of the 16| * sixth)
 *     encode = global_scale * (1 / factor)    value  = E2M1(x * encode)
 * Both conversions round to nearest, ties to even, and saturate (448, 6). A factor that rounds to zero makes
 * its 16 values +0. k is a multiple of 16, x finite. ldq counts elements, is even and at least k (0 = k); the
 * bytes between k and ldq and all padding of sf are written as zero. */
DUALGEMM_API dualgemm_status_t dualgemm_quantize_host(const float* x, int32_t rows, int32_t k, int64_t ldx,
                                                      float global_scale, void* q, int64_t ldq,
                                                      void* sf) DUALGEMM_NOEXCEPT;

/* The way back: x = value * factor / global_scale, NaN where the factor is NaN. Host memory. */
DUALGEMM_API dualgemm_status_t dualgemm_dequantize_host(const void* q, int64_t ldq, const void* sf,
                                                        int32_t rows, int32_t k, float global_scale, float* x,
                                                        int64_t ldx) DUALGEMM_NOEXCEPT;

/* ---- scale factors and quantisation, on the device ----------------------------------------------------- */

/* These run kernels: asynchronous on `stream`, which belongs to the current device; they may be captured into
 * a graph (after dualgemm_init). They need a GPU that launches run on. Each has a twin for host memory, which
 * takes the same structure and gives the same bits. rows == 0 or k == 0 succeeds without touching anything.
 *
 * Rows, batches and groups are as those of A in a launch: with OFFSETS the rows of all groups follow each
 * other and the factors of each begin at a block of 128 rows of their own, with MASKED and in a batch every
 * problem has its own matrix. Rows that are not in use are neither read nor written. */

/* Scale factors in rows, as checkpoints hold them, and in 128x4 atoms. */
typedef struct dualgemm_sf_args {
  uint32_t struct_size;       /* set by dualgemm_sf_args_init */
  uint32_t flags;             /* DUALGEMM_FLAG_PDL or 0 */
  int32_t rows, k;            /* elements; k a multiple of 16: a row has k / 16 factors */
  int32_t batch;              /* matrices of one shape; 0 = 1 */
  int32_t group_mode, groups; /* as in dualgemm_args_t, with rows for m */
  int32_t reserved0;          /* 0 */
  const int32_t* group_rows;  /* as there */
  const void* src;            /* swizzle: rows; unswizzle: atoms */
  void* dst;                  /* the other; the two do not overlap */
  int64_t pitch;              /* of the rows, in bytes, at least k / 16; 0 = compact. Fast where it, the
                                 address and the stride are multiples of 16 */
  /* Bytes from one matrix to the next; 0 = compact. Those of atoms are multiples of 16, and so is the address
     of atoms. */
  int64_t batch_stride_src, batch_stride_dst;
} dualgemm_sf_args_t;

/* Sets the size, and defaults. */
DUALGEMM_API void dualgemm_sf_args_init_sized(dualgemm_sf_args_t* args,
                                              size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_sf_args_init(args) dualgemm_sf_args_init_sized((args), sizeof(dualgemm_sf_args_t))

/* From rows to atoms. Every block of 128 rows that holds a row in use is written whole, padding as zero. */
DUALGEMM_API dualgemm_status_t dualgemm_sf_swizzle(const dualgemm_sf_args_t* args,
                                                   dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_sf_swizzle_host(const dualgemm_sf_args_t* args) DUALGEMM_NOEXCEPT;

/* From atoms to rows. Bytes between k / 16 and the pitch are not written. */
DUALGEMM_API dualgemm_status_t dualgemm_sf_unswizzle(const dualgemm_sf_args_t* args,
                                                     dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_sf_unswizzle_host(const dualgemm_sf_args_t* args) DUALGEMM_NOEXCEPT;

/* Where the global scale comes from. */
typedef enum {
  DUALGEMM_SCALE_GIVEN = 0,  /* global_scale, times *global_scale_dev where there is one */
  DUALGEMM_SCALE_TENSOR = 1, /* 448 * 6 / max|x| over all rows in use, to tensor_scales; FP8: 448 / max|x| */
  DUALGEMM_SCALE_ROW = 2,    /* the same for each row; its reciprocal goes to row_scale */
  DUALGEMM_SCALE_MAX_ENUM = 0x7fffffff
} dualgemm_scale_mode_t;

/* From x to packed E2M1 and 128x4 factors: to A and SFA of a launch, for any rows, batch and groups. Or to FP8. */
typedef struct dualgemm_quantize_args {
  uint32_t struct_size;       /* set by dualgemm_quantize_args_init */
  uint32_t flags;             /* DUALGEMM_FLAG_PDL or 0 */
  int32_t rows, k;            /* elements; k a multiple of 16 */
  int32_t batch;              /* matrices of one shape; 0 = 1 */
  int32_t group_mode, groups; /* as in dualgemm_args_t, with rows for m */
  int32_t x_dtype;            /* BF16 (default), FP16 or FP32 */
  const int32_t* group_rows;  /* as there */
  const void* x;              /* [rows, k] of x_dtype; 16-byte aligned */
  void* q;                    /* [rows, k] packed E2M1 or bytes of FP8, the launch's A; 16-byte aligned */
  void* sf;                   /* its factors, SFA; 16-byte aligned. NULL with FP8 */
  int64_t ldx, ldq;           /* from one row to the next, in elements; 0 = compact. Multiples of 16 bytes */
  /* From one matrix to the next: elements, bytes of sf; multiples of 16 bytes; 0 = compact. */
  int64_t batch_stride_x, batch_stride_q, batch_stride_sf;
  int32_t scale_mode;         /* dualgemm_scale_mode_t, default GIVEN */
  /* GIVEN: above 0, at most the largest float over 512; default 1, which it has to be otherwise. */
  float global_scale;
  const float* global_scale_dev; /* GIVEN: optional, multiplied into global_scale */
  int64_t global_scale_stride;   /* floats from one matrix's or group's to the next; 0 = one for all */
  /* TENSOR: three floats are written: max|x| (at most the largest float), the global scale, and 1 / it, which
     the launch takes for alpha1_dev and alpha2_dev. */
  float* tensor_scales;
  /* ROW: [rows] floats are written, 1 / the scale of each row, which the launch takes for a_row_scale. */
  float* row_scale;
  int64_t batch_stride_row_scale; /* floats; 0 = rows */
  /* Since 0.3.0. Optional [rows], device memory, 4-byte aligned: row r of q is quantised from row row_index[r] of
     x, and is zero where that is outside 0 .. x_rows - 1. Without a batch, and not with MASKED. */
  const int32_t* row_index;
  int32_t x_rows;    /* rows of x, at least 1, with a row_index; else 0 */
  int32_t reserved0; /* 0 */
  int32_t q_dtype;   /* NVFP4 (default) or FP8_E4M3 */
  int32_t reserved1; /* 0 */
} dualgemm_quantize_args_t;

/* Sets the size, and defaults. */
DUALGEMM_API void dualgemm_quantize_args_init_sized(dualgemm_quantize_args_t* args,
                                                    size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_quantize_args_init(args) \
  dualgemm_quantize_args_init_sized((args), sizeof(dualgemm_quantize_args_t))

/* The arithmetic is that of dualgemm_quantize_host, after a conversion of x to fp32. A computed scale is that
 * of dualgemm_global_scale_host. NaN makes the factor of its block 0x7F; the maxima of rows and of x leave it
 * out. An infinity counts as the largest float, and becomes 6 times its factor. In every block of 128 rows that
 * holds a row in use all factors are written, padding as zero; in q the k elements of rows in use are.
 *
 * FP8 has no factors: an element is E4M3(x * scale). The product is fp32, and both are rounded to nearest, ties
 * to even. E4M3 saturates at 448, also for an infinity; NaN becomes 0x7F. With TENSOR and ROW
 *
 *     scale = min(448 / max|x|, FLT_MAX / 512)         row_scale = max(max|x| / 448, 512 / FLT_MAX)
 *
 * each division rounded once, so that the largest element becomes 448. Where max|x| is 0 both are 1. */
DUALGEMM_API dualgemm_status_t dualgemm_quantize(const dualgemm_quantize_args_t* args,
                                                 dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_quantize_host_ex(const dualgemm_quantize_args_t* args)
    DUALGEMM_NOEXCEPT;

/* ---- around a layer of experts ------------------------------------------------------------------------- */

/* A layer of experts (MoE) is five calls, of which none needs a number from the device (manual: GROUPS.md):
 *
 *     dualgemm_moe_permute      the router's choices -> rows of the experts
 *     dualgemm_quantize         row_index = row_token, OFFSETS: those rows of x -> A, SFA; for 16 bits:
 *     dualgemm_moe_gather       row_index = row_token: those rows of x -> A
 *     dualgemm_launch_ex        gate and up of each expert: two products, OFFSETS
 *     dualgemm_launch_ex        down of each expert: one product, OFFSETS
 *     dualgemm_moe_combine      each token's rows, topk_weights -> their sum
 *
 * The router's weights may be the down launch's c_row_scale = row_weight instead. On Hopper such a launch takes
 * an instance for row factors, which is slower.
 *
 * m and rows are tokens * top_k, at most 2^31 - 1024. What is said above about functions on the device, and
 * about their twins, is true of these functions, too. tokens == 0 or top_k == 0 succeeds without touching
 * anything. The same input gives the same bits. All since 0.3.0. */

/* From the experts that each token has chosen to rows of the experts, in the order of the experts. The rows
 * of one expert have the order of the tokens, and those of one token the order of its choices. */
typedef struct dualgemm_moe_permute_args {
  uint32_t struct_size;      /* set by dualgemm_moe_permute_args_init */
  uint32_t flags;            /* DUALGEMM_FLAG_PDL or 0 */
  int32_t tokens, top_k;     /* top_k choices of each token */
  int32_t experts;           /* 1 .. DUALGEMM_MAX_GROUPS */
  int32_t reserved0;         /* 0 */
  /* [tokens, top_k]: an expert each. A choice outside 0 .. experts - 1, such as -1, or one of another rank's after
     this rank's first expert was subtracted, gets no row. */
  const int32_t* topk_ids;
  const float* topk_weights; /* optional [tokens, top_k], where a launch is to multiply its rows */
  int32_t* group_rows;       /* [experts + 1] are written, as a launch with OFFSETS takes them */
  int32_t* row_token;        /* [tokens * top_k] are written: the token of each row, -1 beyond the last row */
  int32_t* token_row;        /* [tokens, top_k] are written: the row of each choice, -1 where it has none */
  float* row_weight;         /* [tokens * top_k] are written, with topk_weights: the weight of each row, 0 beyond
                                the last row, for a launch's c_row_scale or a_row_scale. All arrays are 4-byte
                                aligned and overlap nothing else */
} dualgemm_moe_permute_args_t;

/* Sets the size, and all else to 0. */
DUALGEMM_API void dualgemm_moe_permute_args_init_sized(dualgemm_moe_permute_args_t* args,
                                                       size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_moe_permute_args_init(args) \
  dualgemm_moe_permute_args_init_sized((args), sizeof(dualgemm_moe_permute_args_t))

/* One pass over all choices for each expert counts, a second one writes. */
DUALGEMM_API dualgemm_status_t dualgemm_moe_permute(const dualgemm_moe_permute_args_t* args,
                                                    dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_moe_permute_host(const dualgemm_moe_permute_args_t* args)
    DUALGEMM_NOEXCEPT;

/* From rows of x to rows of an A of 16 bits, which is not quantised: out[r] = x[row_index[r]]. */
typedef struct dualgemm_moe_gather_args {
  uint32_t struct_size; /* set by dualgemm_moe_gather_args_init */
  uint32_t flags;       /* DUALGEMM_FLAG_PDL or 0 */
  int32_t rows, k;      /* of out; k elements, a multiple of 8. With k 0 or rows 0 nothing is done */
  int32_t x_rows;       /* rows of x, at least 1 */
  int32_t x_dtype;      /* of x and out: BF16 (default) or FP16, as a_dtype of the launch */
  /* [rows], such as row_token; 4-byte aligned. A row of out whose index is outside 0 .. x_rows - 1 is not written. */
  const int32_t* row_index;
  const void* x;        /* [x_rows, k] of x_dtype; 16-byte aligned */
  void* out;            /* [rows, k] of x_dtype, the launch's A; 16-byte aligned; overlaps nothing else */
  int64_t ldx, ld_out;  /* from one row to the next, in elements; 0 = compact. Multiples of 16 bytes */
} dualgemm_moe_gather_args_t;

/* Sets the size, and defaults. */
DUALGEMM_API void dualgemm_moe_gather_args_init_sized(dualgemm_moe_gather_args_t* args,
                                                      size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_moe_gather_args_init(args) \
  dualgemm_moe_gather_args_init_sized((args), sizeof(dualgemm_moe_gather_args_t))

/* Copies the k elements of a row bit by bit; what lies between them and the pitch is not touched. */
DUALGEMM_API dualgemm_status_t dualgemm_moe_gather(const dualgemm_moe_gather_args_t* args,
                                                   dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_moe_gather_host(const dualgemm_moe_gather_args_t* args)
    DUALGEMM_NOEXCEPT;

/* From the rows of the experts to a row of each token:
 * out[t] = sum over s of topk_weights[t][s] * c[token_row[t][s]] + add[t]. */
typedef struct dualgemm_moe_combine_args {
  uint32_t struct_size;     /* set by dualgemm_moe_combine_args_init */
  uint32_t flags;           /* DUALGEMM_FLAG_PDL or 0 */
  int32_t tokens, top_k, n; /* n columns, a multiple of 8; with n 0 nothing is done */
  int32_t c_dtype;          /* BF16 (default), FP16 or FP32 */
  int32_t out_dtype;        /* BF16 (default), FP16 or FP32 */
  int32_t reserved0;        /* 0 */
  /* [tokens, top_k], of dualgemm_moe_permute; 4-byte aligned. A number that is no row of c, as -1, adds
     nothing. */
  const int32_t* token_row;
  const void* c;            /* [tokens * top_k, n] of c_dtype; 16-byte aligned */
  /* Optional [tokens, n] of out_dtype, such as a shared expert or a residual; 16-byte aligned. It may be out, with
     out's pitch. */
  const void* add;
  void* out;                /* [tokens, n] of out_dtype; 16-byte aligned; overlaps nothing else */
  int64_t ldc, ld_add, ld_out; /* from one row to the next, in elements; 0 = compact. Multiples of 16 bytes */
  /* Optional [tokens, top_k], 4-byte aligned: the router's weights. NULL: 1 each. The weight of a choice without
     a row is not read. */
  const float* topk_weights;
} dualgemm_moe_combine_args_t;

/* Sets the size, and defaults. */
DUALGEMM_API void dualgemm_moe_combine_args_init_sized(dualgemm_moe_combine_args_t* args,
                                                       size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_moe_combine_args_init(args) \
  dualgemm_moe_combine_args_init_sized((args), sizeof(dualgemm_moe_combine_args_t))

/* Sums are fp32, from +0 on, in the order of the choices: sum = fma(weight, c, sum), rounded once to nearest
 * even. `add` comes last, without a weight, rounded likewise; out is converted once. A token without rows gets
 * 0, or `add`. A NaN may have other bits than the twin's. */
DUALGEMM_API dualgemm_status_t dualgemm_moe_combine(const dualgemm_moe_combine_args_t* args,
                                                    dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_moe_combine_host(const dualgemm_moe_combine_args_t* args)
    DUALGEMM_NOEXCEPT;

/* ---- from a checkpoint to a launch --------------------------------------------------------------------- */

/* Elements are passed as they are. Gate and up may share a buffer b; b + i is i bytes on:
 *
 *     two tensors [N, K]              b1 = gate    b2 = up                 ldb1 = ldb2 = 0
 *     gate's rows, then up's          b1 = b       b2 = b + N * K / 2      ldb1 = ldb2 = 0
 *     up's rows, then gate's          b1 = b + N * K / 2       b2 = b      ldb1 = ldb2 = 0
 *     rows gate 0, up 0, gate 1, ..   b1 = b       b2 = b + K / 2          ldb1 = ldb2 = 2 * K
 *
 * Factors go to SFB1 and SFB2, each dualgemm_sf_size(N, K) bytes of atoms: 512 bytes for 128 rows x 4 factors.
 * The factor of elements 16 * block to 16 * block + 15 of a row lies at (dualgemm_sf_offset)
 *
 *     row / 128 * 128 * P + block / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4
 *
 * with P = 4 * ceil(K / 64). The factors of the blocks K / 16 to P - 1 have to be zero; those of rows beyond
 * the last may have any value. SFA has the same layout. dualgemm_sf_swizzle makes atoms of rows of K / 16
 * bytes, once for gate and once for up: src = sf and sf + N * K / 16, or, if rows of gate and up alternate, src
 * = sf and sf + K / 16, pitch = K / 8. For atoms that gate and up share there is dualgemm_sf_split_host, for
 * GGUF's blocks dualgemm_import_gguf_host, for MXFP4 dualgemm_import_mxfp4_host.
 *
 * Global scales become the alphas. A is quantised by dualgemm_quantize in one of its scale modes:
 *
 *                  ModelOpt, GGUF: x = value * factor * s      compressed-tensors: x = value * factor / g
 *     GIVEN        global_scale = 1 / input_scale              global_scale = input_global_scale
 *                  alpha1 = input_scale * weight_scale_2       alpha1 = 1 / (input_global_scale *
 *                                                                            weight_global_scale)
 *     TENSOR, ROW  alpha1 = weight_scale_2                     alpha1 = 1 / weight_global_scale
 *
 * with gate's scale of the weight; alpha2 is the same with up's. Besides, TENSOR has alpha1_dev = alpha2_dev =
 * tensor_scales + 2, and ROW has a_row_scale = row_scale. Where gate and up differ in input_scale both alphas
 * take the larger one, where they differ in input_global_scale the smaller one. An NVFP4 C for down_proj has
 * c_global_scale = 1 / its input_scale, or its input_global_scale. */

/* ---- weights as checkpoints hold them, on the host ----------------------------------------------------- */

/* How the rows of gate and up lie in one buffer. */
typedef enum {
  DUALGEMM_ROWS_STACKED = 0,     /* n rows of the first, then n rows of the second */
  DUALGEMM_ROWS_INTERLEAVED = 1, /* even rows are the first's, odd ones the second's */
  DUALGEMM_ROWS_MAX_ENUM = 0x7fffffff
} dualgemm_row_order_t;

/* Splits the 128x4 factors of a buffer of 2 n rows: sf, of dualgemm_sf_size(2 n, k) bytes, into sf1 and sf2
 * of dualgemm_sf_size(n, k) bytes each, padding as zero. Host memory. */
DUALGEMM_API dualgemm_status_t dualgemm_sf_split_host(const void* sf, int32_t n, int32_t k,
                                                      dualgemm_row_order_t order, void* sf1,
                                                      void* sf2) DUALGEMM_NOEXCEPT;

/* From blocks of GGUF's type NVFP4 to rows of packed E2M1 and 128x4 factors. A block has 36 bytes for 64
 * elements: four factors, then the codes, eight bytes for each 16 elements; byte j has element j in its low
 * nibble and j + 8 in its high one. k is a multiple of 64; row_bytes is the distance of rows, 0 = compact.
 * A factor of 0x7F, which is zero there, becomes 0x00; above it is INVALID_VALUE. ldq counts elements, is
 * even and at least k (0 = k); the bytes between k and ldq and all padding of sf are written as zero. */
DUALGEMM_API dualgemm_status_t dualgemm_import_gguf_host(const void* blocks, int64_t row_bytes, int32_t rows,
                                                         int32_t k, void* q, int64_t ldq,
                                                         void* sf) DUALGEMM_NOEXCEPT;

/* From factors of MXFP4 to 128x4 factors and one number for the alphas, without loss. MXFP4 has E2M1 elements
 * as a launch reads them and, for each 32 along K, a factor 2^(byte - 127), where 0xFF is NaN (E8M0; OCP
 * Microscaling Formats (MX) Specification, version 1.0). The elements stay where they are: B1 = q, ldb1 = ldq.
 * UE4M3 holds the powers of two from 2^-9 to 2^8, so
 *
 *     value * 2^(byte - 127) = value * factor * scale
 *
 * where both factors of the 32 elements are equal, and *scale, a normal power of two, is the same for all
 * elements: it is a decode scale, which goes into alpha1 or alpha2 as weight_scale_2 does. Factors whose
 * elements are all zero become 0x00. Of the other factors the largest may be at most 2^17 times the smallest.
 * If it is more, the matrix has no such form, and the call returns NOT_SUPPORTED; dualgemm_last_error() names
 * both and the span.
 *
 * q has [rows, k] elements; only whether an element is zero is looked at. ldq counts elements, is even and at
 * least k (0 = k). scales has k / 32 bytes a row, `pitch` bytes from one row to the next, at least k / 32 (0 =
 * compact). k is a multiple of 32. Where rows of gate and up alternate (gpt-oss), one call is for each of the
 * two: q and scales of its first row, ldq = 2 * k, pitch = k / 16. sf gets dualgemm_sf_size(rows, k) bytes,
 * padding as zero. 0xFF is INVALID_VALUE. rows == 0 or k == 0 succeeds without touching anything. Host memory,
 * no alignment but that of a float for scale. */
DUALGEMM_API dualgemm_status_t dualgemm_import_mxfp4_host(const void* q, int64_t ldq, const void* scales,
                                                          int64_t pitch, int32_t rows, int32_t k, void* sf,
                                                          float* scale) DUALGEMM_NOEXCEPT;

/* ---- weights in MXFP4, on the device ------------------------------------------------------------------- */

/* What is said above about functions on the device, and about their twins, is true here, too. All since 0.3.0. */

/* From MXFP4 as checkpoints hold it to the factors of a launch with that b_dtype. The elements stay where they
 * are: B1 = q, ldb1 = ldq. Where rows of gate and up alternate (gpt-oss), one call is for each of the two: q and
 * scales of its first row, ldq = 2 * k, pitch = k / 16. */
typedef struct dualgemm_prepare_mxfp4_args {
  uint32_t struct_size;  /* set by dualgemm_prepare_mxfp4_args_init */
  uint32_t flags;        /* DUALGEMM_FLAG_PDL or 0 */
  int32_t rows, k;       /* elements; k a multiple of 32: a row has k / 32 blocks */
  int32_t batch;         /* matrices of one shape, such as experts; 0 = 1 */
  int32_t reserved0;     /* 0 */
  const void* q;         /* [rows, k] packed E2M1, the launch's B1 or B2; 16-byte aligned. Only whether an element
                            is zero is looked at */
  const void* scales;    /* [rows, k / 32] bytes of E8M0 */
  void* sf;              /* SFB1 or SFB2: dualgemm_sf_size_of(DUALGEMM_DTYPE_MXFP4, rows, k) bytes of each matrix,
                            padding as zero; 16-byte aligned */
  int16_t* row_exponent; /* [rows] are written, the launch's b1_row_exponent or b2_row_exponent; 2-byte aligned */
  /* Optional, 4-byte aligned: four numbers that are added to; set them to 0 first.
       [0] blocks with an element that is not zero
       [1] those of them whose byte is more than 14 below the largest of their row: a launch rounds their weights
           to E4M3
       [2] blocks whose byte is 0xFF, which is NaN
       [3] those of the first whose byte is more than 133 below: 0 stands in its place, which makes them larger */
  uint32_t* counts;
  int64_t ldq;   /* from one row to the next, in elements; 0 = compact. A multiple of 32 */
  int64_t pitch; /* of the rows of scales, in bytes, at least k / 32; 0 = compact */
  /* From one matrix to the next: elements of q, bytes of scales and of sf, elements of row_exponent; those of q and
     sf multiples of 16 bytes; 0 = compact. */
  int64_t batch_stride_q, batch_stride_scales, batch_stride_sf, batch_stride_row_exponent;
} dualgemm_prepare_mxfp4_args_t;

/* Sets the size, and all else to 0. */
DUALGEMM_API void dualgemm_prepare_mxfp4_args_init_sized(dualgemm_prepare_mxfp4_args_t* args,
                                                         size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_prepare_mxfp4_args_init(args) \
  dualgemm_prepare_mxfp4_args_init_sized((args), sizeof(dualgemm_prepare_mxfp4_args_t))

/* For each row, with the largest byte of those of its blocks that have an element other than zero, 0xFF left out:
 *
 *     row_exponent = largest - 133          byte of sf = max(byte - row_exponent, 0)
 *
 * So the largest factor of every row is 2^6, and element * 2^(byte - 127 + row_exponent) is what it was. A row
 * without such a block has the exponent 0. A byte of 0xFF stays 0xFF. Otherwise a block whose elements are all zero
 * gets the byte 0. */
DUALGEMM_API dualgemm_status_t dualgemm_prepare_mxfp4(const dualgemm_prepare_mxfp4_args_t* args,
                                                      dualgemm_stream_t stream) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status_t dualgemm_prepare_mxfp4_host(const dualgemm_prepare_mxfp4_args_t* args)
    DUALGEMM_NOEXCEPT;

/* ---- reference ----------------------------------------------------------------------------------------- */

/* Computes on the host, in double precision, what a launch with these arguments does, every pointer of which
 * points to host memory: C, SFC, D1, D2 and amax_out, each converted once from the exact result (to NVFP4 as
 * dualgemm_quantize_host does, from fp32), in the rows in use. Each step has the range of the launch's fp32:
 * a result that is too large becomes infinite, one below 2^-126 a multiple of 2^-149 (manual: FORMATS.md;
 * DEBUGGING.md says where launch and reference may differ). The rules of a launch hold; instance_id, max_sms
 * and flags change nothing, except EXACT_ACT, with which the activation has the range of fp64. `y`, if it is
 * not NULL, gets C before its conversion, without the encode scale: [m, n] doubles, for each matrix of a batch
 * and of groups with MASKED. Plain loops: 2 m n k multiplications. */
DUALGEMM_API dualgemm_status_t dualgemm_reference_host(const dualgemm_args_t* args,
                                                       double* y) DUALGEMM_NOEXCEPT;

/* ---- tuning: the choice by measured times --------------------------------------------------------------- */

/* Which instance a launch runs is chosen by a model of the GPU. dualgemm-tune times the instances on the GPU
 * that is there and writes what was fastest into a file (manual: TUNING.md), by which the choice goes instead
 * where the file has the launch's
 *
 *     products, a_dtype, c_dtype, plain or general epilogue, groups or none, number of problems (of the batch,
 *     or groups, empty ones counted), N, K
 *
 * and, for its rows, one of these rules. Rows are those of all problems together: M * batch; M with OFFSETS,
 * groups * M with MASKED; or, if there are expected_rows, so many for each group that can have a row.
 *   - that of the same rows: its instance;
 *   - rows between those of two entries: the instance of the one whose rows are nearer by their ratio, the
 *     smaller at equal ratios, if the model expects it to take at most 5 % longer than the fastest, else that
 *     of the other on the same condition, else the choice of the model;
 *   - rows below those of all entries, or above: the choice of the model.
 * The model also chooses where the instance cannot run, for lack of workspace, and for launches with max_sms
 * below the SMs of the device, with EXACT_ACT or with BATCH_INVARIANT. An instance_id is what is launched,
 * whatever a file says. The same call gives the same bits under the same file. All since 0.3.0. */

/* Reads a file; all launches of the process that come after it go by it, on devices as the current one. NULL:
 * by none any more. What is refused changes nothing, and dualgemm_last_error() names the file, the line and
 * the reason: a file that cannot be read, is damaged or has no end is INVALID_VALUE, a file for another GPU,
 * driver or library NOT_SUPPORTED. A process has room for 8,192 entries and 256 files, each counted once,
 * however often it is loaded. Not to be called in a stream capture.
 *
 * The file that the variable DUALGEMM_TUNING names is read once, by the first call of the process that asks
 * about the current device for a choice: dualgemm_init, a launch, dualgemm_can_implement,
 * dualgemm_workspace_size, dualgemm_tuning_info. A launch into a stream that is captured leaves that to a
 * later call. It is not read once a call of this function has succeeded. If it is refused, nothing fails. */
DUALGEMM_API dualgemm_status_t dualgemm_load_tuning(const char* path) DUALGEMM_NOEXCEPT;

/* What launches on the current device go by. */
typedef struct dualgemm_tuning_info {
  uint32_t struct_size;     /* set by dualgemm_tuning_info_init */
  int32_t entries;          /* of the file in force; 0: the model chooses, there is no file for this device */
  int32_t status;           /* dualgemm_status_t of the last file that was read; SUCCESS also if none was */
  int32_t from_environment; /* 1: that was the file of DUALGEMM_TUNING */
  const char* library;      /* what files for this library say of it. A static string */
  char path[512];           /* of the file in force, as it was given, cut off at its end; "" = none */
  char message[1024];       /* why the last file was refused; "" if it was not */
} dualgemm_tuning_info_t;

/* Sets the size, and all else to 0. */
DUALGEMM_API void dualgemm_tuning_info_init_sized(dualgemm_tuning_info_t* info,
                                                  size_t struct_size) DUALGEMM_NOEXCEPT;
#define dualgemm_tuning_info_init(info) \
  dualgemm_tuning_info_init_sized((info), sizeof(dualgemm_tuning_info_t))

/* Fills in a structure that dualgemm_tuning_info_init has seen. */
DUALGEMM_API dualgemm_status_t dualgemm_tuning_info(dualgemm_tuning_info_t* info) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* DUALGEMM_H */
