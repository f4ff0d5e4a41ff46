// gguf.h -- the directory of a .gguf file.
#pragma once

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// The tensors of a file, which has to outlive them, with shapes turned to row-major. A type that is not in
// the first table of gguf.cpp gives a tensor without bytes, whose dtype is "Q6_K", so that a file may hold
// others beside NVFP4. Its pairs are the metadata: the text of one that is a string, of others nothing.
// Throws FormatError, which names the tensor where it is one's fault.
Contents read_gguf(Bytes file);

bool is_gguf(Bytes file);

}  // namespace checkpoint
