// targets.h -- what an input may be about. Each takes its choices from the bytes, calls the library, and ends
// the program when something does not hold.
#pragma once

#include "fuzz/bytes.h"

namespace dualgemm_fuzz {

void ask_and_launch(Bytes& bytes);         // launches.cpp: the questions about a launch, and the launch
void launch_plainly(Bytes& bytes);         // the function without a structure is the one with it
void move_factors(Bytes& bytes);           // conversions.cpp: on the device, where no address is followed
void quantize(Bytes& bytes);               // the same
void permute_experts(Bytes& bytes);        // the same
void gather_experts(Bytes& bytes);         // the same
void combine_experts(Bytes& bytes);        // the same
void move_factors_on_host(Bytes& bytes);   // twins.cpp: in real memory, and the rules of the device
void quantize_on_host(Bytes& bytes);       // the same
void prepare_mxfp4_on_host(Bytes& bytes);  // the same
void permute_on_host(Bytes& bytes);        // the same
void gather_on_host(Bytes& bytes);         // the same
void combine_on_host(Bytes& bytes);        // the same
void compute_reference(Bytes& bytes);      // reference.cpp: the launch in real memory
void convert_matrix(Bytes& bytes);         // matrices.cpp: functions for host memory without a structure
void split_factors(Bytes& bytes);          // the same
void import_gguf(Bytes& bytes);            // the same
void import_mxfp4(Bytes& bytes);           // the same
void read_tuning(Bytes& bytes);            // tuning.cpp: the text of a tuning file
void look_up(Bytes& bytes);                // small.cpp: sizes, offsets, names, defaults, devices, instances

}  // namespace dualgemm_fuzz
