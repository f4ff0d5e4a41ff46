// libcuda.c -- stands for the driver's library when a program for a GPU is linked where there is no driver.
// It is never loaded: the program finds the driver's own libcuda.so.1, which has these functions.
int cuTensorMapEncodeTiled(void) { return 0; }
