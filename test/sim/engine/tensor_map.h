// tensor_map.h -- the 128-byte CUtensorMap of this machine, the encoder behind cuTensorMapEncodeTiled, and
// the geometry of one TMA tile transfer: which bytes of global memory go to which bytes of shared memory. The
// private layout of the 128 bytes is ours; only the encoder and this decoder see it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

enum class Swizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B, k128BAtom32BFlip8B, k128BAtom64B };

// Returns the bytes of a row of the swizzle's pattern, which has eight rows; 0 without a swizzle.
uint32_t swizzle_span(Swizzle swizzle);

struct TensorMap {
  uint32_t type = 0;               // CUtensorMapDataType
  uint32_t rank = 0;               // 1..5
  uint64_t base = 0;               // global address
  std::array<uint64_t, 5> dims{};  // elements, innermost first
  // Bytes. strides[0] is the size of an element (0 below a byte), and strides[i] is the distance between
  // neighbours in dimension i.
  std::array<uint64_t, 5> strides{};
  std::array<uint32_t, 5> box{};  // elements
  std::array<uint32_t, 5> element_strides{};
  uint32_t interleave = 0, l2_promotion = 0;
  Swizzle swizzle = Swizzle::kNone;
  bool nan_fill = false;

  int element_bits() const;
  // Returns the bytes that a full box takes in shared memory. complete_tx counts all of them, also where the
  // box reaches over an edge.
  uint64_t box_bytes() const;
};

// Mirrors cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object Management"). Returns the CUresult
// value: 0, or 1 (CUDA_ERROR_INVALID_VALUE) with `why` naming the argument that breaks a documented rule.
int encode_tiled(void* out128, uint32_t type, uint32_t rank, void* base, const uint64_t* dims,
                 const uint64_t* strides_bytes /* rank - 1 */, const uint32_t* box,
                 const uint32_t* element_strides, uint32_t interleave, uint32_t swizzle,
                 uint32_t l2_promotion, uint32_t oob_fill, std::string* why);

// Throws Fault kProtocol when the 128 bytes were not written by encode_tiled, or when what replace_field made
// of them breaks a rule of the encoder.
TensorMap decode_tensor_map(const void* bytes128);

// Mirrors tensormap.replace (PTX ISA 9.7.9.26): changes one field of a map. `ordinal` counts dimensions from
// the innermost, for kGlobalStride from the one after it; fields without dimensions take none. Values are
// those of the instruction: kRank is one less than the rank, kElementType and the three after it have numbers
// of their own. Throws Fault kProtocol when the bytes are no map, or the field cannot have the value. Whether
// the fields fit together is checked when the map is used.
enum class MapField : uint8_t {
  kGlobalAddress,
  kRank,
  kBoxDim,
  kGlobalDim,
  kGlobalStride,
  kElementStride,
  kElementType,
  kInterleave,
  kSwizzle,
  kFill
};
void replace_field(void* bytes128, MapField field, uint32_t ordinal, uint64_t value);

// One contiguous piece of a box transfer, at most 16 bytes of shared memory (the swizzle atom).
struct BoxPiece {
  uint32_t smem_offset;  // from the box's shared-memory base, swizzled
  uint32_t bytes;
  uint64_t global;  // first global byte; meaningful only when !outside
  bool outside;     // the piece lies outside the tensor: filled on load, skipped on store
};
// Lists all pieces of a box at the given coordinates, in shared-memory order before swizzling. smem_base is
// the absolute shared-memory offset of the box, because swizzling uses address bits. Rejects a base that
// breaks the alignment of the swizzle mode, and coordinates that the machine refuses. Pieces of a load that
// straddle the tensor's edge are split; a store writes those whole.
enum class Transfer { kLoad, kStore };
void box_pieces(const TensorMap& map, const std::array<int32_t, 5>& coordinates, uint32_t smem_base,
                Transfer transfer, std::vector<BoxPiece>& out);
// Returns the 16-byte pattern that fills out-of-bounds elements: zeros, or the NaN of the driver's oobFill.
std::array<uint8_t, 16> fill_pattern(const TensorMap& map);

}  // namespace sim
