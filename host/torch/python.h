// python.h -- Python's C interface, as far as every version from 3.10 on has the same binary interface. A
// program without Python may load the operators, too. These functions are weak, and there nobody calls them.
#pragma once

#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string_view>

#pragma weak _Py_NoneStruct
#pragma weak Py_DecRef
#pragma weak Py_IncRef
#pragma weak PyCapsule_GetPointer
#pragma weak PyCapsule_New
#pragma weak PyCFunction_GetFlags
#pragma weak PyCFunction_GetFunction
#pragma weak PyCFunction_GetSelf
#pragma weak PyCMethod_New
#pragma weak PyDict_New
#pragma weak PyDict_SetItem
#pragma weak PyErr_Clear
#pragma weak PyErr_Occurred
#pragma weak PyErr_SetString
#pragma weak PyEval_RestoreThread
#pragma weak PyEval_SaveThread
#pragma weak PyExc_ImportError
#pragma weak PyExc_RuntimeError
#pragma weak PyFloat_AsDouble
#pragma weak PyFloat_Type
#pragma weak PyLong_AsLong
#pragma weak PyLong_AsLongLong
#pragma weak PyLong_FromLongLong
#pragma weak PyLong_Type
#pragma weak PyModule_Create2
#pragma weak PyObject_Call
#pragma weak PyObject_CallFunctionObjArgs
#pragma weak PyObject_GetAttr
#pragma weak PyObject_IsTrue
#pragma weak PyTuple_GetItem
#pragma weak PyTuple_New
#pragma weak PyTuple_SetItem
#pragma weak PyTuple_Size
#pragma weak PyUnicode_AsUTF8AndSize
#pragma weak PyUnicode_Compare
#pragma weak PyUnicode_InternFromString

namespace dualgemm::torch_ops {

// Holds a reference. Exceptions of Python become PythonError.
struct Release {
  void operator()(PyObject* object) const { Py_DecRef(object); }
};
using Object = std::unique_ptr<PyObject, Release>;

// Python has the exception.
struct PythonError {};

// Takes over a new reference.
inline Object made(PyObject* object) {
  if (!object) throw PythonError();
  return Object(object);
}

// Holds a reference of somebody else.
inline Object held(PyObject* object) {
  Py_IncRef(object);
  return Object(object);
}

inline Object attribute(PyObject* object, const char* name) {
  const Object text = made(PyUnicode_InternFromString(name));
  return made(PyObject_GetAttr(object, text.get()));
}

inline std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw PythonError();
  return {text, static_cast<size_t>(size)};
}

inline PyObject* item(PyObject* tuple, Py_ssize_t i) {
  PyObject* found = PyTuple_GetItem(tuple, i);
  if (!found) throw PythonError();
  return found;
}

inline bool is_true(PyObject* object) {
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) throw PythonError();
  return truth != 0;
}

}  // namespace dualgemm::torch_ops
