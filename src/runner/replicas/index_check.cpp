#include "src/runner/replicas/index_check.h"

#include <algorithm>

#include "package_format/text/json_text.h"
#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce::runner {
namespace {

constexpr const char* kIndexBounds = "sconce_index_bounds";

int64_t whole(const SortedJson& entry, const char* name) {
  SCONCE_CHECK(entry.is_object() && entry.contains(name) && entry[name].is_number_integer(), kCorruptPackage,
               "metadata ", kIndexBounds, ": a bound has no whole number '", name, "'");
  return entry[name].get<int64_t>();
}

// Whether all of n numbers, `step` bytes apart, lie in [low, high]. Without branches: loops over packed numbers
// vectorise.
template <class T>
bool all_within(const char* numbers, int64_t step, int64_t n, int64_t low, int64_t high) noexcept {
  const auto least = static_cast<uint64_t>(low), span = static_cast<uint64_t>(high) - least;
  uint64_t beyond = 0;
  const auto look = [&](T number) { beyond |= uint64_t{static_cast<uint64_t>(int64_t{number}) - least > span}; };
  if (step == sizeof(T)) {
    const T* const packed = reinterpret_cast<const T*>(numbers);
    for (int64_t i = 0; i < n; ++i) look(packed[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) look(*reinterpret_cast<const T*>(numbers + i * step));
  }
  return beyond == 0;
}

// Walks through a tensor in row-major order and describes the first number out of bounds.
template <class T>
[[noreturn, gnu::cold]] void fail_index(const std::string& label, const Tensor& tensor, int64_t low, int64_t high) {
  const T* const data = tensor.data_as<T>();
  std::vector<int64_t> at(static_cast<size_t>(tensor.dim()));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = at.size(); d-- > 0;) {
      const auto dim = static_cast<int64_t>(d);
      at[d] = rest % tensor.size(dim);
      rest /= tensor.size(dim);
      offset += at[d] * tensor.stride(dim);
    }
    const int64_t number = data[offset];
    if (number >= low && number <= high) continue;
    SCONCE_FAIL(kInvalidArgument, label, ": index ", number, " at ", to_string(IntSpan(at)), " is out of bounds: ", low,
                " to ", high);
  }
  SCONCE_FAIL(kInternal, label, ": an index was out of bounds and is not any more");  // its memory was written
}

}  // namespace

IndexCheck::IndexCheck(const ModelSpec& spec, bool on) {
  const auto found = spec.metadata.find(kIndexBounds);
  if (!on || found == spec.metadata.end()) return;
  const SortedJson json = parse_json(found->second, "metadata " + std::string(kIndexBounds));
  SCONCE_CHECK(json.is_object() && json.contains("version"), kCorruptPackage, "metadata ", kIndexBounds,
               ": no version");
  if (json["version"] != 1) return;
  SCONCE_CHECK(json.contains("bounds") && json["bounds"].is_array(), kCorruptPackage, "metadata ", kIndexBounds,
               ": no list of bounds");
  for (const SortedJson& entry : json["bounds"]) {
    const int64_t input = whole(entry, "input"), low = whole(entry, "low"), high = whole(entry, "high");
    SCONCE_CHECK(input >= 0 && static_cast<size_t>(input) < spec.inputs.size() && low <= high, kCorruptPackage,
                 "metadata ", kIndexBounds, ": bounds ", low, " to ", high, " of input ", input, ", of ",
                 spec.inputs.size());
    const auto index = static_cast<size_t>(input);
    bounds_.push_back({index, low, high, "input " + std::to_string(input) + " (" + spec.inputs[index].name + ")"});
  }
}

void IndexCheck::of_host(std::span<const Tensor> inputs) const {
  for (const Bound& bound : bounds_)
    if (const Tensor& tensor = inputs[bound.input]; tensor.defined() && tensor.is_cpu()) check(bound, tensor);
}

bool IndexCheck::any_on_device(std::span<const Tensor> inputs) const noexcept {
  return std::ranges::any_of(bounds_, [&](const Bound& bound) { return !inputs[bound.input].is_cpu(); });
}

void IndexCheck::of_device(std::span<const Tensor> inputs) const {
  for (const Bound& bound : bounds_) {
    const Tensor& tensor = inputs[bound.input];
    if (!tensor.defined() || tensor.is_cpu() || tensor.numel() == 0) continue;
    Tensor here = Tensor::empty(tensor.sizes(), tensor.dtype());
    device_backend(tensor.device()).copy(tensor, here);
    check(bound, here);
  }
}

void IndexCheck::check(const Bound& bound, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt8:
      break;
    default:
      return;  // InputCheck refuses it, or the package does not say what it takes
  }
  dispatch_integral(tensor.dtype(), "indices", [&]<class T>() {
    const StridedLoop<1> loop(tensor.sizes(), {tensor.strides()}, {tensor.itemsize()});
    bool sound = true;
    loop.run({static_cast<char*>(const_cast<void*>(tensor.data()))},
             [&](char* const* rows, const int64_t* steps, int64_t count) {
               sound &= all_within<T>(rows[0], steps[0], count, bound.low, bound.high);
             });
    if (!sound) [[unlikely]]
      fail_index<T>(bound.label, tensor, bound.low, bound.high);
  });
}

}  // namespace sconce::runner
