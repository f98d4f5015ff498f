#include "src/c_api/tensors.h"

#include <memory>
#include <utility>

#include "sconce/device_memory.h"
#include "src/c_api/boundary.h"
#include "src/support/error_context.h"

namespace sconce::c_api {
namespace {

constexpr uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY

struct Element {
  DType dtype;
  uint8_t code, bits;
  uint16_t lanes = 1;
};
constexpr Element kElements[] = {
    {DType::kUInt8, SCONCE_UINT, 8},
    {DType::kInt8, SCONCE_INT, 8},
    {DType::kInt16, SCONCE_INT, 16},
    {DType::kInt32, SCONCE_INT, 32},
    {DType::kInt64, SCONCE_INT, 64},
    {DType::kFloat16, SCONCE_FLOAT, 16},
    {DType::kFloat32, SCONCE_FLOAT, 32},
    {DType::kFloat64, SCONCE_FLOAT, 64},
    {DType::kComplex32, SCONCE_COMPLEX, 32},
    {DType::kComplex64, SCONCE_COMPLEX, 64},
    {DType::kComplex128, SCONCE_COMPLEX, 128},
    {DType::kBool, SCONCE_BOOL, 8},
    {DType::kBFloat16, SCONCE_BFLOAT, 16},
    {DType::kFloat8E5M2, SCONCE_FLOAT8_E5M2, 8},
    {DType::kFloat8E4M3FN, SCONCE_FLOAT8_E4M3FN, 8},
    {DType::kFloat8E5M2FNUZ, SCONCE_FLOAT8_E5M2FNUZ, 8},
    {DType::kFloat8E4M3FNUZ, SCONCE_FLOAT8_E4M3FNUZ, 8},
    {DType::kUInt16, SCONCE_UINT, 16},
    {DType::kUInt32, SCONCE_UINT, 32},
    {DType::kUInt64, SCONCE_UINT, 64},
    {DType::kFloat8E8M0FNU, SCONCE_FLOAT8_E8M0FNU, 8},
    {DType::kFloat4E2M1FNx2, SCONCE_FLOAT4_E2M1FN, 4, 2},
};

Device device_of(const sconce_tensor& tensor, const std::string& what) {
  const auto type = static_cast<int32_t>(tensor.device.device_type);
  const int32_t index = tensor.device.device_id;
  switch (type) {
    case SCONCE_CPU:
    case SCONCE_CUDA_HOST:
      return {};
    case SCONCE_CUDA:
    case SCONCE_CUDA_MANAGED:
      SCONCE_CHECK(index >= 0 && index <= INT8_MAX, kInvalidArgument, what, ": there is no CUDA device ", index);
      return {DeviceType::kCuda, static_cast<int8_t>(index)};
    default:
      SCONCE_FAIL(kInvalidArgument, what, ": expected a device of type 1 (CPU) or 2 (CUDA), got ", type);
  }
}

// A tensor that the caller owns: DLPack's struct points to the sizes and strides of the Tensor.
struct Given {
  sconce_managed_tensor managed;
  Tensor tensor;
};

void destroy(sconce_managed_tensor* managed) { delete static_cast<Given*>(managed->manager_ctx); }

std::unique_ptr<Given> given_tensor(Tensor&& tensor) {
  auto given = std::make_unique<Given>(Given{{}, std::move(tensor)});
  const Tensor& shown = given->tensor;
  sconce_managed_tensor& managed = given->managed;
  managed.version = {1, 0};
  managed.manager_ctx = given.get();
  managed.deleter = &destroy;
  managed.flags = shown.storage()->immutable() ? kReadOnly : 0;
  auto& dl = managed.dl_tensor;
  dl.data = shown.data();
  dl.device = {SCONCE_CPU, 0};
  if (!shown.is_cpu()) dl.device = {SCONCE_CUDA, shown.device().index};
  dl.ndim = static_cast<int32_t>(shown.dim());
  dl.dtype = dlpack_of(shown.dtype());
  dl.shape = const_cast<int64_t*>(shown.sizes().data());
  dl.strides = const_cast<int64_t*>(shown.strides().data());
  dl.byte_offset = 0;
  return given;
}

}  // namespace

sconce_dtype dlpack_of(DType dtype) noexcept {
  for (const Element& element : kElements)
    if (element.dtype == dtype) return {element.code, element.bits, element.lanes};
  return {};
}

DType dtype_of(sconce_dtype dtype, const std::string& what) {
  for (const Element& element : kElements)
    if (element.code == dtype.code && element.bits == dtype.bits && element.lanes == dtype.lanes) return element.dtype;
  SCONCE_FAIL(kInvalidArgument, what, ": no element type has code ", int{dtype.code}, ", ", int{dtype.bits},
              " bits and ", dtype.lanes, " lanes");
}

Tensor view_of(const sconce_tensor* given, const std::string& what) {
  SCONCE_CHECK(given, kInvalidArgument, what, ": the tensor is null");
  const sconce_tensor& tensor = *given;
  const DType dtype = dtype_of(tensor.dtype, what);
  const Device device = device_of(tensor, what);
  SCONCE_CHECK(tensor.ndim >= 0 && tensor.ndim <= Tensor::kMaxRank, kInvalidArgument, what, ": expected 0 to ",
               Tensor::kMaxRank, " dimensions, got ", tensor.ndim);
  const auto rank = static_cast<size_t>(tensor.ndim);
  SCONCE_CHECK(tensor.shape || rank == 0, kInvalidArgument, what, ": its shape is null");
  const IntSpan sizes(tensor.shape, rank);
  bool empty = false;
  for (size_t d = 0; d < rank; ++d) {
    SCONCE_CHECK(sizes[d] >= 0, kInvalidArgument, what, ": the size of dimension ", d, " is negative: ", sizes[d]);
    SCONCE_CHECK(!tensor.strides || tensor.strides[d] >= 0, kInvalidArgument, what, ": the stride of dimension ", d,
                 " is negative: ", tensor.strides ? tensor.strides[d] : 0);
    empty |= sizes[d] == 0;
  }
  std::array<int64_t, Tensor::kMaxRank> row_major;
  if (!tensor.strides) {
    // contiguous_strides() multiplies unchecked.
    int64_t elements = 1;
    for (const int64_t size : sizes)
      SCONCE_CHECK(empty || !__builtin_mul_overflow(elements, size, &elements), kInvalidArgument, what,
                   ": its sizes overflow: ", to_string(sizes));
    if (empty)
      std::fill(row_major.begin(), row_major.end(), 1);
    else
      contiguous_strides(sizes, row_major.data());
  }
  const IntSpan strides(tensor.strides ? tensor.strides : row_major.data(), rank);
  SCONCE_CHECK(tensor.data || empty, kInvalidArgument, what, ": its data is null");
  const uintptr_t at = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  SCONCE_CHECK(empty || at >= tensor.byte_offset, kInvalidArgument, what,
               ": its byte_offset leaves the address space: ", tensor.byte_offset);
  const size_t alignment = is_complex(dtype) ? dtype_bytes(dtype) / 2 : dtype_bytes(dtype);
  SCONCE_CHECK(empty || at % alignment == 0, kInvalidArgument, what,
               ": its data is not aligned to its element type: ", dtype_name(dtype), " at an address that ", alignment,
               " does not divide");
  const ErrorContext named(what);
  return Tensor::from_blob(reinterpret_cast<void*>(at), sizes, strides, dtype, device);  // NOLINT: an address, as given
}

Tensors views_of(const sconce_tensor* const* inputs, size_t count) {
  SCONCE_CHECK(inputs || count == 0, kInvalidArgument, "inputs is null");
  SCONCE_CHECK(count <= 65536, kInvalidArgument, "input_count is too large: ", count);
  Tensors views(count);
  for (size_t i = 0; i < count; ++i) {
    // The name is used only in errors; a string this short allocates nothing.
    views.all()[i] = view_of(inputs[i], "input " + std::to_string(i));
  }
  return views;
}

void give(std::span<Tensor> outputs, std::span<const Tensor> inputs, sconce_managed_tensor** to) {
  std::vector<std::unique_ptr<Given>> given(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    for (const Tensor& input : inputs)
      if (input.storage() == outputs[i].storage()) {
        outputs[i] = copy_to(outputs[i], outputs[i].device());
        break;
      }
    given[i] = given_tensor(std::move(outputs[i]));
  }
  for (size_t i = 0; i < given.size(); ++i) to[i] = given[i] ? &given[i].release()->managed : nullptr;
}

}  // namespace sconce::c_api

void sconce_tensor_free(sconce_managed_tensor* tensor) noexcept {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}
