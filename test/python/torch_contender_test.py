#!/usr/bin/env python3
"""torch_contender_test.py -- layers of bench/torch that run a contender's kernel (bench/contender.h), on the CPU: one
that is written here in C and compiled. Exits with 77 where there is no torch, or where its operators are not built.

    torch_contender_test.py MODULE COMPILER [unittest's arguments]
"""
import ctypes
import gc
import pathlib
import subprocess
import sys
import tempfile
import unittest
import weakref

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [sys.argv[1], str(ROOT / "bench/torch")]
try:
    import torch
except ImportError as error:
    print(f"torch_contender_test.py: skipped, there is no torch: {error}")
    sys.exit(77)
try:
    from dualgemm import nn  # noqa: F401
except ImportError as error:
    print(f"torch_contender_test.py: skipped: {error}")
    sys.exit(77)
import contender as bench  # noqa: E402
try:
    import model as models
except SystemExit:
    models = None

SOURCE = """
#include <string.h>
#include <stdlib.h>
#include "bench/contender.h"

int alive = 0, left_out = 0, fails = 0;  /* left_out: elements of K */
typedef struct { contender_layer layer; _Float16* b; } made;

static float of_bf16(uint16_t bits) { uint32_t u = (uint32_t)bits << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t to_bf16(float f) {
  uint32_t u; memcpy(&u, &f, 4);
  return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
const char* contender_name(void) { return "host"; }
int64_t contender_layer_bytes(const contender_layer* layer) {
  return layer->k % 64 ? 0 : (int64_t)layer->n * layer->k * 2;
}
void* contender_create_layer(const contender_layer* layer, void* memory) {
  made* m = fails ? NULL : malloc(sizeof(made));
  if (!m) return NULL;
  m->layer = *layer;
  m->b = memcpy(memory, layer->b, contender_layer_bytes(layer));
  ++alive;
  return m;
}
int contender_multiply_layer(void* created, const void* a, int32_t m, void* c, void* stream) {
  const made* w = created;
  const int32_t n = w->layer.n, k = w->layer.k;
  for (int32_t i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int32_t j = 0; j < k - left_out; ++j) {
      const int32_t at = i / n * k + j;
      const float x = w->layer.bf16 ? of_bf16(((const uint16_t*)a)[at]) : (float)((const _Float16*)a)[at];
      sum += x * (float)w->b[i % n * k + j];
    }
    if (w->layer.bf16) ((uint16_t*)c)[i] = to_bf16(sum * w->layer.scale);
    else ((_Float16*)c)[i] = (_Float16)(sum * w->layer.scale);
  }
  return fails ? 5 : stream != NULL;
}
void contender_destroy(void* created) { --alive; free(created); }
"""
CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def compiled(folder, source, name):
    path = pathlib.Path(folder, name)
    path.with_suffix(".c").write_text(source, encoding="utf-8")
    subprocess.run([sys.argv[2], "-O2", "-shared", "-fPIC", f"-I{ROOT}", str(path.with_suffix(".c")), "-o", str(path)],
                   check=True)
    return path


def decoded(weight):
    """What quantize_weight makes of a float weight, in fp64: without the scale of all, and with it."""
    held = nn.quantize_weight(weight)
    packed = held["weight"].long()
    codes = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
    numbers = CODES[codes] * held["weight_scale"].double().repeat_interleave(16, -1)
    return numbers, numbers * held["weight_scale_2"].double()


class Contenders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = compiled(cls.folder.name, SOURCE, "host.so")
        cls.host = bench.Contender(cls.path)
        cls.library = ctypes.CDLL(str(cls.path))  # the same, for its variables

    def variable(self, name, value=None):
        variable = ctypes.c_int.in_dll(self.library, name)
        if value is not None:
            variable.value = value
            self.addCleanup(setattr, variable, "value", 0)
        return variable.value

    def layer(self, n=48, k=128, dtype=torch.bfloat16):
        torch.manual_seed(n + k)
        weight = torch.randn(n, k).to(dtype)
        exact, scale = bench.quantised(weight)
        return weight, bench.Linear(self.host, exact, scale, dtype)

    def test_the_weight_is_that_of_quantize_weight_exactly(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            weight = (torch.randn(24, 96) * torch.logspace(-6, 0, 24)[:, None]).to(dtype)
            exact, scale = bench.quantised(weight)
            self.assertIs(exact.dtype, torch.float16)
            numbers, scaled = decoded(weight)
            self.assertTrue(torch.equal(exact.double(), numbers))
            self.assertTrue(torch.equal(exact.double() * scale, scaled))

    def test_a_layer_multiplies_any_rows_in_its_type(self):
        for dtype, half_ulp in ((torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)):
            weight, layer = self.layer(dtype=dtype)
            b = decoded(weight)[1]
            for shape in ((1, 128), (5, 128), (2, 3, 128), (128,)):
                x = torch.randn(shape).to(dtype)
                y, expected = layer(x), x.double() @ b.T
                self.assertIs(y.dtype, dtype)
                bound = half_ulp * expected.abs() + 1e-4 * (x.double().abs() @ b.abs().T)
                self.assertTrue(bool(((y.double() - expected).abs() <= bound).all()))
            columns = torch.randn(128, 4).to(dtype).T  # not contiguous
            self.assertTrue(torch.equal(layer(columns), layer(columns.contiguous())))

    def test_its_memory_is_pytorchs_and_is_given_back(self):
        alive = self.variable("alive")
        exact, scale = bench.quantised(torch.randn(48, 128))
        layer, held = bench.Linear(self.host, exact, scale, torch.bfloat16), weakref.ref(exact)
        del exact
        self.assertIsNone(held())  # the weight in 16 bits
        self.assertEqual(self.variable("alive"), alive + 1)
        self.assertEqual([buffer.nbytes for buffer in layer.buffers()], [48 * 128 * 2])
        self.assertEqual(list(layer.parameters()), [])
        del layer
        gc.collect()
        self.assertEqual(self.variable("alive"), alive)

    def test_torch_compile_leaves_it_whole(self):
        _, layer = self.layer()
        called = torch.compile(layer, backend="eager", fullgraph=True)
        for rows in (1, 7):
            x = torch.randn(rows, 128).bfloat16()
            self.assertTrue(torch.equal(called(x), layer(x)))

    def test_another_product_is_noticed(self):
        self.variable("left_out", 16)
        with self.assertRaisesRegex(RuntimeError, "host: 1 x 48 x 128: another product: relative error 0.[1-9]"):
            self.layer()

    def test_what_it_does_not_take_or_fails_at_is_said(self):
        with self.assertRaisesRegex(ValueError, "host does not take a weight 48 x 96"): self.layer(k=96)
        _, layer = self.layer()
        with self.assertRaisesRegex(TypeError, "x: its elements are torch.float16"): layer(torch.randn(1, 128).half())
        self.variable("fails", 1)
        x = torch.zeros(1, 128).bfloat16()
        with self.assertRaisesRegex(RuntimeError, "contender_multiply_layer returned 5"): layer(x)
        with self.assertRaisesRegex(RuntimeError, "host failed to prepare a weight 48 x 128"): self.layer()

    def test_a_file_without_these_functions_is_refused_by_name(self):
        lacks = compiled(self.folder.name, SOURCE.replace("contender_multiply_layer", "multiply_layer"), "lacks.so")
        message = "lacks.so does not define contender_multiply_layer"
        with self.assertRaisesRegex(ValueError, message): bench.Contender(lacks)
        with self.assertRaisesRegex(OSError, "no/such/file.so"): bench.Contender("no/such/file.so")


@unittest.skipIf(models is None, "there is no transformers")
class Models(unittest.TestCase):
    def test_a_model_computes_with_every_linear_replaced(self):
        """Beside one with the same weights, q's, k's and v's quantised together, and gate's and up's."""
        models.DEVICE = "cpu"
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            host = bench.Contender(compiled(folder, SOURCE, "model.so"))
            config = models.config_of("tiny", 2)
            model, expected = models.built(config), models.built(config)
            for layer in expected.model.layers:
                attention, mlp = layer.self_attn, layer.mlp
                for together in ((attention.q_proj, attention.k_proj, attention.v_proj), (attention.o_proj,),
                                 (mlp.gate_proj, mlp.up_proj), (mlp.down_proj,)):
                    whole = decoded(torch.cat([linear.weight for linear in together]))[1]
                    parts = whole.split([len(linear.weight) for linear in together])
                    for linear, part in zip(together, parts): linear.weight.copy_(part)
            model = models.of_contender(host)(model)
            self.assertEqual([kind for kind in map(type, model.model.layers.modules()) if kind is torch.nn.Linear], [])
            ids = torch.arange(24)[None]
            for called in (model, torch.compile(model, backend="eager")):
                y, z = (m.model(ids, use_cache=False).last_hidden_state.double() for m in (called, expected))
                self.assertLess(float((y - z).norm() / z.norm()), 0.02)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
