#!/usr/bin/env python3
"""example.py -- one SwiGLU layer in NVFP4 with nothing but Python, libdualgemm and the CUDA runtime. Where there is
torch, cupy or jax, their tensors stand where DeviceMemory stands here."""
import array
import ctypes
import random
import sys

import dualgemm

cuda = dualgemm.cuda_runtime()


class DeviceMemory:
    """Bytes on the GPU; data_ptr() is all that the library asks for."""

    def __init__(self, size, host=None):
        self.pointer, self.size = ctypes.c_void_p(), ctypes.c_size_t(size)
        self.call(cuda.cudaMalloc, ctypes.byref(self.pointer), self.size)
        if host is not None: self.call(cuda.cudaMemcpy, self.pointer, self.place(host), self.size, 1)

    def __del__(self):
        cuda.cudaFree(self.pointer)

    def data_ptr(self):
        return self.pointer.value

    def to(self, host):
        self.call(cuda.cudaMemcpy, self.place(host), self.pointer, self.size, 2)  # waits for what is under way
        return host

    @staticmethod
    def place(host):
        return (ctypes.c_char * memoryview(host).nbytes).from_buffer(host)

    @staticmethod
    def call(function, *arguments):
        error = function(*arguments)
        if error: raise RuntimeError(f"{function.__name__}: CUDA error {error}")


def on_gpu(host):
    return DeviceMemory(memoryview(host).nbytes, host)


def normal(rows, columns, spread=1.0):
    return array.array("f", (random.gauss(0, spread) for _ in range(rows * columns)))


def main():
    m, n, k = 64, 128, 256
    x = normal(m, k)
    weights = [normal(n, k, spread=k**-0.5) for _ in range(2)]

    # Weights, on the host: packed E2M1, factors in 128x4 atoms, and a global scale that alpha takes out again.
    scales = [dualgemm.global_scale_host(w, n, k) for w in weights]
    b = [bytearray(n * k // 2) for _ in weights]
    sfb = [bytearray(dualgemm.sf_size(n, k)) for _ in weights]
    for i in range(2): dualgemm.quantize_host(weights[i], b[i], sfb[i], rows=n, k=k, x_dtype=dualgemm.DTYPE_FP32,
                                              global_scale=scales[i])
    alpha1, alpha2 = (1 / scale for scale in scales)

    # Activations, on the GPU. quantize and launch are asynchronous: what they read has to live until they are done.
    x_gpu, a, sfa = on_gpu(x), DeviceMemory(m * k // 2), DeviceMemory(dualgemm.sf_size(m, k))
    dualgemm.quantize(x_gpu, a, sfa, rows=m, k=k, x_dtype=dualgemm.DTYPE_FP32)
    b_gpu, sfb_gpu, c = [on_gpu(t) for t in b], [on_gpu(t) for t in sfb], DeviceMemory(m * n * 4)
    dualgemm.launch(a, *b_gpu, sfa, *sfb_gpu, c, alpha1, alpha2, m=m, n=n, k=k, c_dtype=dualgemm.DTYPE_FP32)

    # The same in double precision, on the host.
    a, sfa = a.to(bytearray(m * k // 2)), sfa.to(bytearray(dualgemm.sf_size(m, k)))
    expected, got = array.array("f", bytes(m * n * 4)), c.to(array.array("f", bytes(m * n * 4)))
    dualgemm.reference_host(a, *b, sfa, *sfb, expected, alpha1, alpha2, m=m, n=n, k=k)
    error = max(abs(x - y) for x, y in zip(got, expected)) / max(map(abs, expected))
    print(f"{dualgemm.build_info()}\n{m * n} elements of C, largest error {error:.1e} of the largest element: "
          f"{'correct' if error < 2**-16 else 'WRONG'}")
    return error >= 2**-16


if __name__ == "__main__":
    sys.exit(main())
