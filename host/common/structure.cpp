// structure.cpp -- see structure.h.

#include "host/common/structure.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "host/common/status.h"

namespace dualgemm {
namespace {

uint32_t size_of(const void* structure) {
  uint32_t size;
  std::memcpy(&size, structure, sizeof size);
  return size;
}

}  // namespace

dualgemm_status_t check_structure(const Structure& structure, const void* pointer) {
  if (!pointer)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must point to a %s", structure.argument,
                structure.type);
  const uint32_t size = size_of(pointer);
  if (size < structure.first_size)
    return fail(DUALGEMM_STATUS_VERSION_MISMATCH,
                "struct_size=%" PRIu32 ": below %" PRIu32
                ", that of release 0.2.0; compile with its header or a newer one, and call %s",
                size, structure.first_size, structure.init);
  if (size > kMostStructureBytes)
    return fail(DUALGEMM_STATUS_VERSION_MISMATCH,
                "struct_size=%" PRIu32 ": above %" PRIu32 ", which no %s has; call %s", size,
                kMostStructureBytes, structure.type, structure.init);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t read_structure(const Structure& structure, const void* from, void* to) {
  if (auto status = check_structure(structure, from)) return status;
  const uint32_t size = size_of(from), shared = std::min(size, structure.size);
  std::memcpy(to, from, shared);
  const auto* const bytes = static_cast<const unsigned char*>(from);
  for (uint32_t i = shared; i < size; ++i)
    if (bytes[i] != 0)
      return fail(DUALGEMM_STATUS_VERSION_MISMATCH,
                  "struct_size=%" PRIu32 ": byte %" PRIu32 " is set, but this library knows only %" PRIu32
                  " bytes",
                  size, i, structure.size);
  return DUALGEMM_STATUS_SUCCESS;
}

void write_structure(const Structure& structure, const void* from, void* to) {
  init_structure(to, size_of(to), from, structure.size);
}

void init_structure(void* to, size_t bytes, const void* defaults, size_t size) {
  if (!to) return;
  std::memset(to, 0, bytes);
  if (defaults) std::memcpy(to, defaults, std::min(bytes, size));
  const auto own_size = static_cast<uint32_t>(bytes);
  std::memcpy(to, &own_size, std::min(bytes, sizeof own_size));
}

}  // namespace dualgemm
