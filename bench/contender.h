/* contender.h -- a kernel of somebody else's, as a shared object that `dualgemm_bench --contender FILE.so`
   times in turns with the library: what to define, in C or C++, with C linkage. bench/contenders has
   wrappers. The programs of bench/torch take the same files, where these define the functions of a layer. */
#ifndef DUALGEMM_BENCH_CONTENDER_H
#define DUALGEMM_BENCH_CONTENDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One input set, on the device, compact. The numbers are those of the library's NVFP4 operands, exactly. */
typedef struct {
  int32_t m, n, k;
  const void* a; /* fp16 [m, k] */
  const void* b; /* fp16 [products n, k]: of two the weights of the gate above those of the other product */
  int32_t products; /* 2, or 1 */
} contender_problem;

/* The name in tables and reports. */
const char* contender_name(void);

/* 1 where the products are those of the numbers above, which the benchmark then verifies; 0 where the weights
   are others, of another format. */
int contender_is_exact(void);

/* Returns what a launch needs of an input set, weights in its own format for example; NULL where it does not
   take this shape, or has no memory. The operands live longer. This is not timed. */
void* contender_create(const contender_problem* problem);

/* Writes the products, fp16 [m, products n], gate left of the other one; the activation is the benchmark's.
   `stream` is a cudaStream_t, which may be captured into a graph. Returns 0, or what went wrong. */
int contender_multiply(void* created, void* products, void* stream);

void contender_destroy(void* created);

/* Optional: 1 where contender_create looks at `products`. Without it no problem of one product comes. */
int contender_takes_one_product(void);

/* A linear layer of a model: C = scale A B^T, with any A. */
typedef struct {
  int32_t n, k;
  const void* b; /* fp16 [n, k], compact: numbers of NVFP4 without the scale of the whole weight, exactly */
  float scale;   /* of the whole weight */
  int32_t bf16;  /* 1 where A and C are bf16, 0 where they are fp16 */
} contender_layer;

/* The following three are optional, all of them or none. bench/torch calls them, and dualgemm_bench does not.

   Returns the bytes that a layer keeps on the device; 0 where it does not take this one. `b` is not read. */
int64_t contender_layer_bytes(const contender_layer* layer);

/* Returns what a launch needs of a layer; NULL where something fails. Its weights lie in `memory`:
   contender_layer_bytes of them on the device, aligned to 256 bytes, which stay until contender_destroy. `b`
   is read before this returns, and not later. This is not timed. */
void* contender_create_layer(const contender_layer* layer, void* memory);

/* Writes C [m, n] for A [m, k] in the layer's type, both compact and aligned to 16 bytes, with one row or
   more. They may be others in each call, which may be captured into a graph. Returns 0, or what went wrong. */
int contender_multiply_layer(void* created, const void* a, int32_t m, void* c, void* stream);

#ifdef __cplusplus
}
#endif
#endif
