// machine_rules.cpp -- the rules that the machine itself keeps while it runs: one for each kind of fault that
// ends a grid, and those that it only remarks on.
#include "sim/check/finding.h"

namespace sim {

const std::vector<Rule> kMachineRules = {
    {"machine-poison", Severity::kError, Evidence::kDoc,
     "CUDA C++ Programming Guide, device memory; PTX ISA 5.1",
     "A register or a byte of memory that nobody wrote, or that a copy in flight is writing, holds no value."},
    {"machine-bounds", Severity::kError, Evidence::kH200, "PTX ISA 5.1 State Spaces",
     "An access stays inside one allocation, the CTA's shared memory or the allocated tensor memory."},
    {"machine-misaligned", Severity::kError, Evidence::kH200, "PTX ISA 6.4.1 Addresses as Operands",
     "An address is a multiple of the size of the access, or of what the instruction asks for."},
    {"machine-protocol", Severity::kError, Evidence::kDoc, "PTX ISA 9.7, the section of the instruction",
     "An instruction is executed only in the state and with the operands its section allows."},
    {"machine-deadlock", Severity::kError, Evidence::kDoc, "PTX ISA 9.7.13 Parallel Synchronization",
     "Every wait is ended by what other threads or operations in flight still do."},
    {"machine-trap", Severity::kError, Evidence::kH200, "PTX ISA 9.7.19.4 trap",
     "A program that executes trap or a failed assertion has ended with an error."},
    {"machine-launch", Severity::kError, Evidence::kDoc,
     "CUDA C++ Programming Guide, execution configuration and compute capabilities",
     "Grid, block, cluster and shared memory stay inside the limits of the kernel and of the machine."},
    {"shared-alignment", Severity::kStrict, Evidence::kProvenKernel, "PTX ISA 5.4.5 Alignment",
     "Dynamic shared memory is aligned as its module declares it, to 16 bytes where it says nothing; a box of "
     "a tensor map needs 128, and the whole pattern of its swizzle where it has one."},
    {"prefetch-memory", Severity::kStrict, Evidence::kDoc,
     "PTX ISA 9.7.9.25.4.3 cp.async.bulk.prefetch, 9.7.9.25.5.4 cp.async.bulk.prefetch.tensor",
     "A prefetch by the asynchronous proxy is a memory operation: its operands have values, its address and "
     "size are multiples of 16, and what it reads, of a box the part inside of its tensor, is in one allocation."},
    {"prefetch-outside", Severity::kAdvice, Evidence::kAssumed, "tool: no rule of the ISA, but seldom meant",
     "What prefetch and prefetchu name has a value and is in some allocation, and a prefetched box has "
     "coordinates that have values and is less than a box away from its tensor."},
    {"tmem-lane-bits", Severity::kStrict, Evidence::kProvenKernel, "PTX ISA 9.7.16.8.1 Access restrictions",
     "The lane in the address of tcgen05.ld or .st is the first of the quarter that the warp may access, or, "
     "for shapes of 16 lanes, of either half of it; hardware takes the quarter from the number of the warp, "
     "and of the address that half."},
    {"setmaxnreg-warpgroup", Severity::kStrict, Evidence::kProvenKernel, "PTX ISA 9.7.19.5 setmaxnreg",
     "The warps of a warpgroup execute the same setmaxnreg."},
    {"machine-unsupported", Severity::kError, Evidence::kAssumed, "tool: a limit of the simulator",
     "The simulator refuses what it does not know, and gives up a run in which nothing changes for very long; "
     "the program was not judged any further."},
};

}  // namespace sim
