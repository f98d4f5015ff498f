#include "src/runner/replica.h"

#include <algorithm>
#include <utility>

#include "src/device/threads.h"
#include "src/ops/copy.h"

namespace sconce {
namespace {

// Answers a container with the tensors of a set.
class FromSet final : public loader::ConstantSource {
 public:
  explicit FromSet(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  Tensor constant(size_t index, const Tensor&, bool, Device) override { return tensors_.at(index); }

 private:
  const std::vector<Tensor>& tensors_;
};

}  // namespace

Replica::Replica(Device device, Settings settings) : device_(device), settings_(std::move(settings)) {
  if (device.type != DeviceType::kCpu) lane_ = device_backend(device).make_lane(device);
}

std::unique_ptr<BoundContainer> Replica::bind(const std::shared_ptr<const loader::Module>& module,
                                              const ConstantTable& table, const ConstantSet& set,
                                              const std::vector<bool>& reset, const BoundContainer* before,
                                              const ConstantSet* active) const {
  auto bound = std::make_unique<BoundContainer>();
  std::vector<Tensor> tensors = set.on(device_, table, active);
  // A stream of its own: the replica's is in use by requests.
  const std::unique_ptr<DeviceLane> lane = lane_ ? device_backend(device_).make_lane(device_) : nullptr;
  const DeviceLane::Scope on_device(lane.get());
  if (table.any_mutated()) {
    if (before) bound->buffers = before->buffers;
    bound->buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!table.stored()[i].spec.mutated || !tensors[i].defined()) continue;
      if (!bound->buffers[i].defined() || (i < reset.size() && reset[i]))
        bound->buffers[i] = clone_preserve_strides(tensors[i]);
      tensors[i] = bound->buffers[i];
    }
  }
  FromSet source(tensors);
  bound->container = std::make_unique<loader::Container>(module, device_, source);
  if (bound->container->constants_given() == 0 && !tensors.empty()) {
    std::vector<std::pair<std::string, Tensor>> pairs;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) pairs.emplace_back(table.stored()[i].spec.name, tensors[i]);
    if (!pairs.empty()) bound->container->set_constants(pairs);
  }
  // Without folded constants there is nothing to compute, and a container says so on std::cerr.
  if (table.any_folded() && set.missing(table).empty()) bound->container->fold(lane ? lane->stream() : nullptr);
  if (lane) lane->synchronize();
  return bound;
}

void Replica::run(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const CpuArena::Scope scope(arena_.get());
  set_kernel_threads(settings_.threads);
  if (!lane_) return container.run(inputs, outputs);
  run_on_device(container, inputs, outputs);
}

void Replica::run_on_device(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  DeviceBackend& backend = device_backend(device_);
  const DeviceLane::Scope on_device(lane_.get());
  std::vector<Tensor> sent(inputs.begin(), inputs.end());
  for (size_t i = 0; i < sent.size(); ++i) {
    const bool stays = i < settings_.input_devices.size() && settings_.input_devices[i].type == DeviceType::kCpu;
    if (!sent[i].is_cpu() || stays) continue;
    Tensor there = Tensor::empty_strided(sent[i].sizes(), sent[i].strides(), sent[i].dtype(), device_);
    backend.copy(sent[i], there);
    sent[i] = std::move(there);
  }
  container.run(sent, outputs, lane_->stream());
  std::vector<Tensor> fetched;  // kept until the stream has passed
  if (settings_.host_outputs)
    for (Tensor& output : outputs) {
      if (!output.defined() || output.is_cpu()) continue;
      Tensor here(backend.allocate_host(std::max<size_t>(
                      storage_bytes_needed(output.sizes(), output.strides(), 0, output.itemsize()), 1)),
                  output.dtype(), output.sizes(), output.strides());
      backend.copy_async(output, here);
      fetched.push_back(std::exchange(output, std::move(here)));
    }
  lane_->synchronize();
}

}  // namespace sconce
