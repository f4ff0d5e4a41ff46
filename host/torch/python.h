// python.h -- Python's C interface, as far as every version from 3.10 on has it with one binary interface. A
// program without Python may load the operators: there nobody calls what needs these functions, which are weak.
#pragma once

#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

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
