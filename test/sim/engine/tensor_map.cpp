// tensor_map.cpp -- tensor maps and the geometry of tile transfers. The encoder's rules are those that the
// CUDA driver API states for cuTensorMapEncodeTiled, less those that the driver of an H200 does not enforce
// (the map's own alignment, a null globalAddress, SWIZZLE_32B for INTERLEAVE_32B). The shared-memory image of
// a box is dense with dimension 0 fastest, then each 16-byte chunk is moved by the swizzle, an XOR of address
// bits:
//
//   32B:  bit  4   ^= bit  7        64B: bits 4-5 ^= bits 7-8        128B: bits 4-6 ^= bits 7-9
//
// on absolute shared addresses, so a base that is only 128-byte aligned starts in the middle of the pattern.
// The 128-byte variants with larger atoms, interleaved layouts, boxes narrower than their swizzle span, and
// types whose transfer changes values (FTZ, TF32) or pads (ALIGN16B) encode as documented, but a transfer
// with them is refused, because what it would write is not established. The NaN fill is the 16-bit pattern
// 0x7FF7 for every type, as an H200 writes it. An H200 refuses coordinates that do not begin a 16-byte chunk
// of a row, and negative coordinates of a store. A store writes the whole of the chunk in which a row ends.
// This file knows nothing of memory contents, barriers or time.
#include "sim/engine/tensor_map.h"

#include <cstddef>
#include <cstring>
#include <iterator>

#include "sim/fault.h"

namespace sim {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1;  // CUresult
constexpr uint32_t kMaxRank = 5, kMaxBox = 256, kMaxElementStride = 8, kMaxBoxBytes = 227 * 1024;
constexpr uint64_t kMaxDim = uint64_t{1} << 32, kStrideLimit = uint64_t{1} << 40;

// CUtensorMapDataType, in its order.
enum MapType : uint32_t {
  kUint8,
  kUint16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat32Ftz,
  kTfloat32,
  kTfloat32Ftz,
  k16U4Align8,
  k16U4Align16,
  k16U6Align16,
  kTypeCount
};
constexpr int kTypeBits[kTypeCount] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};

enum Interleave : uint32_t { kInterleaveNone, kInterleave16B, kInterleave32B, kInterleaveCount };
constexpr uint32_t kSwizzleCount = 7, kL2PromotionCount = 4, kFillCount = 2;

bool is_float(uint32_t type) { return type >= kFloat16 && type <= kTfloat32Ftz; }
bool is_padded(uint32_t type) { return type == k16U4Align16 || type == k16U6Align16; }

// Returns the bits that an element takes in shared memory; padded types spread 16 elements over 16 bytes.
uint64_t smem_bits(uint32_t type) { return is_padded(type) ? 8 : static_cast<uint64_t>(kTypeBits[type]); }

// Returns the elements of a dimension that reach shared memory: a traversal stride skips elements of the box.
// Dimension 0 has none.
uint32_t taken(const TensorMap& map, uint32_t i) {
  return i == 0 ? map.box[0] : (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
}

uint64_t inner_bytes(const TensorMap& map) { return map.box[0] * smem_bits(map.type) / 8; }

// The 128 bytes of a map. dims and box are stored minus one, so that 2^32 and 256 fit.
struct Packed {
  uint64_t magic;
  uint64_t checksum;  // over everything after it: a map edited or half copied by the program does not decode
  uint64_t base;
  uint64_t strides[kMaxRank - 1];
  uint32_t dims[kMaxRank];
  uint8_t box[kMaxRank], element_strides[kMaxRank];
  uint8_t type, rank, interleave, swizzle, l2_promotion, nan_fill;
  uint8_t unused[36];
};
static_assert(sizeof(Packed) == 128);
constexpr uint64_t kMagic = 0x50414d524f534e54;  // "TNSORMAP", little-endian

uint64_t checksum(const Packed& packed) {  // FNV-1a
  constexpr size_t kFirst = offsetof(Packed, base);
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(&packed);
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = kFirst; i < sizeof packed; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

Packed packed_map(const void* bytes128) {
  Packed packed;
  std::memcpy(&packed, bytes128, sizeof packed);
  if (packed.magic != kMagic || packed.checksum != checksum(packed))
    throw Fault(FaultKind::kProtocol,
                "the 128 bytes are no tensor map: neither cuTensorMapEncodeTiled nor tensormap.replace "
                "wrote them, or they were changed since");
  return packed;
}

// Returns an empty text when the arguments are legal, else the sentence that says which is not.
std::string broken_rule(const void* out128, const TensorMap& map, const uint64_t* dims,
                        const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                        uint32_t swizzle, uint32_t oob_fill) {
  const auto text = [](const char* what, uint64_t i, uint64_t value, const char* rule) {
    return std::string(what) + "[" + std::to_string(i) + "] = " + std::to_string(value) + " " + rule;
  };
  if (out128 == nullptr) return "tensorMap is null";
  if (map.type >= kTypeCount)
    return "tensorDataType " + std::to_string(map.type) + " is no CUtensorMapDataType";
  if (map.interleave >= kInterleaveCount)
    return "interleave " + std::to_string(map.interleave) + " is unknown";
  if (swizzle >= kSwizzleCount) return "swizzle " + std::to_string(swizzle) + " is unknown";
  if (map.l2_promotion >= kL2PromotionCount)
    return "l2Promotion " + std::to_string(map.l2_promotion) + " is unknown";
  if (oob_fill >= kFillCount) return "oobFill " + std::to_string(oob_fill) + " is unknown";
  if (map.rank < 1 || map.rank > kMaxRank)
    return "tensorRank " + std::to_string(map.rank) + " is outside 1..5";
  if (map.interleave != kInterleaveNone && map.rank < 3) return "an interleaved tensor needs tensorRank >= 3";
  if (dims == nullptr || box == nullptr || element_strides == nullptr || strides == nullptr)
    return "globalDim, globalStrides, boxDim or elementStrides is null";

  const bool padded = is_padded(map.type);
  const bool wide = padded || map.interleave == kInterleave32B;
  const uint64_t alignment = wide ? 32 : 16;
  if (map.base % alignment != 0)
    return "globalAddress must be aligned to " + std::to_string(alignment) + " bytes";

  for (uint32_t i = 0; i < map.rank; ++i) {
    if (dims[i] < 1 || dims[i] > kMaxDim) return text("globalDim", i, dims[i], "is outside 1..2^32");
    if (box[i] < 1 || box[i] > kMaxBox) return text("boxDim", i, box[i], "is outside 1..256");
    if (element_strides[i] < 1 || element_strides[i] > kMaxElementStride)
      return text("elementStrides", i, element_strides[i], "is outside 1..8");
  }
  for (uint32_t i = 0; i + 1 < map.rank; ++i) {
    if (strides[i] % alignment != 0)
      return text("globalStrides", i, strides[i], wide ? "is no multiple of 32" : "is no multiple of 16");
    if (strides[i] >= kStrideLimit) return text("globalStrides", i, strides[i], "is not below 2^40");
  }
  if (padded && dims[0] % 128 != 0)
    return text("globalDim", 0, dims[0], "is no multiple of 128 (ALIGN16B type)");
  if (padded && box[0] != 128) return text("boxDim", 0, box[0], "is not 128 (ALIGN16B type)");
  if (map.type == k16U4Align8 && dims[0] % 2 != 0)
    return text("globalDim", 0, dims[0], "is odd (16U4_ALIGN8B)");

  const uint64_t inner_bits = box[0] * smem_bits(map.type);
  if (map.interleave == kInterleaveNone) {
    if (inner_bits % 128 != 0) return text("boxDim", 0, box[0], "is no multiple of 16 bytes");
    const uint32_t span = swizzle_span(static_cast<Swizzle>(swizzle));
    if (span != 0 && inner_bits > span * 8u)
      return text("boxDim", 0, box[0], "is wider than the swizzle span");
  }
  uint64_t box_bytes = inner_bits / 8;
  for (uint32_t i = 1; i < map.rank; ++i) box_bytes *= (box[i] + element_strides[i] - 1) / element_strides[i];
  if (box_bytes > kMaxBoxBytes)
    return "a box of " + std::to_string(box_bytes) + " bytes is larger than shared memory";
  if (map.type == k16U6Align16 && map.interleave != kInterleaveNone)
    return "16U6_ALIGN16B cannot be interleaved";
  if (padded) {
    const Swizzle s = static_cast<Swizzle>(swizzle);
    const bool atom64 = s == Swizzle::k128BAtom64B && map.type == k16U6Align16;
    if (s != Swizzle::kNone && s != Swizzle::k128B && s != Swizzle::k128BAtom32B && !atom64)
      return "swizzle " + std::to_string(swizzle) + " is not available for ALIGN16B types";
  }
  if (oob_fill == 1 && !is_float(map.type)) return "oobFill NaN needs a floating-point tensorDataType";
  return {};
}

uint32_t swizzled(Swizzle swizzle, uint32_t address) {
  const uint32_t mask = swizzle_span(swizzle) == 0 ? 0 : swizzle_span(swizzle) / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

void require_transferable(const TensorMap& map) {
  const auto refuse = [](const std::string& what) {
    throw Fault(FaultKind::kUnsupported, "TMA transfer with " + what);
  };
  if (map.interleave != kInterleaveNone) refuse("an interleaved tensor map");
  if (map.type == kFloat32Ftz || map.type == kTfloat32 || map.type == kTfloat32Ftz)
    refuse("a data type that changes values on the way (FLOAT32_FTZ, TFLOAT32)");
  if (is_padded(map.type)) refuse("an ALIGN16B data type (padded in shared memory)");
  if (map.swizzle > Swizzle::k128B) refuse("a 128-byte swizzle of 32- or 64-byte atoms");
  if (map.swizzle != Swizzle::kNone && inner_bytes(map) != swizzle_span(map.swizzle))
    refuse("an inner box of " + std::to_string(inner_bytes(map)) + " bytes in a swizzle span of " +
           std::to_string(swizzle_span(map.swizzle)));
}

// Emits the pieces of one row of the box: `bytes` of shared memory from box offset `smem`, tensor bytes
// [first, first + bytes) of a global row that is `row_bytes` long (0: the whole row is outside).
struct RowEmitter {
  std::vector<BoxPiece>& out;
  Transfer transfer;
  Swizzle swizzle;
  uint32_t smem_base;

  void emit(uint32_t smem, uint32_t bytes, uint64_t row_address, int64_t first, int64_t row_bytes) const {
    for (uint32_t done = 0; done < bytes; done += 16) {
      const uint32_t target = swizzled(swizzle, smem_base + smem + done) - smem_base;
      const int64_t begin = first + done, end = begin + 16;
      const bool whole = transfer == Transfer::kStore && begin < row_bytes;
      if (begin >= 0 && (end <= row_bytes || whole)) {
        out.push_back({target, 16, row_address + static_cast<uint64_t>(begin), false});
      } else if (end <= 0 || begin >= row_bytes || row_bytes == 0) {
        out.push_back({target, 16, 0, true});
      } else {
        split(target, begin, row_address, row_bytes);
      }
    }
  }

 private:
  void split(uint32_t target, int64_t begin, uint64_t row_address, int64_t row_bytes) const {
    const int64_t inside_begin = begin < 0 ? 0 : begin;
    const int64_t inside_end = begin + 16 < row_bytes ? begin + 16 : row_bytes;
    const uint32_t before = static_cast<uint32_t>(inside_begin - begin);
    const uint32_t inside = static_cast<uint32_t>(inside_end - inside_begin);
    if (before != 0) out.push_back({target, before, 0, true});
    out.push_back({target + before, inside, row_address + static_cast<uint64_t>(inside_begin), false});
    if (before + inside < 16) out.push_back({target + before + inside, 16 - before - inside, 0, true});
  }
};

}  // namespace

uint32_t swizzle_span(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 0;
    case Swizzle::k32B: return 32;
    case Swizzle::k64B: return 64;
    default: return 128;
  }
}

int TensorMap::element_bits() const { return kTypeBits[type]; }

uint64_t TensorMap::box_bytes() const {
  uint64_t bytes = inner_bytes(*this);
  for (uint32_t i = 1; i < rank; ++i) bytes *= taken(*this, i);
  return bytes;
}

int encode_tiled(void* out128, uint32_t type, uint32_t rank, void* base, const uint64_t* dims,
                 const uint64_t* strides_bytes, const uint32_t* box, const uint32_t* element_strides,
                 uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion, uint32_t oob_fill,
                 std::string* why) {
  TensorMap map;
  map.type = type;
  map.rank = rank;
  map.base = reinterpret_cast<uintptr_t>(base);
  map.interleave = interleave;
  map.l2_promotion = l2_promotion;
  const std::string broken =
      broken_rule(out128, map, dims, strides_bytes, box, element_strides, swizzle, oob_fill);
  if (!broken.empty()) {
    if (why != nullptr) *why = broken;
    return kInvalidValue;
  }

  Packed packed{};
  packed.magic = kMagic;
  packed.base = map.base;
  for (uint32_t i = 0; i < rank; ++i) {
    packed.dims[i] = static_cast<uint32_t>(dims[i] - 1);
    packed.box[i] = static_cast<uint8_t>(box[i] - 1);
    packed.element_strides[i] = static_cast<uint8_t>(element_strides[i]);
    if (i + 1 < rank) packed.strides[i] = strides_bytes[i];
  }
  packed.type = static_cast<uint8_t>(type);
  packed.rank = static_cast<uint8_t>(rank);
  packed.interleave = static_cast<uint8_t>(interleave);
  packed.swizzle = static_cast<uint8_t>(swizzle);
  packed.l2_promotion = static_cast<uint8_t>(l2_promotion);
  packed.nan_fill = static_cast<uint8_t>(oob_fill);
  packed.checksum = checksum(packed);
  std::memcpy(out128, &packed, sizeof packed);
  return kSuccess;
}

TensorMap decode_tensor_map(const void* bytes128) {
  const Packed packed = packed_map(bytes128);
  TensorMap map;
  map.type = packed.type;
  map.rank = packed.rank;
  map.base = packed.base;
  map.interleave = packed.interleave;
  map.l2_promotion = packed.l2_promotion;
  map.swizzle = static_cast<Swizzle>(packed.swizzle);
  map.nan_fill = packed.nan_fill != 0;
  map.strides[0] = static_cast<uint64_t>(kTypeBits[packed.type] / 8);
  for (uint32_t i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t{packed.dims[i]} + 1;
    map.box[i] = uint32_t{packed.box[i]} + 1;
    map.element_strides[i] = packed.element_strides[i];
    if (i > 0) map.strides[i] = packed.strides[i - 1];
  }
  const std::string broken =
      broken_rule(bytes128, map, map.dims.data(), map.strides.data() + 1, map.box.data(),
                  map.element_strides.data(), packed.swizzle, packed.nan_fill);
  if (!broken.empty()) throw Fault(FaultKind::kProtocol, "the tensor map is none to copy by: " + broken);
  return map;
}

void replace_field(void* bytes128, MapField field, uint32_t ordinal, uint64_t value) {
  Packed packed = packed_map(bytes128);
  const auto require = [&](bool legal, const char* name, const char* range) {
    if (!legal)
      throw Fault(FaultKind::kProtocol, std::string("tensormap.replace: ") + name + " " +
                                            std::to_string(value) + " is outside " + range);
  };
  const auto dimension = [&](uint32_t count) {
    if (ordinal >= count)
      throw Fault(FaultKind::kProtocol, "tensormap.replace: ordinal " + std::to_string(ordinal) + " of " +
                                            std::to_string(count) + " dimensions");
    return ordinal;
  };
  // Types as the instruction numbers them (table of 9.7.9.26).
  constexpr MapType kTypes[] = {kUint8,       kUint16,     kUint32,      kInt32,      kUint64,   kInt64,
                                kFloat16,     kFloat32,    kFloat32Ftz,  kFloat64,    kBfloat16, kTfloat32,
                                kTfloat32Ftz, k16U4Align8, k16U4Align16, k16U6Align16};
  static_assert(std::size(kTypes) == kTypeCount);
  switch (field) {
    case MapField::kGlobalAddress: packed.base = value; break;
    case MapField::kRank:
      require(value < kMaxRank, "rank less one", "0..4");
      packed.rank = static_cast<uint8_t>(value + 1);
      break;
    case MapField::kBoxDim:
      require(value >= 1 && value <= kMaxBox, "box_dim", "1..256");
      packed.box[dimension(kMaxRank)] = static_cast<uint8_t>(value - 1);
      break;
    case MapField::kGlobalDim:
      require(value >= 1, "global_dim", "1..2^32-1");
      packed.dims[dimension(kMaxRank)] = static_cast<uint32_t>(value - 1);
      break;
    case MapField::kGlobalStride: packed.strides[dimension(kMaxRank - 1)] = value; break;
    case MapField::kElementStride:
      require(value >= 1 && value <= kMaxElementStride, "element_stride", "1..8");
      packed.element_strides[dimension(kMaxRank)] = static_cast<uint8_t>(value);
      break;
    case MapField::kElementType:
      require(value < kTypeCount, "elemtype", "0..15");
      packed.type = static_cast<uint8_t>(kTypes[value]);
      break;
    case MapField::kInterleave:
      require(value < kInterleaveCount, "interleave_layout", "0..2");
      packed.interleave = static_cast<uint8_t>(value);
      break;
    case MapField::kSwizzle:
      if (value == 4 || packed.swizzle > static_cast<uint8_t>(Swizzle::k128B))
        throw Fault(FaultKind::kUnsupported,
                    "tensormap.replace of a swizzle of 96 bytes, or of one with an atomicity of its own");
      require(value <= static_cast<uint8_t>(Swizzle::k128B), "swizzle_mode", "0..4");
      packed.swizzle = static_cast<uint8_t>(value);
      break;
    case MapField::kFill:
      require(value < kFillCount, "fill_mode", "0..1");
      packed.nan_fill = static_cast<uint8_t>(value);
      break;
  }
  packed.checksum = checksum(packed);
  std::memcpy(bytes128, &packed, sizeof packed);
}

void box_pieces(const TensorMap& map, const std::array<int32_t, 5>& coordinates, uint32_t smem_base,
                Transfer transfer, std::vector<BoxPiece>& out) {
  require_transferable(map);
  if (smem_base % 128 != 0)
    throw Fault(FaultKind::kMisaligned,
                "shared-memory address " + std::to_string(smem_base) + " of a TMA box is no multiple of 128");
  const int bits = map.element_bits();
  const int64_t first_bit = int64_t{coordinates[0]} * bits;
  if (first_bit % 128 != 0)
    throw Fault(FaultKind::kMisaligned, "coordinate 0 = " + std::to_string(coordinates[0]) +
                                            " of a TMA box, times " + std::to_string(bits) +
                                            " bits, is no multiple of 16 bytes");
  for (uint32_t i = 0; i < map.rank && transfer == Transfer::kStore; ++i)
    if (coordinates[i] < 0)
      throw Fault(FaultKind::kBounds, "coordinate " + std::to_string(i) + " = " +
                                          std::to_string(coordinates[i]) + " of a TMA store is negative");

  const uint32_t row = static_cast<uint32_t>(inner_bytes(map));
  const int64_t row_bytes = static_cast<int64_t>(map.dims[0]) * bits / 8;
  std::array<uint32_t, 5> count{1, 1, 1, 1, 1};
  for (uint32_t i = 1; i < map.rank; ++i) count[i] = taken(map, i);

  out.clear();
  out.reserve(map.box_bytes() / 16);
  const RowEmitter emitter{out, transfer, map.swizzle, smem_base};
  std::array<uint32_t, 5> index{};
  uint32_t smem = 0;
  for (;;) {
    bool outside = false;
    uint64_t address = map.base;
    for (uint32_t i = 1; i < map.rank; ++i) {
      const int64_t at = int64_t{coordinates[i]} + int64_t{index[i]} * map.element_strides[i];
      outside = outside || at < 0 || at >= static_cast<int64_t>(map.dims[i]);
      address += static_cast<uint64_t>(at) * map.strides[i];
    }
    emitter.emit(smem, row, address, first_bit / 8, outside ? 0 : row_bytes);
    smem += row;

    uint32_t i = 1;
    while (i < map.rank && ++index[i] == count[i]) index[i++] = 0;
    if (i >= map.rank) return;
  }
}

std::array<uint8_t, 16> fill_pattern(const TensorMap& map) {
  std::array<uint8_t, 16> pattern{};
  if (!map.nan_fill) return pattern;
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = i % 2 == 0 ? 0xF7 : 0x7F;
  return pattern;
}

}  // namespace sim
