// copy.cpp -- a device pointer is a host pointer, so moving bytes is memmove. The work is knowing which side
// is device memory, that it is wholly inside one allocation, and which of its bytes count as written
// afterwards.
#include "sim/shim/copy.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace sim::shim {

using Allocation = GlobalMemory::Allocation;

// The host sees this in place of device bytes that nobody wrote. Zeros would hide a forgotten store whose
// result is zero.
constexpr int kUnwrittenByte = 0xCB;

static uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

static Allocation* device_range(Runtime& runtime, const void* pointer, size_t n, bool must_be_device,
                                const char* side) {
  Allocation* whole = runtime.memory.find(address_of(pointer), n);
  if (whole || (!must_be_device && !runtime.memory.find(address_of(pointer), 1))) return whole;
  char text[160];
  std::snprintf(text, sizeof text, "the %s [0x%" PRIx64 ", +%zu) is not inside one device allocation", side,
                address_of(pointer), n);
  fail(cudaErrorInvalidValue, text);
}

// Calls visit(offset, length) for each run of source bytes that nobody wrote.
template <class Visit>
static void for_each_hole(const Allocation& source, uint64_t address, size_t n, Visit visit) {
  const uint8_t* const states = source.states.data() + (address - source.base);
  const uint8_t* const end = states + n;
  for (const uint8_t* at = states; at != end;) {
    const uint8_t* hole = std::find_if(at, end, [](uint8_t state) { return state != kWritten; });
    at = std::find(hole, end, kWritten);
    if (at != hole) visit(static_cast<size_t>(hole - states), static_cast<size_t>(at - hole));
  }
}

static bool to_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}
static bool from_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static void copy_row(Runtime& runtime, uint8_t* to, const uint8_t* from, size_t n) {
  std::memmove(to, from, n);
  Allocation* target = runtime.memory.find(address_of(to), n);
  Allocation* source = runtime.memory.find(address_of(from), n);
  if (target) runtime.memory.mark_written(address_of(to), n);
  if (!source) return;
  for_each_hole(*source, address_of(from), n, [&](size_t offset, size_t length) {
    if (target) runtime.memory.poison(address_of(to) + offset, length);
    else std::memset(to + offset, kUnwrittenByte, length);
  });
}

void copy_rows(Runtime& runtime, void* to, size_t to_pitch, const void* from, const Rows& rows,
               cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    fail(cudaErrorInvalidMemcpyDirection, "unknown copy direction");
  if (rows.width > to_pitch || rows.width > rows.pitch)
    fail(cudaErrorInvalidPitchValue, "a row is wider than the pitch");
  if (rows.width == 0 || rows.height == 0) return;
  require(to && from, "a null pointer in a copy");
  const auto target_row = [&](size_t row) { return static_cast<uint8_t*>(to) + row * to_pitch; };
  const auto source_row = [&](size_t row) { return static_cast<const uint8_t*>(from) + row * rows.pitch; };
  std::vector<Region> regions;
  for (size_t row = 0; row < rows.height; ++row) {
    const uint64_t target = address_of(target_row(row)), source = address_of(source_row(row));
    const bool writes =
        device_range(runtime, target_row(row), rows.width, to_device(kind), "destination") != nullptr;
    const bool reads =
        device_range(runtime, source_row(row), rows.width, from_device(kind), "source") != nullptr;
    require(!writes || !reads || target + rows.width <= source || source + rows.width <= target,
            "source and destination of a device copy overlap");
    if (reads) append_region(regions, source, rows.width, false);
    if (writes) append_region(regions, target, rows.width, true);
  }
  runtime.order.announce(runtime, HostWork::Kind::kCopy, std::move(regions));
  for (size_t row = 0; row < rows.height; ++row)
    copy_row(runtime, target_row(row), source_row(row), rows.width);
}

void copy_bytes(Runtime& runtime, void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  copy_rows(runtime, to, n, from, Rows{n, n, 1}, kind);
}

void fill_rows(Runtime& runtime, void* to, int value, const Rows& rows) {
  if (rows.height > 1 && rows.width > rows.pitch)
    fail(cudaErrorInvalidPitchValue, "a row is wider than the pitch");
  if (rows.width == 0) return;
  const auto target_row = [&](size_t row) { return static_cast<uint8_t*>(to) + row * rows.pitch; };
  std::vector<Region> regions;
  for (size_t row = 0; row < rows.height; ++row) {
    const Allocation* target = device_range(runtime, target_row(row), rows.width, true, "destination");
    require(runtime.reaches(runtime.order.current->device, target->device),
            "the fill is of another device's memory, to which its stream's device has no access");
    append_region(regions, address_of(target_row(row)), rows.width, true);
  }
  runtime.order.announce(runtime, HostWork::Kind::kSet, std::move(regions));
  for (size_t row = 0; row < rows.height; ++row) {
    std::memset(target_row(row), value, rows.width);
    runtime.memory.mark_written(address_of(target_row(row)), rows.width);
  }
}

}  // namespace sim::shim
