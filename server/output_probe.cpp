#include "server/output_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "sconce/float_types.h"
#include "server/request_memory.h"

namespace sconce {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 24;

// Sizes for the symbols of a model: different for each symbol, and all different in the second run.
class Sizes {
 public:
  explicit Sizes(int64_t shift) : shift_(shift) {}
  Sizes(std::string symbol, int64_t size) : shift_(0), sizes_{{std::move(symbol), size}} {}

  int64_t of(const Dim& dim, const std::string& key) {
    if (dim.is_static()) return dim.min;
    const auto [it, fresh] = sizes_.emplace(key, 0);
    if (fresh) {
      const auto ordinal = static_cast<int64_t>(sizes_.size() - 1);
      it->second = std::min(std::max<int64_t>(dim.min, 1) + 2 * ordinal + shift_, dim.max);
    }
    return it->second;
  }

 private:
  int64_t shift_;
  std::map<std::string, int64_t> sizes_;
};

struct Probe {
  std::vector<Tensor> inputs, outputs;
  int64_t batch = 0;
};

bool make_inputs(const ModelInterface& interface, Sizes sizes, Probe& probe) {
  const std::string batch = interface.batch_symbol();
  int64_t elements = 0;
  for (size_t i = 0; i < interface.inputs.size(); ++i) {
    const TensorSpec& spec = interface.spec.inputs[i];
    if (!spec.has_shape || !spec.dtype || spec.strides.size() != spec.dims.size()) return false;
    std::vector<int64_t> shape, strides(spec.dims.size());
    int64_t product = 1;
    for (size_t d = 0; d < spec.dims.size(); ++d) {
      const Dim& dim = spec.dims[d];
      shape.push_back(sizes.of(dim, dim.symbol.empty() ? std::to_string(i) + "," + std::to_string(d) : dim.symbol));
      if (__builtin_mul_overflow(product, shape.back(), &product)) return false;
      if (!batch.empty() && dim.symbol == batch) probe.batch = shape.back();
    }
    if (product > kMaxElements || (elements += product) > kMaxElements) return false;
    // Zeros look alike in any order of dimensions, but the model may check strides.
    int64_t dense = 1;
    for (size_t d = spec.dims.size(); d-- > 0;) {
      if (spec.strides[d]) dense = std::max(dense, *spec.strides[d] * std::max<int64_t>(shape[d], 1));
    }
    for (size_t d = spec.dims.size(); d-- > 0;) {
      strides[d] = spec.strides[d].value_or(dense);
      if (!spec.strides[d]) dense *= std::max<int64_t>(shape[d], 1);
    }
    Tensor tensor = Tensor::empty_strided(shape, strides, *spec.dtype);
    std::memset(tensor.storage()->data(), 0, tensor.storage()->bytes());
    probe.inputs.push_back(std::move(tensor));
  }
  probe.outputs.resize(interface.outputs.size());
  return true;
}

// Floats of a normal distribution, booleans and integers 0 or 1; other dtypes stay zero.
void fill(const Tensor& tensor, std::mt19937& random) {
  std::normal_distribution<float> normal;
  const size_t count = tensor.storage()->bytes() / tensor.itemsize();
  const auto set = [&]<class T>(T*, auto&& value) {
    T* const data = static_cast<T*>(tensor.storage()->data());
    for (size_t i = 0; i < count; ++i) data[i] = value();
  };
  const auto bit = [&] { return static_cast<uint8_t>(random() & 1); };
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return set(static_cast<float*>(nullptr), [&] { return normal(random); });
    case DType::kFloat64:
      return set(static_cast<double*>(nullptr), [&] { return static_cast<double>(normal(random)); });
    case DType::kFloat16:
      return set(static_cast<Half*>(nullptr), [&] { return Half(normal(random)); });
    case DType::kBFloat16:
      return set(static_cast<BFloat16*>(nullptr), [&] { return BFloat16(normal(random)); });
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
      return set(static_cast<uint8_t*>(nullptr), bit);
    case DType::kInt16:
      return set(static_cast<int16_t*>(nullptr), bit);
    case DType::kInt32:
      return set(static_cast<int32_t*>(nullptr), bit);
    case DType::kInt64:
      return set(static_cast<int64_t*>(nullptr), bit);
    default:
      return;
  }
}

std::vector<Tensor> rows_of(const std::vector<Tensor>& tensors, int64_t first, int64_t count) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
    sizes[0] = count;
    parts.push_back(tensor.as_strided(sizes, tensor.strides(), tensor.storage_offset() + first * tensor.stride(0)));
  }
  return parts;
}

// Equal but for rounding: kernels are chosen by size. tolerance: of the largest value.
template <class T>
bool agree(const std::vector<std::byte>& a, const std::vector<std::byte>& b, double tolerance) {
  const size_t count = a.size() / sizeof(T);
  const auto value = [](const std::vector<std::byte>& bytes, size_t i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    return static_cast<double>(element);
  };
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(value(a, i))) largest = std::max(largest, std::abs(value(a, i)));
  }
  for (size_t i = 0; i < count; ++i) {
    const double x = value(a, i), y = value(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= tolerance * largest)) return false;
  }
  return true;
}

bool agree(const Tensor& a, const Tensor& b) {
  std::vector<std::byte> left(a.bytes()), right(b.bytes());
  copy_to_contiguous(a, left.data());
  copy_to_contiguous(b, right.data());
  switch (a.dtype()) {
    case DType::kFloat32:
      return agree<float>(left, right, 1e-2);
    case DType::kFloat64:
      return agree<double>(left, right, 1e-6);
    case DType::kFloat16:
      return agree<Half>(left, right, 5e-2);
    case DType::kBFloat16:
      return agree<BFloat16>(left, right, 1e-1);
    default:
      return left == right;
  }
}

}  // namespace

void probe_outputs(Model& model, ModelInterface& interface) {
  if (interface.mutates_constants || model.info().devices.front().type != DeviceType::kCpu) return;
  Probe first, second;
  if (!make_inputs(interface, Sizes(0), first) || !make_inputs(interface, Sizes(1), second)) return;
  model.run(first.inputs, first.outputs);
  model.run(second.inputs, second.outputs);
  interface.observe_outputs(first.outputs, second.outputs, first.batch, second.batch);
}

void probe_rows(Model& model, ModelInterface& interface) {
  const std::string batch = interface.batch_symbol();
  if (batch.empty()) return;
  // Recorded minima of 2 are those of 1 (sconce/package.h).
  const int64_t least = interface.spec.inputs[0].dims[0].min, part = least <= 2 ? 1 : least, rows = part + part + 1;
  if (rows > interface.max_batch_size) return;
  Probe whole;
  if (!make_inputs(interface, Sizes(batch, rows), whole)) return;
  std::mt19937 random(1);
  for (const Tensor& input : whole.inputs) fill(input, random);
  model.run(whole.inputs, whole.outputs);
  for (const auto& [first, count] : {std::pair(int64_t{0}, part), std::pair(part, rows - part)}) {
    std::vector<Tensor> outputs(whole.outputs.size());
    model.run(rows_of(whole.inputs, first, count), outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor &all = whole.outputs[i], &some = outputs[i];
      if (!all.defined() || !some.defined() || all.dim() == 0 || !all.is_cpu() || !some.is_cpu()) continue;
      const bool shaped = all.size(0) == rows && some.size(0) == count && all.dim() == some.dim() &&
                          std::equal(all.sizes().begin() + 1, all.sizes().end(), some.sizes().begin() + 1);
      if (!shaped || !agree(rows_of({all}, first, count)[0], some)) interface.rows_mixed = true;
    }
  }
}

}  // namespace sconce
