// machine_rules.cpp -- the rules that the machine itself keeps while it runs: one for each kind of fault that
// ends a grid, and those that it only remarks on.
#include "sim/check/finding.h"

namespace sim {
namespace {

using enum Severity;
using enum Evidence;

}  // namespace

const std::vector<Rule> kMachineRules = {
    {"machine-poison", kError, kDoc, "CUDA C++ Programming Guide, device memory; PTX ISA 5.1 State spaces",
     "A register or a byte of memory that nobody wrote, or that a copy in flight is writing, holds no value."},
    {"machine-bounds", kError, kSeenOnH200, "PTX ISA 5.1 State spaces",
     "An access stays inside one allocation, the CTA's shared memory or the allocated tensor memory."},
    {"machine-misaligned", kError, kSeenOnH200, "PTX ISA 6.4.1 Addresses as operands",
     "An address is a multiple of the size of the access, or of what the instruction asks for."},
    {"machine-protocol", kError, kDoc, "PTX ISA 9.7 Instructions",
     "An instruction is executed only in the state and with the operands its section allows."},
    {"machine-deadlock", kError, kDoc,
     "PTX ISA 9.7.13 Parallel synchronization and communication instructions",
     "Every wait is ended by what other threads or operations in flight still do."},
    {"machine-trap", kError, kSeenOnH200, "PTX ISA 9.7.19.4 trap",
     "A program that executes trap or a failed assertion has ended with an error."},
    {"machine-launch", kError, kDoc,
     "CUDA C++ Programming Guide, execution configuration and compute capabilities",
     "Grid, block, cluster and shared memory stay inside the limits of the kernel and of the machine."},
    {"shared-alignment", kStrict, kProvenKernel, "PTX ISA 5.4.5 Alignment",
     "Dynamic shared memory is aligned as its module declares it, to 16 bytes where it says nothing; a box of "
     "a tensor map needs 128, and the whole pattern of its swizzle where it has one."},
    {"prefetch-memory", kStrict, kDoc,
     "PTX ISA 9.7.9.25.4.3 cp.async.bulk.prefetch; PTX ISA 9.7.9.25.5.4 cp.async.bulk.prefetch.tensor",
     "A prefetch by the asynchronous proxy is a memory operation: its operands have values, its address and "
     "size are multiples of 16, and what it reads, of a box the part inside of its tensor, is in one allocation."},
    {"prefetch-outside", kAdvice, kAssumed, kNoSection,
     "What prefetch and prefetchu name has a value and is in some allocation, and a prefetched box has "
     "coordinates that have values and is less than a box away from its tensor."},
    {"tmem-lane-bits", kStrict, kProvenKernel, "PTX ISA 9.7.16.8.1 Access restrictions",
     "The lane in the address of tcgen05.ld or .st is the first of the quarter that the warp may access, or, "
     "for shapes of 16 lanes, of either half of it; hardware takes the quarter from the number of the warp, "
     "and of the address that half."},
    {"setmaxnreg-warpgroup", kStrict, kProvenKernel, "PTX ISA 9.7.19.5 setmaxnreg",
     "The warps of a warpgroup execute the same setmaxnreg."},
    {"machine-unsupported", kUnknown, kAssumed, "tool: a limit of the simulator",
     "The simulator refuses what it does not know, and gives up a run in which nothing changes for very long; "
     "the program was not judged any further."},
};

}  // namespace sim
