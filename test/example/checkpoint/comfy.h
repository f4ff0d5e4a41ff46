// comfy.h -- ComfyUI's NVFP4: ModelOpt's names with another layout, which only a mark tells from it.
#pragma once

#include <string>
#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// What marks a layer: its tensor STEM.comfy_quant, which is JSON as bytes, or its entry among the "layers" of
// `_quantization_metadata`, JSON in the file's metadata. Where a file has such an entry, or the layer such a
// tensor, the layer has to be NVFP4 by it, and nothing else that is said of it may be unknown here: a
// rotation of the activations, for one. Throws FormatError otherwise. False where nothing marks any layer.
bool is_comfy(const Tensors& tensors, const std::string& stem);

// Elements as ComfyUI packs them, the first of two in the high nibble, as all others have them.
std::vector<uint8_t> swap_nibbles(Bytes elements);

// Factors out of 128x4 atoms as rows: [n, k / 16].
std::vector<uint8_t> rows_of_atoms(Bytes atoms, uint64_t n, uint64_t k);

}  // namespace checkpoint
