#include "python/native/weight_updates.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "python/native/arguments.h"
#include "python/native/errors.h"
#include "python/native/host_arrays.h"
#include "python/native/package_source.h"
#include "python/native/tensor_object.h"
#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/weight_sources.h"

namespace sconce::python {
namespace {

using DTypes = std::map<std::string, std::optional<DType>, std::less<>>;

DTypes dtypes_of(const Model& model) {
  DTypes dtypes;
  for (const ConstantSpec& constant : model.constants())
    dtypes.emplace(constant.fqn.empty() ? constant.name : constant.fqn, constant.dtype);
  return dtypes;
}

// Tensors that are not needed any more go with the GIL held, since they may be the last to refer to an array.
struct Weights {
  std::vector<WeightEntry> entries;
  std::vector<Tensor> tensors;
};

Weights read(nb::handle mapping, const DTypes& dtypes) {
  SCONCE_CHECK(nb::hasattr(mapping, "items"), kInvalidArgument,
               "weights: expected a mapping of names to arrays, or a path, got an object of type ",
               class_name(mapping));
  Weights weights;
  for (const nb::handle item : mapping.attr("items")()) {
    const nb::object key = item[0], value = item[1];
    SCONCE_CHECK(PyUnicode_Check(key.ptr()), kInvalidArgument, "weights: expected names, got a key of type ",
                 class_name(key));
    std::string name = text_of(key);
    const auto found = dtypes.find(name);
    Tensor tensor = host_tensor(value, "weights[" + text_of(nb::repr(key)) + "]",
                                found == dtypes.end() ? std::nullopt : found->second);
    weights.entries.push_back(
        {std::move(name), tensor.dtype(), std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())});
    weights.tensors.push_back(std::move(tensor));
  }
  return weights;
}

void fill(WeightUpdate& update, const Weights& weights) {
  update.declare(weights.entries);
  for (size_t i = 0; i < weights.entries.size(); ++i) {
    const Tensor& source = weights.tensors[i];
    const std::span<std::byte> memory = update.memory(i);
    std::vector<int64_t> strides(source.sizes().size());
    contiguous_strides(source.sizes(), strides.data());
    Tensor place = Tensor::from_blob(memory.data(), source.sizes(), strides, source.dtype());
    if (source.numel() > 0) transfer(source, place);
    update.complete(i);
  }
  update.finish();
}

}  // namespace

void stage(LoadedModel& loaded, nb::handle weights, UpdateOptions options) {
  Model& model = loaded.model();
  if (const std::string path = path_of(weights); !path.empty()) {
    const nb::gil_scoped_release released;
    const std::unique_ptr<WeightUpdate> update = model.begin_update(std::move(options));
    FileOptions file;
    file.constants = model.constants();
    stage_file(*update, path, file);
    update->finish();
    return;
  }
  const Weights read_weights = read(weights, dtypes_of(model));
  const nb::gil_scoped_release released;
  const std::unique_ptr<WeightUpdate> update = model.begin_update(std::move(options));
  fill(*update, read_weights);
}

nb::dict state_dict(LoadedModel& loaded) {
  Model& model = loaded.model();
  ConstantMap copies;
  {
    const nb::gil_scoped_release released;
    for (const auto& [name, tensor] : model.extract_constants(WeightState::kActive))
      if (tensor.defined() && tensor.layout() == Layout::kStrided) copies.emplace(name, copy_to(tensor, Device{}));
  }
  nb::dict dict;
  for (auto& [name, tensor] : copies) {
    nb::object value;
    try {
      value = array_on(tensor);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported) throw;
      value = object_of_tensor(std::move(tensor));
    }
    dict[nb::str(name.c_str())] = value;
  }
  return dict;
}

}  // namespace sconce::python
