#include "sconce/model.h"

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/weight_sources.h"
#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"
#include "src/loader/op_library.h"
#include "src/runner/runner.h"
#include "src/tensor/copy.h"

namespace sconce {

using aoti_abi::in_memory;

struct Model::Impl {
  Impl(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
      : libraries(loader::OpLibrary::open_all(options.op_libraries)), runner(std::move(package), spec, options) {}
  std::vector<std::shared_ptr<const loader::OpLibrary>> libraries;  // destroyed after the model that calls them
  runner::Runner runner;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<Model> Model::load(std::shared_ptr<const Package> package, LoadOptions options) {
  SCONCE_CHECK(package, kInvalidArgument, "no package given");
  return in_memory("load", [&] {
    if (options.verify) package->verify();
    const ModelSpec& spec = package->model(options.model_name);
    return std::shared_ptr<Model>(new Model(std::make_unique<Impl>(std::move(package), spec, options)));
  });
}

Tensor copy_to(const Tensor& tensor, Device device) {
  if (device.type != DeviceType::kCpu) device_backend(device).check(device);
  std::vector<int64_t> strides(tensor.strides().begin(), tensor.strides().end());
  if (!tensor.is_dense()) contiguous_strides(tensor.sizes(), strides.data());
  Tensor copied = Tensor::empty_strided(tensor.sizes(), strides, tensor.dtype(), device);
  copy(tensor, copied);
  return copied;
}

Tensor join_rows(std::span<const Tensor> parts, bool wait) {
  const Tensor& first = parts.front();
  std::vector<int64_t> sizes(first.sizes().begin(), first.sizes().end());
  std::vector<int64_t> strides(first.strides().begin(), first.strides().end());
  int64_t rows = 0, row = 1;
  for (const Tensor& part : parts) rows += part.size(0);
  for (size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
  sizes[0] = rows;
  strides[0] = row;
  const Tensor whole = Tensor::empty_strided(sizes, strides, first.dtype(), first.device());
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    sizes[0] = part.size(0);
    Tensor place = whole.as_strided(sizes, strides, offset);
    if (whole.is_cpu())
      copy(part, place);
    else
      device_backend(whole.device()).copy_async(part, place);
    offset += part.size(0) * row;
  }
  if (wait && !whole.is_cpu()) device_backend(whole.device()).wait(whole.device());
  return whole;
}

StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device) {
  const std::string why = why_no_device(device.type);
  SCONCE_CHECK(why.empty(), kInvalidArgument, why);
  DeviceBackend& backend = device_backend(device);
  backend.check(device);
  return backend.open_shared(handle, device);
}

void wait_for_device_event(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device) {
  const std::string why = why_no_device(device.type);
  SCONCE_CHECK(why.empty(), kInvalidArgument, why);
  DeviceBackend& backend = device_backend(device);
  backend.check(device);
  backend.wait_for_shared(handle, device);
}

std::vector<Device> visible_devices(DeviceType type) {
  std::vector<Device> devices;
  if (!why_no_device(type).empty()) return devices;
  const int count = device_backend(type).count();
  for (int i = 0; i < count; ++i) devices.push_back({type, static_cast<int8_t>(i)});
  return devices;
}

std::string device_uuid(Device device) {
  DeviceBackend& backend = device_backend(device);
  backend.check(device);
  return backend.uuid(device);
}

void transfer(const Tensor& source, Tensor& destination) {
  copy(source, destination);
  for (const Tensor* tensor : {&source, static_cast<const Tensor*>(&destination)})
    if (!tensor->is_cpu()) device_backend(tensor->device()).wait(tensor->device());
}

const ModelInfo& Model::info() const noexcept { return impl_->runner.code().info; }
RunInfo Model::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity,
                   const WeightSet* weights, const SequenceStep& step, bool device_outputs) {
  return impl_->runner.run(inputs, outputs, affinity, weights, step, device_outputs);
}
WarmUp Model::warm_up(std::optional<uint64_t> expected) {
  return in_memory("warm_up", [&] { return impl_->runner.warm_up(expected); });
}
bool Model::runs_on_caller() const noexcept { return impl_->runner.replicas().runs_on_caller(); }
void Model::submit(RunRequest& request) { impl_->runner.submit(request); }
void Model::check_inputs(std::span<const Tensor> inputs) const { impl_->runner.check_inputs(inputs); }
std::shared_ptr<Sequence> Model::make_sequence(bool rows) {
  return in_memory("make_sequence", [&] { return impl_->runner.sequences().make(shared_from_this(), rows); });
}
uint64_t Model::sequence_bytes() const noexcept { return impl_->runner.sequences().bytes(); }
int64_t Model::sequence_rows() const noexcept { return impl_->runner.sequences().rows(); }
uint64_t Model::weight_version() const noexcept { return impl_->runner.versions().number(); }
std::vector<ConstantSpec> Model::constants() const { return impl_->runner.code().table->all(); }

std::unique_ptr<WeightUpdate> Model::begin_update(UpdateOptions options) {
  return in_memory("begin_update", [&] { return impl_->runner.begin_update(std::move(options), shared_from_this()); });
}
uint64_t Model::commit_weights(uint64_t weight_version) {
  return in_memory("commit", [&] { return impl_->runner.versions().commit(weight_version); });
}
void Model::abort_weights() {
  in_memory("abort", [&] { impl_->runner.versions().abort(); });
}
uint64_t Model::rollback_weights() {
  return in_memory("rollback", [&] { return impl_->runner.versions().rollback(); });
}
void Model::set_weight_version(uint64_t weight_version) {
  in_memory("set_weight_version", [&] { impl_->runner.versions().set_number(weight_version); });
}
void Model::release_previous() {
  in_memory("release", [&] { impl_->runner.versions().release_previous(); });
}
std::vector<WeightSetInfo> Model::weight_sets() const { return impl_->runner.versions().list(); }
std::string Model::weights_digest(WeightState state) const {
  return in_memory("weights_digest", [&] { return impl_->runner.versions().digest(state); });
}
std::unique_ptr<WeightSetFile> Model::open_weights(WeightState state) const {
  return in_memory("open_weights", [&] { return impl_->runner.versions().open(state, shared_from_this()); });
}

std::unique_ptr<Rehearsal> Model::rehearse(WeightState state) const {
  return in_memory("rehearse", [&] { return impl_->runner.rehearse(state, nullptr, shared_from_this()); });
}

std::unique_ptr<Rehearsal> Model::rehearse(const std::shared_ptr<const WeightSet>& set) const {
  return in_memory("rehearse",
                   [&] { return impl_->runner.rehearse(WeightState::kActive, set.get(), shared_from_this()); });
}

std::shared_ptr<const WeightSet> Model::find_set(std::string_view name) const {
  return impl_->runner.sets().named().find(name);
}
bool Model::binds_quickly() const noexcept { return impl_->runner.sets().instantiates_quickly(); }
std::shared_ptr<const WeightSet> Model::bring_set(std::string_view name) {
  return in_memory("bring_set", [&] { return impl_->runner.sets().named().bring(name); });
}
std::vector<NamedSetInfo> Model::named_sets() const { return impl_->runner.sets().list(); }
NamedSetInfo Model::named_set(std::string_view name) const { return impl_->runner.sets().named().info(name); }
std::string Model::set_digest(std::string_view name) {
  return in_memory("set_digest", [&] { return impl_->runner.sets().digest(name); });
}
std::unique_ptr<WeightSetFile> Model::open_set(std::string_view name) {
  return in_memory("open_set", [&] { return impl_->runner.sets().open(name, shared_from_this()); });
}
uint64_t Model::commit_set(std::string_view name) {
  return in_memory("commit_set", [&] { return impl_->runner.sets().named().commit(name); });
}
void Model::abort_set(std::string_view name) { impl_->runner.sets().named().abort(name); }
void Model::set_weight_version(std::string_view name, uint64_t from, uint64_t to) {
  in_memory("set_weight_version", [&] { impl_->runner.sets().named().set_version(name, from, to); });
}

uint64_t Model::restore_set(std::string_view name) {
  return in_memory("restore_set", [&] { return impl_->runner.sets().named().restore(name); });
}
NamedSetsMemory Model::named_sets_memory() const { return impl_->runner.sets().memory(); }
void Model::remove_set(std::string_view name) { impl_->runner.sets().named().remove(name); }
uint64_t Model::promote_set(std::string_view name) {
  return in_memory("promote_set", [&] { return impl_->runner.sets().promote(name); });
}

std::vector<TensorDifference> Model::weights_difference(WeightState other) const {
  return in_memory("weights_difference", [&] { return impl_->runner.versions().difference(other); });
}

ConstantMap Model::extract_constants(WeightState state) const { return impl_->runner.versions().extract(state); }

int Model::add_replica(Device device, std::vector<int> cpus) {
  return in_memory("add_replica", [&] { return impl_->runner.versions().add_replica(device, std::move(cpus)); });
}
void Model::remove_replica(int index) { impl_->runner.versions().remove_replica(index); }
std::vector<ReplicaInfo> Model::replicas() const { return impl_->runner.replicas().slots().describe(); }
void Model::give_back_idle_memory() noexcept { impl_->runner.versions().free_idle_memory(); }
std::string Model::package_fault() const { return impl_->runner.versions().package_fault(); }
bool Model::failed() const noexcept { return impl_->runner.replicas().failed(); }
bool Model::code_failed() const noexcept { return impl_->runner.replicas().code_failed(); }

}  // namespace sconce
