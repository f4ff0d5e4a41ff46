// safetensors.h -- the header of a .safetensors file.
#pragma once

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// The tensors of a file, which has to outlive them, and its metadata. No number of the header is believed
// before it was compared with the size of the file; of a dtype that is not known the size of the data is
// taken as it is. Throws FormatError, which names the tensor where it is one's fault.
Contents read_safetensors(Bytes file);

}  // namespace checkpoint
