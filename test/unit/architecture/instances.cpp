// instances.cpp -- the table of the test library: the library's own lists and one more.
#define DUALGEMM_MORE_INSTANCES INSTANCES(sm90_zeros)
#include "kernel/instances.cpp"
