// tensor.cpp -- see tensor.h.

#include "host/torch/tensor.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

// A PyTorch without CUDA has no such function.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                                                   void** stream);

namespace dualgemm::torch_ops {
namespace {

std::string place_name(const Tensor& tensor) {
  if (tensor.device_type == aoti_torch_device_type_cpu()) return "cpu";
  if (tensor.device_type == aoti_torch_device_type_cuda())
    return "cuda:" + std::to_string(tensor.device_index);
  if (tensor.device_type == aoti_torch_device_type_meta()) return "meta";
  return "device type " + std::to_string(tensor.device_type);
}

std::string list(const int64_t* numbers, int64_t count) {
  std::string text = "(";
  for (int64_t i = 0; i < count; ++i)
    text += std::to_string(numbers[i]) + (i + 1 < count || i == 0 ? "," : "");
  for (size_t i = 0; (i = text.find(',', i)) + 1 < text.size() && i != std::string::npos; i += 2)
    text.insert(i + 1, " ");
  return text + ")";
}

// Returns whether the elements lie without gaps, and, if `ordered`, also in the order of their indices.
bool gapless(const Tensor& tensor, bool ordered) {
  if (tensor.count() == 0) return true;
  int64_t expected = 1;
  if (ordered) {
    for (int64_t i = tensor.dims; i-- > 0;) {
      if (tensor.sizes[i] == 1) continue;
      if (tensor.strides[i] != expected) return false;
      expected *= tensor.sizes[i];
    }
    return true;
  }
  // This looks for the dimensions from the smallest stride on. They are few.
  for (int64_t left = tensor.count(); left > 1;) {
    int64_t found = -1;
    for (int64_t i = 0; i < tensor.dims; ++i)
      if (tensor.sizes[i] > 1 && tensor.strides[i] == expected) found = i;
    if (found < 0) return false;
    expected *= tensor.sizes[found];
    left /= tensor.sizes[found];
  }
  return true;
}

void check_gapless(const Tensor& tensor, bool ordered) {
  if (!gapless(tensor, ordered))
    refuse("%s: its elements lie without gaps, and its strides are %s", tensor.name,
           list(tensor.strides, tensor.dims).c_str());
}

void check_elements(const Tensor& tensor, int32_t type) {
  check_type(tensor, {kUint8, kInt8, type});
  check_gapless(tensor, true);
}

}  // namespace

void refuse(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw std::runtime_error(text);
}

void check(dualgemm_status_t status) {
  if (status == DUALGEMM_STATUS_SUCCESS) return;
  const char* said = dualgemm_last_error();
  refuse("%s: %s", dualgemm_status_name(status), *said ? said : dualgemm_status_string(status));
}

void check_torch(AOTITorchError error, const char* call) {
  if (error != AOTI_TORCH_SUCCESS) refuse("PyTorch: %s failed", call);
}

std::string type_name(int32_t type) {
  static constexpr const char* kNames[] = {"uint8",     "int8",      "int16",      "int32",
                                           "int64",     "float16",   "float32",    "float64",
                                           "complex32", "complex64", "complex128", "bool"};
  if (type >= 0 && type < static_cast<int32_t>(std::size(kNames)))
    return std::string("torch.") + kNames[type];
  switch (type) {
    case kBf16: return "torch.bfloat16";
    case 23: return "torch.float8_e5m2";
    case kE4m3: return "torch.float8_e4m3fn";
    case kE8m0: return "torch.float8_e8m0fnu";
    case kE2m1: return "torch.float4_e2m1fn_x2";
    default: return "type " + std::to_string(type);
  }
}

int64_t Tensor::count() const {
  int64_t product = 1;
  for (int64_t i = 0; i < dims; ++i) product *= sizes[i];
  return product;
}

int64_t Tensor::bytes() const { return count() * element_bytes(type); }

int64_t element_bytes(int32_t type) { return static_cast<int64_t>(aoti_torch_dtype_element_size(type)); }

Tensor describe(const char* name, const Handle& handle) {
  Tensor tensor;
  tensor.name = name;
  tensor.given = handle != nullptr;
  if (!handle) return tensor;
  int64_t *sizes = nullptr, *strides = nullptr;
  check_torch(aoti_torch_get_dim(handle.get(), &tensor.dims), "get_dim");
  check_torch(aoti_torch_get_sizes(handle.get(), &sizes), "get_sizes");
  check_torch(aoti_torch_get_strides(handle.get(), &strides), "get_strides");
  check_torch(aoti_torch_get_dtype(handle.get(), &tensor.type), "get_dtype");
  check_torch(aoti_torch_get_device_type(handle.get(), &tensor.device_type), "get_device_type");
  check_torch(aoti_torch_get_device_index(handle.get(), &tensor.device_index), "get_device_index");
  tensor.sizes = sizes;
  tensor.strides = strides;
  if (tensor.device_type != aoti_torch_device_type_meta())
    check_torch(aoti_torch_get_data_ptr(handle.get(), &tensor.data), "get_data_ptr");
  return tensor;
}

Handle allocate(const Tensor& beside, int32_t type, int64_t dims, const int64_t* sizes,
                const int64_t* strides) {
  AtenTensorHandle handle = nullptr;
  check_torch(
      aoti_torch_empty_strided(dims, sizes, strides, type, beside.device_type, beside.device_index, &handle),
      "empty_strided");
  return Handle(handle);
}

Place place_of(const Tensor& tensor) {
  if (tensor.device_type == aoti_torch_device_type_cuda()) return Place::kCuda;
  if (tensor.device_type == aoti_torch_device_type_cpu()) return Place::kCpu;
  if (tensor.device_type == aoti_torch_device_type_meta()) return Place::kMeta;
  refuse("%s: lies on %s, and must lie on cpu, cuda or meta", tensor.name, place_name(tensor).c_str());
}

int32_t extent(const char* name, int64_t value) {
  if (value < 0) refuse("%s=%lld: must not be negative", name, static_cast<long long>(value));
  if (value > std::numeric_limits<int32_t>::max())
    refuse("%s=%lld: the library's field has 32 bits", name, static_cast<long long>(value));
  return static_cast<int32_t>(value);
}

void check_beside(const Tensor& tensor, const Tensor& first) {
  if (tensor.device_type != first.device_type || tensor.device_index != first.device_index)
    refuse("%s: lies on %s, and %s on %s", tensor.name, place_name(tensor).c_str(), first.name,
           place_name(first).c_str());
  if (tensor.recorded)
    refuse("%s: requires a gradient, and must not where gradients are recorded", tensor.name);
}

void check_type(const Tensor& tensor, std::initializer_list<int32_t> types) {
  if (std::find(types.begin(), types.end(), tensor.type) != types.end()) return;
  std::string wanted;
  for (const int32_t type : types) wanted += (wanted.empty() ? "" : ", ") + type_name(type);
  refuse("%s: its elements are %s, and must be one of %s", tensor.name, type_name(tensor.type).c_str(),
         wanted.c_str());
}

Rows check_matrix(const Tensor& tensor, std::initializer_list<int32_t> types, int64_t per, int64_t multiple) {
  check_type(tensor, types);
  if (tensor.dims != 2 && tensor.dims != 3)
    refuse("%s: has %lld dimensions, and a matrix has 2, or 3 with one for problems", tensor.name,
           static_cast<long long>(tensor.dims));
  Rows rows = {tensor.problems(), tensor.size(-2), tensor.size(-1) * per};
  if (tensor.count() == 0) return rows;  // the strides of an empty tensor mean nothing
  const int64_t columns = tensor.size(-1), step = tensor.stride(-1);
  const int64_t pitch = rows.rows == 1 ? columns : tensor.stride(-2);
  const int64_t stride = rows.problems == 1 ? 0 : tensor.stride(0);
  const int64_t size = (rows.rows - 1) * pitch + columns;  // of one problem
  if ((columns > 1 && step != 1) || pitch < columns || (rows.problems > 1 && stride < size))
    refuse("%s: the strides %s are not those of rows one behind the other", tensor.name,
           list(tensor.strides, tensor.dims).c_str());
  const int64_t bytes = element_bytes(tensor.type);
  const std::pair<const char*, int64_t> distances[] = {{"rows", rows.rows == 1 ? 0 : pitch},
                                                       {"problems", stride}};
  for (const auto& [what, distance] : distances)
    if (distance * bytes % multiple != 0)
      refuse("%s: %s must begin at multiples of %lld bytes, and are %lld apart", tensor.name, what,
             static_cast<long long>(multiple), static_cast<long long>(distance * bytes));
  if (rows.rows > 1) rows.pitch = pitch * per;
  if (rows.problems > 1) rows.stride = stride * per;
  return rows;
}

void check_array(const Tensor& tensor, int32_t type, int64_t count) {
  check_elements(tensor, type);
  const int64_t needed = count * element_bytes(type);
  if (tensor.bytes() != needed)
    refuse("%s: has %lld bytes, and %lld are needed", tensor.name, static_cast<long long>(tensor.bytes()),
           static_cast<long long>(needed));
}

int64_t check_numbers(const Tensor& tensor, int64_t problems) {
  if (!tensor) return 0;
  check_elements(tensor, kFp32);
  const int64_t count = tensor.bytes() / 4;
  if (count == 1) return 0;
  if (count != problems)
    refuse("%s: has %lld numbers, and there are %lld problems: must have 1, or one for each", tensor.name,
           static_cast<long long>(count), static_cast<long long>(problems));
  return 1;
}

int64_t check_factors(const Tensor& tensor, int64_t problems, int64_t blocks, int64_t k, int32_t format) {
  check_type(tensor, {kUint8, kInt8, format == DUALGEMM_DTYPE_MXFP4 ? kE8m0 : kE4m3});
  check_gapless(tensor, false);
  const int64_t needed = factor_bytes(blocks, k, format);
  if (tensor.bytes() < problems * needed)
    refuse("%s: has %lld bytes, and %lld are needed", tensor.name, static_cast<long long>(tensor.bytes()),
           static_cast<long long>(problems * needed));
  if (problems <= 1 || tensor.dims < 2 || tensor.size(0) != problems) return 0;
  return tensor.bytes() / problems;  // bytes beyond the needed ones are divided among the problems
}

int64_t blocks_of(int64_t rows, int64_t groups_of_offsets) {
  if (groups_of_offsets == 0 || rows == 0) return (rows + 127) / 128;
  return (rows + 127 * std::min(groups_of_offsets, rows)) / 128;
}

int64_t factor_bytes(int64_t blocks, int64_t k, int32_t format) {
  const int64_t elements = format == DUALGEMM_DTYPE_MXFP4 ? 128 : 64;  // of a row in an atom
  return blocks * ((k + elements - 1) / elements) * 512;
}

void clear(const Tensor& tensor) {
  const size_t bytes = static_cast<size_t>(tensor.bytes());
  switch (place_of(tensor)) {
    case Place::kMeta: return;
    case Place::kCpu: std::memset(tensor.data, 0, bytes); return;
    case Place::kCuda: {
      const OnDevice device(tensor);
      const cudaError_t error =
          cudaMemsetAsync(tensor.data, 0, bytes, static_cast<cudaStream_t>(device.stream()));
      if (error != cudaSuccess) refuse("%s: %s", tensor.name, cudaGetErrorString(error));
    }
  }
}

OnDevice::OnDevice(const Tensor& tensor) {
  if (!aoti_torch_get_current_cuda_stream) refuse("%s: this PyTorch has no CUDA", tensor.name);
  int current = -1;
  // If cudaGetDevice fails, PyTorch's guard fails for the same reason, and check_torch reports that.
  if (cudaGetDevice(&current) != cudaSuccess || current != tensor.device_index)
    check_torch(aoti_torch_create_device_guard(tensor.device_index, &guard_), "create_device_guard");
  void* stream = nullptr;
  const AOTITorchError error = aoti_torch_get_current_cuda_stream(tensor.device_index, &stream);
  if (error != AOTI_TORCH_SUCCESS && guard_) aoti_torch_delete_device_guard(guard_);
  check_torch(error, "get_current_cuda_stream");
  stream_ = static_cast<dualgemm_stream_t>(stream);
}

OnDevice::~OnDevice() {
  if (guard_) aoti_torch_delete_device_guard(guard_);
}

}  // namespace dualgemm::torch_ops
