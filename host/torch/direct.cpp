// direct.cpp -- the operators as functions of Python that call no dispatcher of PyTorch: the module
// dualgemm._direct, in the same file as the operators. Tensors are read by DLPack. The dispatcher still gets
// every call in which it may have something to do: calls with tensors of another class, without memory, or
// with derivatives; calls within modes of PyTorch; calls while something is traced or profiled. It also gets
// calls whose arguments do not suit the schema, and refuses them.

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "host/torch/dlpack.h"
#include "host/torch/operators.h"
#include "host/torch/python.h"

// PyTorch has it from 2.14 on.
extern "C" __attribute__((weak)) AOTITorchError torch_tensor_to_pyobject(AtenTensorHandle handle, void* type,
                                                                         void** object);

namespace dualgemm::torch_ops {
namespace {

// Runs a function of this module's interface, whose exceptions become Python's.
template <typename Function>
PyObject* guarded(Function function) {
  try {
    return function();
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// ---- what is known of PyTorch ----

// A function without arguments that says whether the dispatcher has to see all calls.
struct Watcher {
  Object function;
  PyCFunction inside = nullptr;  // if it is in C and takes `self` alone: a faster call
  PyObject* self = nullptr;

  explicit Watcher(PyObject* called) : function(held(called)) {
    const int flags = PyCFunction_GetFlags(called);
    if (PyErr_Occurred()) PyErr_Clear();
    else if (flags == METH_NOARGS) {
      inside = PyCFunction_GetFunction(called);
      self = PyCFunction_GetSelf(called);
    }
  }
  bool fires() const {
    return is_true(
        made(inside ? inside(self, nullptr) : PyObject_CallFunctionObjArgs(function.get(), nullptr)).get());
  }
};

struct NamedType {
  DLDataType dlpack;
  Type type;
  Object object;  // torch.uint8, ...
};

// This object lives as long as the process, because Python may end before static objects are destroyed.
struct Torch {
  decltype(DLPackExchangeAPI::dltensor_from_py_object_no_sync) describe = nullptr;
  Object tensor, parameter;             // classes
  Object is_neg, empty_strided;         // functions
  Object device, dtype, requires_grad;  // names
  Object profiler, profiling;           // a module, and the name of its flag
  Object count_versions;                // a function of several tensors
  std::vector<Watcher> watchers;
  NamedType types[10] = {{{kDLUInt, 8, 1}, kUint8, {}},          {{kDLInt, 8, 1}, kInt8, {}},
                         {{kDLInt, 16, 1}, kInt16, {}},          {{kDLInt, 32, 1}, kInt32, {}},
                         {{kDLFloat, 16, 1}, kFp16, {}},         {{kDLFloat, 32, 1}, kFp32, {}},
                         {{kDLBfloat, 16, 1}, kBf16, {}},        {{kDLFloat8_e4m3fn, 8, 1}, kE4m3, {}},
                         {{kDLFloat8_e8m0fnu, 8, 1}, kE8m0, {}}, {{kDLFloat4_e2m1fn, 4, 2}, kE2m1, {}}};
};
const Torch* known = nullptr;

// Returns the table of functions that has the layout of dlpack.h.
const DLPackExchangeAPI& exchange_of(PyObject* tensor) {
  const Object capsule = attribute(tensor, "__dlpack_c_exchange_api__");
  auto* api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.get(), kDLPackExchangeApi));
  if (!api) throw PythonError();
  while (api && api->version.major != kDLPackMajor) api = api->prev_api;
  if (!api || !api->dltensor_from_py_object_no_sync) {
    PyErr_SetString(PyExc_ImportError, "PyTorch describes no tensors by DLPack 1");
    throw PythonError();
  }
  return *api;
}

// This is _start(torch, watchers, profiler, name of its flag, function that counts versions), which
// torch_op.py calls once.
PyObject* start(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject *const torch = item(arguments, 0), *const watchers = item(arguments, 1);
    auto all = std::make_unique<Torch>();
    all->tensor = attribute(torch, "Tensor");
    all->parameter = attribute(attribute(torch, "nn").get(), "Parameter");
    all->describe = exchange_of(all->tensor.get()).dltensor_from_py_object_no_sync;
    all->is_neg = attribute(all->tensor.get(), "is_neg");
    all->empty_strided = attribute(torch, "empty_strided");
    all->device = made(PyUnicode_InternFromString("device"));
    all->dtype = made(PyUnicode_InternFromString("dtype"));
    all->requires_grad = made(PyUnicode_InternFromString("requires_grad"));
    for (Py_ssize_t i = 0, count = PyTuple_Size(watchers); i < count; ++i)
      all->watchers.emplace_back(item(watchers, i));
    all->profiler = held(item(arguments, 2));
    all->profiling = held(item(arguments, 3));
    all->count_versions = held(item(arguments, 4));
    // A PyTorch without the flag is refused here, and not by each call.
    made(PyObject_GetAttr(all->profiler.get(), all->profiling.get()));
    for (NamedType& each : all->types)
      each.object = attribute(torch, type_name(each.type).substr(std::string_view("torch.").size()).c_str());
    known = all.release();
    Py_IncRef(Py_None);
    return Py_None;
  });
}

// ---- arguments ----

enum class Kind { kTensor, kOptionalTensor, kNumber, kOptionalNumber, kInteger, kType, kOptionalType };

struct Value {
  bool given;  // else None
  DLTensor tensor;
  int32_t type;  // of the tensor's elements, or the value itself
  double number;
  int64_t integer;
};

bool is_a(PyObject* object, const PyTypeObject& type) { return Py_TYPE(object) == &type; }

// Returns whether the tensor may stand for the negatives of the numbers in its memory. PyTorch has such
// tensors only for the imaginary parts of conjugates, and these parts lie two numbers apart.
bool may_be_negated(const DLTensor& tensor) {
  if (tensor.dtype.code == kDLInt || tensor.dtype.code == kDLUInt) return false;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] > 1 && tensor.strides[i] % 2 != 0) return false;
  return true;
}

bool is_empty(const DLTensor& tensor) {
  return std::find(tensor.shape, tensor.shape + tensor.ndim, 0) != tensor.shape + tensor.ndim;
}

// Each of the following functions reads an argument, and returns false if the dispatcher has to see it.

bool read_memory(PyObject* object, Value* value) {
  if (known->describe(object, &value->tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  const DLTensor& tensor = value->tensor;
  if (tensor.device.device_type != kDLCUDA && tensor.device.device_type != kDLCPU) return false;
  for (const NamedType& each : known->types) {
    const DLDataType& type = each.dlpack;
    if (type.code != tensor.dtype.code || type.bits != tensor.dtype.bits || type.lanes != tensor.dtype.lanes)
      continue;
    value->type = each.type;
    return tensor.data || is_empty(tensor);  // those of tracers have no address
  }
  return false;
}

bool read_tensor(PyObject* object, bool derivatives, Value* value) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (type != known->tensor.get() && type != known->parameter.get()) return false;
  if (!read_memory(object, value)) return false;
  if (derivatives && is_true(made(PyObject_GetAttr(object, known->requires_grad.get())).get())) return false;
  return !may_be_negated(value->tensor) ||
         !is_true(made(PyObject_CallFunctionObjArgs(known->is_neg.get(), object, nullptr)).get());
}

// Returns whether Python's number fits the type that it was read as.
bool fits() {
  const bool good = !PyErr_Occurred();
  if (!good) PyErr_Clear();
  return good;
}

bool read_number(PyObject* object, Value* value) {
  if (!is_a(object, PyFloat_Type) && !is_a(object, PyLong_Type)) return false;
  value->number = PyFloat_AsDouble(object);
  return fits();
}

bool read_integer(PyObject* object, Value* value) {
  if (!is_a(object, PyLong_Type)) return false;
  value->integer = PyLong_AsLongLong(object);
  return fits();
}

bool read_type(PyObject* object, Value* value) {
  if (is_a(object, PyLong_Type)) {  // PyTorch's number of a type, as in a schema
    value->type = static_cast<int32_t>(PyLong_AsLong(object));
    return fits();
  }
  for (const NamedType& each : known->types) {
    if (object != each.object.get()) continue;
    value->type = each.type;
    return true;
  }
  return false;
}

bool read(Kind kind, PyObject* object, bool derivatives, Value* value) {
  value->given = object != Py_None;
  const bool optional =
      kind == Kind::kOptionalTensor || kind == Kind::kOptionalNumber || kind == Kind::kOptionalType;
  if (!value->given) return optional;
  switch (kind) {
    case Kind::kTensor:
    case Kind::kOptionalTensor: return read_tensor(object, derivatives, value);
    case Kind::kNumber:
    case Kind::kOptionalNumber: return read_number(object, value);
    case Kind::kInteger: return read_integer(object, value);
    default: return read_type(object, value);
  }
}

// ---- functions ----

constexpr size_t kMostArguments = 36, kMostResults = 4;

struct Argument {
  Object name;
  Kind kind;
  bool by_name, has_default;
  Value otherwise;  // its default
};

struct Function {
  Compute compute = nullptr;
  Object dispatched;  // the operator of torch.ops
  std::vector<Argument> arguments;
  size_t positional = 0;  // arguments that may go without a name
  PyMethodDef method{};
};

// A call's arguments as Python hands them over.
struct Handed {
  PyObject* const* values;
  size_t positional;
  PyObject* names;  // a tuple, or null; their values come last
  size_t named() const { return names ? static_cast<size_t>(PyTuple_Size(names)) : 0; }
};

size_t place_of(const Function& function, PyObject* name) {
  const auto& all = function.arguments;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].name.get() == name) return i;
  for (size_t i = 0; i < all.size(); ++i)  // one that is not interned
    if (PyUnicode_Compare(all[i].name.get(), name) == 0) return i;
  return all.size();
}

class Direct final : public Call {
 public:
  ~Direct() = default;

  // Returns false if the dispatcher has to see the call.
  bool take(const Function& function, const Handed& handed) {
    const auto& arguments = function.arguments;
    if (handed.positional > function.positional) return false;
    std::copy_n(handed.values, handed.positional, given_);
    for (size_t i = 0, count = handed.named(); i < count; ++i) {
      const size_t place = place_of(function, item(handed.names, static_cast<Py_ssize_t>(i)));
      if (place == arguments.size() || given_[place]) return false;
      given_[place] = handed.values[handed.positional + i];
    }
    const bool derivatives = aoti_torch_grad_mode_is_enabled();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!given_[i] && !arguments[i].has_default) return false;
      values_[i] = given_[i] ? &read_[i] : &arguments[i].otherwise;
      if (given_[i] && !read(arguments[i].kind, given_[i], derivatives, &read_[i])) return false;
    }
    return true;
  }

  // Computes while other threads of Python run: a launch may wait for the GPU.
  PyObject* compute(Compute function) {
    {
      struct Unlocked {
        PyThreadState** thread;
        ~Unlocked() { PyEval_RestoreThread(*thread); }
      } const unlocked = {&thread_};
      thread_ = PyEval_SaveThread();
      function(*this);
    }
    if (written_ > 0) count_versions();
    if (made_ == 0) Py_IncRef(Py_None);
    if (made_ < 2) return made_ == 0 ? Py_None : results_[0].release();
    Object all = made(PyTuple_New(static_cast<Py_ssize_t>(made_)));
    for (size_t i = 0; i < made_; ++i)
      PyTuple_SetItem(all.get(), static_cast<Py_ssize_t>(i), results_[i].release());
    return all.release();
  }

  Tensor tensor(const char* name) override { return tensor_of(name, next()); }
  Tensor optional_tensor(const char* name) override { return tensor_of(name, next()); }
  Tensor output(const char* name) override { return tensor_of(name, next_written()); }
  Tensor optional_output(const char* name) override { return tensor_of(name, next_written()); }
  double number() override { return next().number; }
  double optional_number(double otherwise) override {
    const Value& value = next();
    return value.given ? value.number : otherwise;
  }
  int64_t integer() override { return next().integer; }
  int32_t type() override { return next().type; }
  int32_t optional_type(int32_t otherwise) override {
    const Value& value = next();
    return value.given ? value.type : otherwise;
  }

  // The exchange has an allocator, too, but to record another stream that uses its memory has no effect.
  Tensor result(const char* name, const Tensor& beside, int32_t type, int64_t dims, const int64_t* sizes,
                const int64_t* strides) override {
    if (!torch_tensor_to_pyobject) return result_by_python(name, type, dims, sizes, strides);
    Handle handle = allocate(beside, type, dims, sizes, strides);
    const Locked locked(&thread_);
    void* object = nullptr;
    check_torch(torch_tensor_to_pyobject(handle.get(), nullptr, &object), "tensor_to_pyobject");
    results_[made_++].reset(static_cast<PyObject*>(object));
    const Tensor tensor = describe(name, handle);
    handle.reset();  // the object holds the tensor now; this needs the lock
    return tensor;
  }

 private:
  // Holds the interpreter's lock for as long as it lives.
  class Locked {
   public:
    explicit Locked(PyThreadState** thread) : thread_(thread) { PyEval_RestoreThread(*thread_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { *thread_ = PyEval_SaveThread(); }

   private:
    PyThreadState** thread_;
  };

  Tensor result_by_python(const char* name, int32_t type, int64_t dims, const int64_t* sizes,
                          const int64_t* strides) {
    const Locked locked(&thread_);
    const Object places = made(PyTuple_New(2));
    PyTuple_SetItem(places.get(), 0, tuple_of(sizes, dims).release());
    PyTuple_SetItem(places.get(), 1, tuple_of(strides, dims).release());
    const Object named = made(PyDict_New());
    const Object device = made(PyObject_GetAttr(given_[0], known->device.get()));  // that of all tensors
    const NamedType* const found = std::find_if(std::begin(known->types), std::end(known->types),
                                                [&](const NamedType& each) { return each.type == type; });
    if (PyDict_SetItem(named.get(), known->device.get(), device.get()) != 0 ||
        PyDict_SetItem(named.get(), known->dtype.get(), found->object.get()) != 0)
      throw PythonError();
    Object& place = results_[made_++];
    place = made(PyObject_Call(known->empty_strided.get(), places.get(), named.get()));
    Value value;
    value.given = true;
    if (!read_memory(place.get(), &value)) refuse("%s: PyTorch does not describe it", name);
    return tensor_of(name, value);
  }

  const Value& next() { return *values_[next_++]; }
  const Value& next_written() {
    const Value& value = *values_[next_];
    if (value.given) outputs_[written_++] = given_[next_];
    ++next_;
    return value;
  }

  void count_versions() {
    const Object outputs = made(PyTuple_New(static_cast<Py_ssize_t>(written_)));
    for (size_t i = 0; i < written_; ++i)
      PyTuple_SetItem(outputs.get(), static_cast<Py_ssize_t>(i), held(outputs_[i]).release());
    made(PyObject_CallFunctionObjArgs(known->count_versions.get(), outputs.get(), nullptr));
  }

  static Tensor tensor_of(const char* name, const Value& value) {
    Tensor tensor;
    tensor.name = name;
    tensor.given = value.given;
    if (!value.given) return tensor;
    const bool cuda = value.tensor.device.device_type == kDLCUDA;
    tensor.dims = value.tensor.ndim;
    tensor.sizes = value.tensor.shape;
    tensor.strides = value.tensor.strides;
    tensor.type = value.type;
    tensor.device_type = cuda ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu();
    tensor.device_index = cuda ? value.tensor.device.device_id : -1;  // as PyTorch numbers the CPU
    tensor.data = static_cast<uint8_t*>(value.tensor.data) + value.tensor.byte_offset;
    return tensor;
  }

  static Object tuple_of(const int64_t* numbers, int64_t count) {
    Object tuple = made(PyTuple_New(count));
    for (int64_t i = 0; i < count; ++i)
      PyTuple_SetItem(tuple.get(), i, made(PyLong_FromLongLong(numbers[i])).release());
    return tuple;
  }

  PyThreadState* thread_ = nullptr;
  size_t next_ = 0, written_ = 0, made_ = 0;
  PyObject* given_[kMostArguments] = {};
  PyObject* outputs_[kMostOutputs];
  Object results_[kMostResults];
  const Value* values_[kMostArguments];
  Value read_[kMostArguments];  // of those that are given
};

bool watched() {
  return std::any_of(known->watchers.begin(), known->watchers.end(),
                     [](const Watcher& x) { return x.fires(); }) ||
         is_true(made(PyObject_GetAttr(known->profiler.get(), known->profiling.get())).get());
}

PyObject* dispatch(const Function& function, const Handed& handed) {
  const Object values = made(PyTuple_New(static_cast<Py_ssize_t>(handed.positional)));
  for (size_t i = 0; i < handed.positional; ++i) {
    Py_IncRef(handed.values[i]);
    PyTuple_SetItem(values.get(), static_cast<Py_ssize_t>(i), handed.values[i]);
  }
  const Object named = made(PyDict_New());
  for (size_t i = 0, count = handed.named(); i < count; ++i)
    if (PyDict_SetItem(named.get(), item(handed.names, static_cast<Py_ssize_t>(i)),
                       handed.values[handed.positional + i]) != 0)
      throw PythonError();
  return PyObject_Call(function.dispatched.get(), values.get(), named.get());
}

PyObject* call(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Function& function = *static_cast<const Function*>(PyCapsule_GetPointer(self, nullptr));
    const Handed handed = {values, static_cast<size_t>(count), names};
    Direct direct;
    if (!watched() && direct.take(function, handed)) return direct.compute(function.compute);
    return dispatch(function, handed);
  });
}

Kind kind_of(std::string_view text) {
  if (text == "Tensor") return Kind::kTensor;
  if (text == "Optional[Tensor]") return Kind::kOptionalTensor;
  if (text == "float") return Kind::kNumber;
  if (text == "Optional[float]") return Kind::kOptionalNumber;
  if (text == "int") return Kind::kInteger;
  if (text == "ScalarType") return Kind::kType;
  if (text == "Optional[ScalarType]") return Kind::kOptionalType;
  refuse("%.*s: is the type of no argument", static_cast<int>(text.size()), text.data());
}

// This is _function(name, operator, arguments, documentation). An argument is a tuple (name, type, by name
// alone), or (..., default).
PyObject* function(PyObject*, PyObject* arguments) {
  return guarded([&] {
    auto built = std::make_unique<Function>();
    const std::string_view name = text_of(item(arguments, 0));
    built->compute = find_operator(name);
    if (!built->compute) refuse("%s: is no operator", name.data());
    built->dispatched = held(item(arguments, 1));
    PyObject* const all = item(arguments, 2);
    const Py_ssize_t count = PyTuple_Size(all);
    if (count < 0) throw PythonError();
    if (static_cast<size_t>(count) > kMostArguments) refuse("%s: has too many arguments", name.data());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const each = item(all, i);
      Argument argument{};
      argument.name = made(PyUnicode_InternFromString(text_of(item(each, 0)).data()));
      argument.kind = kind_of(text_of(item(each, 1)));
      argument.by_name = is_true(item(each, 2));
      argument.has_default = PyTuple_Size(each) == 4;
      if (argument.has_default && !read(argument.kind, item(each, 3), false, &argument.otherwise))
        refuse("%s: an argument has a default of another type", name.data());
      if (!argument.by_name) ++built->positional;
      built->arguments.push_back(std::move(argument));
    }
    Function* const kept = built.release();  // for as long as the process lives, with what it points to
    const Object self = made(PyCapsule_New(kept, nullptr, nullptr));
    for (const Py_ssize_t i : {0, 3}) Py_IncRef(item(arguments, i));
    kept->method = {name.data(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
                    METH_FASTCALL | METH_KEYWORDS, text_of(item(arguments, 3)).data()};
    return PyCFunction_NewEx(&kept->method, self.get(), nullptr);
  });
}

PyMethodDef methods[] = {{"_start", start, METH_VARARGS, nullptr},
                         {"_function", function, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "dualgemm._direct", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace dualgemm::torch_ops

PyMODINIT_FUNC PyInit__direct() { return PyModule_Create(&dualgemm::torch_ops::module); }
