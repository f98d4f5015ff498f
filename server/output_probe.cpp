#include "server/output_probe.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace sconce {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 24;

// Sizes for the symbols of a model: different for each symbol, and all different in the second run.
class Sizes {
 public:
  explicit Sizes(int64_t shift) : shift_(shift) {}

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

bool make_inputs(const ModelInterface& interface, int64_t shift, Probe& probe) {
  Sizes sizes(shift);
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

}  // namespace

void probe_outputs(Model& model, ModelInterface& interface) {
  if (interface.mutates_constants || model.info().devices.front().type != DeviceType::kCpu) return;
  Probe first, second;
  if (!make_inputs(interface, 0, first) || !make_inputs(interface, 1, second)) return;
  model.run(first.inputs, first.outputs);
  model.run(second.inputs, second.outputs);
  interface.observe_outputs(first.outputs, second.outputs, first.batch, second.batch);
}

}  // namespace sconce
