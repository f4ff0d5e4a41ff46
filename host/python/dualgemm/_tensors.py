"""Finds out where a tensor of Python lies, and in which shape. Nothing is copied and no library is needed.

A tensor is an address (an integer); an object with `data_ptr()`, as torch has it; one with `__dlpack__`, as cupy, jax,
numpy and torch have it; or a buffer in host memory, such as bytes or array.array."""
import ctypes
import operator
from ctypes import c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import NamedTuple, Optional

CPU, CUDA = 1, 2  # kinds of memory, as DLPack numbers them

ELEMENTS = ("bfloat16", "float16", "float32", "float4_e2m1fn", "float8_e4m3fn")  # as DTYPE_* number them


class View(NamedTuple):
    """What is known of a tensor. Strides count elements; `bits` is the size of one. Of an address nothing else is
    known."""
    address: int
    shape: Optional[tuple] = None
    strides: Optional[tuple] = None
    bits: int = 0
    element: Optional[str] = None  # as torch names it
    device: Optional[int] = None  # kind of memory, as DLPack numbers it
    read_only: bool = False
    held: object = None  # whose memory it is: the tensor, or the capsule that owns it

    @property
    def dtype(self):
        """Returns DTYPE_*, or None if the type of an element does not tell it: a byte may be E2M1 or E4M3."""
        return ELEMENTS.index(self.element) if self.element in ELEMENTS else None

    def gapless(self, ordered):
        """Returns whether its elements lie without gaps; if `ordered`, they also have to lie in their order."""
        if 0 in self.shape: return True
        dimensions = [(stride, size) for stride, size in zip(self.strides, self.shape) if size != 1]
        expected = 1
        for stride, size in reversed(dimensions) if ordered else sorted(dimensions):
            if stride != expected: return False
            expected *= size
        return True

    def size(self):
        """Returns the bytes from its first element to its last."""
        if 0 in self.shape: return 0
        return (1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))) * self.bits // 8


class _DlTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    """DLManagedTensor begins with the tensor."""
    _fields_ = [("tensor", _DlTensor)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _DlTensor)]


class _Buffer(ctypes.Structure):
    """Py_buffer"""
    _fields_ = [("buf", c_void_p), ("obj", py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_void_p), ("shape", c_void_p),
                ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


# Names of elements by DLPack's type code, and by the format of a buffer.
_CODES = {0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 10: "float8_e4m3fn", 14: "float8_e8m0fnu",
          17: "float4_e2m1fn"}
_FORMATS = {**dict.fromkeys("efd", "float"), **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("cBHILQN", "uint")}


def _compact_strides(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1): strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def _said(tensor, attribute):
    """Returns the attribute, or if it is a method, what that returns."""
    value = getattr(tensor, attribute)
    return value() if callable(value) else value


def _integers(value, name, attribute):
    try:
        return tuple(map(operator.index, value))
    except TypeError:
        raise TypeError(f"{name}: {attribute} is no sequence of integers: {value!r}") from None


def _element_size(tensor, name):
    """Returns the bytes of an element. torch has element_size() and itemsize, other libraries itemsize, often of the
    dtype."""
    dtype = getattr(tensor, "dtype", None)
    for owner, attribute in (tensor, "element_size"), (tensor, "itemsize"), (dtype, "itemsize"):
        if not hasattr(owner, attribute): continue
        size = _said(owner, attribute)
        if hasattr(size, "__index__") and operator.index(size) > 0: return operator.index(size)
        raise TypeError(f"{name}: {attribute} is no number of bytes: {size!r}")
    raise TypeError(f"{name}: has data_ptr() and a shape, and neither element_size() nor itemsize, nor a dtype that "
                    "has it: nobody can tell how many bytes its elements have")


def _of_pointer(tensor, name):
    """Returns the View of an object with data_ptr(), and with as much else of torch's interface as it has."""
    if not callable(tensor.data_ptr): raise TypeError(f"{name}: data_ptr is no function")
    address = tensor.data_ptr()
    if not hasattr(address, "__index__"): raise TypeError(f"{name}: data_ptr() is no address: {address!r}")
    address = operator.index(address)
    if not hasattr(tensor, "shape"): return View(address, held=tensor)
    shape = _integers(tensor.shape, name, "shape")
    said = _said(tensor, "stride") if hasattr(tensor, "stride") else None
    strides = _compact_strides(shape) if said is None else _integers(said, name, "stride")
    if len(strides) != len(shape):
        raise TypeError(f"{name}: has {len(shape)} dimensions and {len(strides)} strides")
    element = str(getattr(tensor, "dtype", "")).split(".")[-1].replace("fn_x2", "fn") or None
    kind = getattr(getattr(tensor, "device", None), "type", None)
    device = None if kind is None else CPU if kind == "cpu" else CUDA
    return View(address, shape, strides, 8 * _element_size(tensor, name), element, device, held=tensor)


def _capsule(tensor, name):
    """Returns the tensor's capsule. It asks for no order between the work that wrote the tensor and a launch: the
    stream of the launch says that."""
    if not callable(tensor.__dlpack__): raise TypeError(f"{name}: __dlpack__ is no function")
    if not hasattr(tensor, "__dlpack_device__"): raise TypeError(f"{name}: has __dlpack__ and no __dlpack_device__")
    device = _said(tensor, "__dlpack_device__")
    if not isinstance(device, tuple) or not device:
        raise TypeError(f"{name}: __dlpack_device__() is no pair of numbers: {device!r}")
    stream = None if device[0] == CPU else -1
    try:
        capsule = tensor.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # the tensor's DLPack is older than version 1
        capsule = tensor.__dlpack__(stream=stream)
    if type(capsule).__name__ == "PyCapsule": return capsule
    raise TypeError(f"{name}: __dlpack__() gives no capsule, but a {type(capsule).__name__}")


def _of_dlpack(capsule):
    """Returns the View of a capsule. The capsule keeps its name, so that its maker frees the memory when the View,
    which holds the capsule, is gone."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.argtypes, name.restype = [py_object], ctypes.c_char_p
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [py_object, ctypes.c_char_p], c_void_p
    kind = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}.get(name(capsule))
    if kind is None: raise TypeError(f"a capsule of DLPack is named dltensor and is used once, not {name(capsule)}")
    managed = kind.from_address(pointer(capsule, name(capsule)))
    if kind is _Versioned and managed.major != 1: raise TypeError(f"DLPack {managed.major} is not known, 1 is")
    t = managed.tensor
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else _compact_strides(shape)
    element = _CODES.get(t.code, "type %d of DLPack with {} bits" % t.code).format(t.bits)
    if t.lanes != 1 and t.bits != 4: element = f"{t.lanes} times {element}"
    read_only = kind is _Versioned and managed.flags & 3 != 0  # what is written to a copy is lost
    return View((t.data or 0) + t.byte_offset, shape, strides, t.bits * t.lanes, element, t.device_type, read_only,
                capsule)


def _of_buffer(tensor):
    view, raw = memoryview(tensor), _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(py_object(tensor), ctypes.byref(raw), c_int(0x1c))  # PyBUF_RECORDS_RO
    address = raw.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
    bits, kind = 8 * view.itemsize, _FORMATS.get(view.format.lstrip("@=<"))
    element = f"{kind}{bits}" if kind else f"of format {view.format}"
    strides = tuple(x // view.itemsize for x in view.strides)
    return View(address, view.shape, strides, bits, element, CPU, view.readonly, view)


def _viewed(tensor, name):
    if tensor is None: return View(0)
    if isinstance(tensor, int): return View(tensor)
    if hasattr(tensor, "data_ptr"): return _of_pointer(tensor, name)
    if type(tensor).__name__ == "PyCapsule": return _of_dlpack(tensor)
    if hasattr(tensor, "__dlpack__"): return _of_dlpack(_capsule(tensor, name))
    try:
        return _of_buffer(tensor)
    except TypeError:
        raise TypeError(f"{name}: a tensor has data_ptr(), __dlpack__ or a buffer, or is an address, and this is a "
                        f"{type(tensor).__name__}") from None


def _fits(address, name):
    """Returns the address. Checks that it is one: ctypes would cut what is too large, so that 2**64 became NULL."""
    if not 0 <= address < 1 << 8 * ctypes.sizeof(c_void_p):
        raise ValueError(f"{name}={address}: no address has this value")
    return address


def view(tensor, name):
    """Returns the View of `tensor`, the argument of this name."""
    found = _viewed(tensor, name)
    _fits(found.address, name)
    return found


def stream_handle(stream):
    """Returns the number of a stream: the argument itself, or what its __cuda_stream__ or torch's cuda_stream says."""
    if stream is None: return 0
    if type(stream) is int: return _fits(stream, "stream")
    if hasattr(stream, "__cuda_stream__"):
        said = stream.__cuda_stream__
        stream = (said() if callable(said) else said)[1]
    handle = getattr(stream, "cuda_stream", stream)
    # A handle may convert to its number, as those of NVIDIA's own bindings do; a float is none.
    if not hasattr(handle, "__index__") and (hasattr(handle, "__float__") or not hasattr(handle, "__int__")):
        raise ValueError(f"stream={handle!r}: neither a number nor a stream")
    return _fits(int(handle), "stream")
