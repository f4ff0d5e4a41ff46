// safetensors.h -- the header of a .safetensors file.
#pragma once

#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// The tensors of a file, which has to outlive them. No number of the header is believed before it was
// compared with the size of the file. Throws FormatError, which names the tensor where it is one's fault.
std::vector<StoredTensor> read_safetensors(Bytes file);

}  // namespace checkpoint
