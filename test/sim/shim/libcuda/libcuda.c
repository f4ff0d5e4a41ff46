/* libcuda.c -- libcuda.so.1 of the simulated machine. It holds nothing: it depends on the simulated
 * libcudart.so.13, and a program or a dlsym() that looks in this library finds the driver's entries there
 * (shim/driver.cpp). */
typedef int libcuda_holds_nothing;
