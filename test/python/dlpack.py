"""dlpack.py -- tensors that hand themselves over by DLPack, as cupy's and torch's do, without either: device memory of
the simulated runtime, or a buffer in host memory."""
import ctypes
import math

from example import DeviceMemory, cuda

UINT8, E2M1_X2, BF16, FP32, INT32 = (1, 8, 1), (17, 4, 2), (4, 16, 1), (2, 32, 1), (0, 32, 1)


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor"""
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", DlTensor)]


def gone(capsule):
    """Of a capsule that nobody has used: its maker takes it back."""
    api = ctypes.pythonapi
    for name, kind in ((b"dltensor", Managed), (b"dltensor_versioned", Versioned)):
        if api.PyCapsule_IsValid(ctypes.c_void_p(capsule), name):
            api.PyCapsule_GetPointer.argtypes, api.PyCapsule_GetPointer.restype = None, ctypes.c_void_p
            address = api.PyCapsule_GetPointer(ctypes.c_void_p(capsule), name)
            kind.from_address(address).deleter(address)


GONE = DELETER(gone)


class Tensor:
    """`memory` with a shape, strides in elements, a type and a byte offset. `live` counts capsules. Capsules of an
    `owning` one have a copy of the memory, of which nothing is left when they go."""
    live, kept = 0, []

    def __init__(self, memory, dtype, shape, strides=None, offset=0, versioned=True, read_only=False, owning=False):
        self.memory, self.dtype, self.shape, self.offset, self.owning = memory, dtype, tuple(shape), offset, owning
        self.strides, self.versioned, self.read_only = strides and tuple(strides), versioned, read_only
        self.on_gpu = isinstance(memory, DeviceMemory)

    def __dlpack_device__(self):
        return (2 if self.on_gpu else 1), 0

    def __dlpack__(self, **asked):
        if not self.versioned and "max_version" in asked: raise TypeError("max_version")
        kind, name = (Versioned, b"dltensor_versioned") if self.versioned else (Managed, b"dltensor")
        arrays = [(ctypes.c_int64 * len(x))(*x) for x in (self.shape, self.strides or ())]

        memory = bytearray(self.memory) if self.owning else self.memory

        def release(_address):
            Tensor.live -= 1
            managed.tensor.data = 1  # of no use to anybody who still looks
            if self.owning: memory[:] = bytes(len(memory))

        managed = kind()
        Tensor.live += 1
        managed.deleter = DELETER(release)
        data = memory.data_ptr() if self.on_gpu else ctypes.addressof(DeviceMemory.place(memory))
        managed.tensor = DlTensor(data, self.__dlpack_device__(), len(self.shape), *self.dtype,
                                  ctypes.addressof(arrays[0]), ctypes.addressof(arrays[1]) if self.strides else None,
                                  self.offset)
        if self.versioned: managed.major, managed.minor, managed.flags = 1, 0, int(self.read_only)
        Tensor.kept.append((managed, arrays, memory))  # a capsule may outlive the object that made it
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes, new.restype = [ctypes.c_void_p, ctypes.c_char_p, DELETER], ctypes.py_object
        return new(ctypes.addressof(managed), name, GONE)

    def copied(self):
        """The same tensor in host memory."""
        memory = self.memory.to(bytearray(self.memory.size.value))
        return Tensor(memory, self.dtype, self.shape, self.strides, self.offset, self.versioned)

    def fill(self, data):
        """Writes bytes to its device memory."""
        self.memory.call(cuda.cudaMemcpy, self.memory.pointer, DeviceMemory.place(bytearray(data)), self.memory.size, 1)

    def bytes(self):
        return bytes(self.memory.to(bytearray(self.memory.size.value)) if self.on_gpu else self.memory)


def on_gpu(data, dtype, shape, **more):
    return Tensor(DeviceMemory(len(data), bytearray(data)), dtype, shape, **more)


def empty(dtype, shape, **more):
    return on_gpu(b"\xff" * (math.prod(shape) * dtype[1] * dtype[2] // 8), dtype, shape, **more)
