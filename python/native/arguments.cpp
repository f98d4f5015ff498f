#include "python/native/arguments.h"

#include <cstring>
#include <utility>

#include "python/native/dlpack_tensors.h"
#include "python/native/errors.h"
#include "python/native/host_arrays.h"
#include "python/native/numbers.h"
#include "python/native/tensor_object.h"
#include "sconce/check.h"
#include "sconce/device_memory.h"

namespace sconce::python {
namespace {

// Whether the recorded strides are those of a row-major tensor, as far as fixed sizes tell.
bool is_row_major(const TensorSpec& spec) {
  int64_t expected = 1;  // -1 once a variable size is in the product
  for (size_t d = spec.dims.size(); d-- > 0;) {
    const auto& stride = spec.strides[d];
    if (stride && (expected < 0 || *stride != expected)) return false;
    if (!stride && expected >= 0 && d + 1 < spec.dims.size() && !spec.dims[d].is_static()) return false;
    expected = spec.dims[d].is_static() && expected >= 0 ? expected * spec.dims[d].min : -1;
  }
  return true;
}

// Strides in elements, if they can be a tensor's: whole elements, none negative. Dimensions of size 1 may have any.
bool element_strides(const ArrayView& view, size_t item, int64_t* strides) {
  int64_t dense = 1;
  for (int d = view.rank; d-- > 0;) {
    const int64_t bytes = view.byte_strides[d];
    if (view.sizes[d] <= 1) {
      strides[d] = dense;
    } else {
      if (bytes < 0 || bytes % static_cast<int64_t>(item) != 0) return false;
      strides[d] = bytes / static_cast<int64_t>(item);
      dense *= view.sizes[d];
    }
  }
  return true;
}

bool is_empty(IntSpan sizes) {
  for (const int64_t size : sizes)
    if (size == 0) return true;
  return false;
}

// Whether the model takes these strides, as far as its package says.
bool fits(const InputRule& rule, IntSpan sizes, const int64_t* strides) {
  if (rule.row_major) {
    int64_t dense = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (sizes[d] != 1 && strides[d] != dense) return is_empty(sizes);
      dense *= sizes[d];
    }
  } else if (rule.strides.size() == sizes.size()) {
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1 && strides[d] != rule.strides[d]) return is_empty(sizes);
  }
  return true;
}

Tensor empty_for(const InputRule& rule, IntSpan sizes, DType dtype) {
  if (rule.row_major || rule.strides.size() != sizes.size()) return Tensor::empty(sizes, dtype);
  return Tensor::empty_strided(sizes, rule.strides, dtype);
}

// A library that cannot share a tensor (PyTorch's sparse ones, say) raises an error that does not name the argument.
std::optional<ForeignTensor> shared_by_library(nb::handle object, const std::string& what) {
  try {
    return foreign_tensor(object);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    const std::string text = text_of(nb::str(error.value()));
    SCONCE_FAIL(kInvalidArgument, what, ": the ", class_name(object), " cannot be read by DLPack: ",
                text.substr(0, text.find('\n')));  // PyTorch's errors go on with a stack trace
  }
}

// Also what lies between elements, so that two copies can be compared.
void clear_gaps(const Tensor& tensor) {
  if (!tensor.is_dense()) std::memset(tensor.storage()->data(), 0, tensor.storage()->bytes());
}

size_t used_bytes(const Tensor& tensor) {
  return storage_bytes_needed(tensor.sizes(), tensor.strides(), 0, tensor.itemsize());
}

}  // namespace

InputRule::InputRule(const TensorSpec& spec, std::string input_path)
    : path(std::move(input_path)), dtype(spec.dtype), may_be_written(spec.may_be_written) {
  if (!spec.has_shape || spec.strides.size() != spec.dims.size()) return;
  row_major = is_row_major(spec);
  if (row_major) return;
  for (const auto& stride : spec.strides) {
    if (!stride) {
      strides.clear();
      return;
    }
    strides.push_back(*stride);
  }
}

InputRule::InputRule(InputRule&& other) noexcept
    : path(std::move(other.path)),
      dtype(other.dtype),
      may_be_written(other.may_be_written),
      row_major(other.row_major),
      strides(std::move(other.strides)),
      was_written(other.was_written.load()) {}

Tensor Arguments::take(nb::handle object, const InputRule& rule) {
  if (is_array(object)) return take_array(object, rule);
  if (const Tensor* tensor = tensor_of_object(object)) return *tensor;
  if (is_number(object)) return tensor_of_number(object, rule.dtype, rule.path);
  if (is_numpy_scalar(object)) return take_array(array_of_scalar(object), rule);
  return take_foreign(object, rule);
}

Tensor Arguments::take_array(nb::handle array, const InputRule& rule) {
  const ArrayView view = view_array(array);
  SCONCE_CHECK(view.dtype, kInvalidArgument, rule.path, ": expected ",
               rule.dtype ? dtype_name(*rule.dtype) : std::string_view("numbers"), ", got an array of ",
               dtype_text(array));
  SCONCE_CHECK(view.rank <= Tensor::kMaxRank, kInvalidArgument, rule.path, ": ", view.rank,
               " dimensions are more than ", Tensor::kMaxRank);
  const IntSpan sizes{view.sizes, static_cast<size_t>(view.rank)};
  int64_t strides[Tensor::kMaxRank];
  const bool viewable = view.native && element_strides(view, dtype_bytes(*view.dtype), strides);
  if (viewable && is_empty(sizes)) contiguous_strides(sizes, strides);
  if (viewable && (view.writable || !rule.may_be_written) && fits(rule, sizes, strides)) [[likely]]
    return viewed(view.data, sizes, strides, *view.dtype, {}, array, view.writable);
  return copied(array, sizes, *view.dtype, rule, view.writable);
}

Tensor Arguments::viewed(std::byte* data, IntSpan sizes, const int64_t* strides, DType dtype, Device device,
                         nb::handle owner, bool writable) {
  Tensor tensor = tensor_on(data, sizes, {strides, sizes.size()}, dtype, device, owner);
  if (!writable) [[unlikely]]
    read_only_.push_back(tensor.storage().get());
  return tensor;
}

Tensor Arguments::copied(nb::handle array, IntSpan sizes, DType dtype, const InputRule& rule, bool writable) {
  // The runtime's own check says better what is wrong with another dtype.
  SCONCE_CHECK(writable || !rule.was_written.load(std::memory_order_relaxed), kInvalidArgument, rule.path,
               ": the model writes this input, but the array is read-only");
  Tensor tensor = empty_for(rule, sizes, dtype);
  clear_gaps(tensor);
  copy_array(array, tensor);
  if (rule.may_be_written && tensor.numel() > 0) copies_.push_back({nb::borrow(array), tensor, &rule, writable});
  return tensor;
}

Tensor Arguments::take_foreign(nb::handle object, const InputRule& rule) {
  const std::optional<ForeignTensor> foreign = shared_by_library(object, rule.path);
  if (!foreign) {
    const nb::object array = array_of_buffer(object);
    SCONCE_CHECK(
        array, kInvalidArgument, rule.path, ": expected an array, a tensor or a number, got an object of type ",
        class_name(object),
        PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ? " (numpy.asarray makes an array of it)" : "");
    return take_array(array, rule);
  }
  const DLTensor& t = foreign->tensor;
  const DType dtype = dtype_of(t, rule.path.c_str());
  const Device device = device_of(t, rule.path.c_str());
  SCONCE_CHECK(t.ndim >= 0 && t.ndim <= Tensor::kMaxRank, kInvalidArgument, rule.path, ": ", t.ndim,
               " dimensions are more than ", Tensor::kMaxRank);
  const IntSpan sizes{t.shape, static_cast<size_t>(t.ndim)};
  int64_t strides[Tensor::kMaxRank];
  contiguous_strides(sizes, strides);
  bool viewable = true;
  if (t.strides && !is_empty(sizes))
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1) {
        strides[d] = t.strides[d];
        viewable = viewable && strides[d] >= 0;
      }
  const bool here = device.type == DeviceType::kCpu;
  SCONCE_CHECK(here || viewable, kInvalidArgument, rule.path, ": negative strides on ", to_string(device));
  SCONCE_CHECK(t.data || is_empty(sizes), kInvalidArgument, rule.path, ": the ", class_name(object),
               " has no memory of its own");
  auto* data = static_cast<std::byte*>(t.data) + t.byte_offset;
  if (!here || (viewable && (foreign->writable || !rule.may_be_written) && fits(rule, sizes, strides)))
    return viewed(data, sizes, strides, dtype, device, foreign->owner, foreign->writable);
  SCONCE_CHECK(viewable, kInvalidArgument, rule.path, ": negative strides");
  const Tensor view = tensor_on(data, sizes, {strides, sizes.size()}, dtype, device, foreign->owner);
  return copied(array_on(view, bits_dtype(dtype)), sizes, dtype, rule, foreign->writable);
}

void Arguments::give_back() {
  for (Copy& copy : copies_) {
    Tensor before = Tensor::empty_strided(copy.tensor.sizes(), copy.tensor.strides(), copy.tensor.dtype());
    clear_gaps(before);
    copy_array(copy.array, before);
    if (std::memcmp(before.storage()->data(), copy.tensor.storage()->data(), used_bytes(before)) == 0) continue;
    copy.rule->was_written.store(true);
    SCONCE_CHECK(copy.writable, kInvalidArgument, copy.rule->path,
                 ": the model writes this input, but the array is read-only");
    copy_array(copy.tensor, copy.array);
  }
  copies_.clear();
}

void Arguments::separate(std::span<Tensor> outputs) const {
  for (const Storage* const storage : read_only_)
    for (Tensor& output : outputs)
      if (output.defined() && output.storage().get() == storage) output = copy_to(output, output.device());
}

Tensor host_tensor(nb::handle object, const std::string& what, std::optional<DType> scalar_dtype) {
  TensorSpec any;
  any.may_be_written = false;
  InputRule rule(any, what);
  rule.dtype = scalar_dtype;
  Arguments arguments;
  Tensor tensor = arguments.take(object, rule);
  if (tensor.is_cpu()) return tensor;
  std::optional<ForeignTensor> foreign = foreign_tensor(object, true);
  if (!foreign) return tensor;
  const DLTensor& t = foreign->tensor;
  const IntSpan sizes{t.shape, static_cast<size_t>(t.ndim)};
  std::vector<int64_t> strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  if (t.strides) strides.assign(t.strides, t.strides + t.ndim);
  return tensor_on(static_cast<std::byte*>(t.data) + t.byte_offset, sizes, strides, dtype_of(t, what.c_str()),
                   device_of(t, what.c_str()), foreign->owner);
}

}  // namespace sconce::python
