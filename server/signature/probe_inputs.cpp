#include "server/signature/probe_inputs.h"

#include <algorithm>
#include <cstring>

namespace sconce::server {

int64_t ProbeSizes::of(const Dim& dim, const std::string& key) {
  if (dim.is_static()) return dim.min;
  const auto [it, fresh] = sizes_.emplace(key, 0);
  if (fresh) {
    const auto ordinal = static_cast<int64_t>(sizes_.size() - 1);
    const int64_t least = std::max<int64_t>(dim.min, 1);
    it->second = std::min(others_ > 0 ? std::max(least, others_) : least + 2 * ordinal + shift_, dim.max);
  }
  return it->second;
}

ProbeInputs make_probe_inputs(const ModelInterface& interface, ProbeSizes sizes, int64_t most) {
  using Problem = ProbeInputs::Problem;
  ProbeInputs made;
  const std::string batch = interface.batch_symbol();
  int64_t elements = 0;
  for (size_t i = 0; i < interface.inputs.size(); ++i) {
    made.at = i;
    const TensorSpec& spec = interface.spec.inputs[i];
    if (!spec.has_shape || !spec.dtype || spec.strides.size() != spec.dims.size()) {
      made.problem = Problem::kNotDescribed;
      return made;
    }
    std::vector<int64_t> shape;
    int64_t product = 1;
    made.problem = Problem::kTooLarge;
    for (size_t d = 0; d < spec.dims.size(); ++d) {
      const Dim& dim = spec.dims[d];
      shape.push_back(sizes.of(dim, dim.symbol.empty() ? std::to_string(i) + "," + std::to_string(d) : dim.symbol));
      if (__builtin_mul_overflow(product, shape.back(), &product)) return made;
      if (!batch.empty() && dim.symbol == batch) made.batch = shape.back();
    }
    if (product > most || (elements += product) > most) return made;
    made.problem = Problem::kNone;
    Tensor tensor = Tensor::empty_strided(shape, strides_for(spec, shape), *spec.dtype);
    std::memset(tensor.storage()->data(), 0, tensor.storage()->bytes());
    made.tensors.push_back(std::move(tensor));
  }
  return made;
}

}  // namespace sconce::server
