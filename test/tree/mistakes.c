/* mistakes.c -- the mistakes of host/DEBUGGING.md, each in a launch of its own: mistakes NAME [right]. With
 * `right` the same launch without the mistake. debugging.py runs it in the simulator. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm.h"

enum { kM = 64, kN = 64, kK = 256, kWorkspace = 1 << 20 };

static void must(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s: %d %s\n", what, status, dualgemm_last_error());
  exit(1);
}

static void* room(size_t bytes) {
  void* memory = NULL;
  must(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

static void* zeros(size_t bytes) {
  void* memory = room(bytes);
  must(cudaMemset(memory, 0, bytes), "cudaMemset");
  return memory;
}

static cudaStream_t stream_of_its_own(void) {
  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

/* The first instance for 9.0 that a pass over A precedes: its name has an x behind k256. */
static int32_t instance_with_a_pass(void) {
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    must(dualgemm_instance_info(id, &info), "dualgemm_instance_info");
    if (info.a_dtype == DUALGEMM_DTYPE_NVFP4 && !info.grouped && strstr(info.name, "k256x_bf16")) return id;
  }
  exit(2);
}

/* Quantises `rows` rows of zeros to q and sf. */
static void quantise(int32_t rows, const void* q, const void* sf, cudaStream_t stream) {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = rows, args.k = kK;
  args.x = zeros((size_t)rows * kK * 2);
  args.q = (void*)q, args.sf = (void*)sf;
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  must(dualgemm_quantize(&args, stream), "dualgemm_quantize");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* mistake = argv[1];
  const int wrong = argc == 2;
  const size_t b_bytes = (size_t)kN * kK / 2, sf_bytes = dualgemm_sf_size(kN, kK), c_bytes = kM * kN * 2;
  const cudaStream_t stream = stream_of_its_own(), other = wrong ? stream_of_its_own() : stream;

  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = kM, args.n = kN, args.k = kK;
  args.a = zeros((size_t)kM * kK / 2), args.sfa = zeros(dualgemm_sf_size(kM, kK));
  args.b1 = zeros(b_bytes), args.b2 = zeros(b_bytes);
  args.sfb1 = zeros(sf_bytes), args.sfb2 = zeros(sf_bytes);
  args.c = room(c_bytes);
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

  if (strcmp(mistake, "host pointer") == 0) {
    args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
    if (wrong) args.b2 = aligned_alloc(16, b_bytes);
  } else if (strcmp(mistake, "freed memory") == 0) {
    args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
    if (wrong) must(cudaFree((void*)args.b2), "cudaFree");
  } else if (strcmp(mistake, "small buffer") == 0) {
    args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
    if (wrong) args.c = room(c_bytes - 16);
  } else if (strcmp(mistake, "unwritten factors") == 0) {
    if (wrong) args.sfb2 = room(sf_bytes);
  } else if (strcmp(mistake, "another stream") == 0) {
    quantise(kM, args.a, args.sfa, other);
  } else if (strcmp(mistake, "static weights") == 0) {
    quantise(kN, args.b1, args.sfb1, stream);
    args.flags = DUALGEMM_FLAG_PDL | (wrong ? DUALGEMM_FLAG_STATIC_WEIGHTS : 0);
  } else if (strcmp(mistake, "shared workspace") == 0) {
    args.instance_id = instance_with_a_pass();
    args.workspace = room(kWorkspace), args.workspace_size = kWorkspace;
    dualgemm_args_t beside = args;
    beside.c = room(c_bytes);
    must(dualgemm_launch_ex(&beside, other), "dualgemm_launch_ex");
  } else {
    return 2;
  }
  must(dualgemm_launch_ex(&args, stream), "dualgemm_launch_ex");
  must(cudaDeviceSynchronize(), "the kernel");
  printf("it ran\n");
  return 0;
}
