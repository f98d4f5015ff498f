#include "src/runner/code_load.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/replicas/openmp_limits.h"
#include "src/runner/replicas/replica_thread.h"
#include "src/runner/sets/loaded_set.h"

namespace sconce::runner {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

// Operators outside compiled kernels use as many threads as those kernels. A model without parallel kernels is too
// small to gain from several.
int threads_of(const LoadOptions& options, const ModelSpec& spec) {
  SCONCE_CHECK(options.threads >= 0, kInvalidArgument, "threads: ", options.threads, " is negative");
  if (options.threads > 0) return options.threads;
  return spec.threads > 0 ? std::min(spec.threads, usable_cores()) : 1;
}

ModelNeeds needs_of(const Package& package, const ModelSpec& spec) {
  ModelNeeds needs{loader::imports_of(package, spec)};
  for (const TensorSpec& input : spec.inputs) {
    const bool floating = input.dtype && is_floating(*input.dtype);
    double rows = 1;  // which does not overflow
    for (size_t d = 0; d + (floating && input.dims.size() > 1 ? 1 : 0) < input.dims.size(); ++d)
      rows *= static_cast<double>(input.dims[d].max);
    needs.rows = std::max(needs.rows, static_cast<int64_t>(std::min(rows, 1e18)));
  }
  return needs;
}

std::vector<Device> devices_of(const std::vector<TensorSpec>& inputs, Device otherwise) {
  std::vector<Device> devices;
  for (const TensorSpec& input : inputs) devices.push_back(input.device.value_or(otherwise));
  return devices;
}

std::vector<bool> written(const std::vector<TensorSpec>& inputs) {
  std::vector<bool> flags;
  for (const TensorSpec& input : inputs) flags.push_back(input.may_be_written);
  return flags;
}

}  // namespace

CodeLoad::CodeLoad(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
    : code{.package = std::move(package),
           .module = nullptr,
           .table = nullptr,
           .input_check = {spec.inputs,
                           options.devices.empty() ? Device{} : options.devices.front(),
                           options.check_inputs,
                           {},
                           spec.bounds},
           .index_check = {spec, options.check_inputs && options.check_indices},
           .info = {},
           .replica_settings = {}} {
  SCONCE_CHECK(options.max_code_faults >= 0, kInvalidArgument, "max_code_faults: ", options.max_code_faults,
               " is negative");
  SCONCE_CHECK(!options.devices.empty(), kInvalidArgument, "devices: none given");
  std::vector<Device> devices = options.devices;
  for (Device& device : devices)
    if (device.type == DeviceType::kCuda && device.index < 0) device.index = 0;  // "cuda" is the first one
  const size_t most = kMaxReplicas / devices.size();
  SCONCE_CHECK(options.replicas >= 1 && static_cast<size_t>(options.replicas) <= most, kInvalidArgument,
               "replicas: ", options.replicas, " is out of range");
  for (const Device device : devices) check_device(device, spec);
  // Not before: the driver opens libraries while it starts, and the loader opens one after the other.
  const bool on_device = std::ranges::any_of(devices, [](Device d) { return d.type != DeviceType::kCpu; });
  opening_.emplace(devices, on_device ? needs_of(*code.package, spec) : ModelNeeds());
  check_cores(options.cpu_set);
  check_openmp_limits(spec.threads);
  code.info.spec = spec;
  code.info.devices = devices;
  may_try = options.warm_up && devices.front().type == DeviceType::kCpu && !options.trial.program.empty();
  if (may_try && spec.weights_bytes >= kWarmUpBytes && why_no_dummy_run(spec).empty())
    trial.emplace(*code.package, spec, options);
  code.module = loader::Module::load(code.package, spec);

  SCONCE_CHECK(options.cuda_graphs >= 0 && options.cuda_graphs <= 1024, kInvalidArgument,
               "cuda_graphs: ", options.cuda_graphs, " is not between 0 and 1024");
  code.replica_settings = {threads_of(options, spec), spec.threads,
                           options.host_outputs,      devices_of(spec.inputs, devices.front()),
                           written(spec.inputs),      LaneOptions{options.allow_tf32},
                           options.cuda_graphs};
  code.warm_up = options.warm_up;
  code.info.replicas = static_cast<int>(devices.size()) * options.replicas;
  read_constants(options);
}

void CodeLoad::read_constants(const LoadOptions& options) {
  // The first container lists the model's constants; the scope that makes it finds their places.
  class Record final : public loader::ConstantSource {
   public:
    Tensor constant(size_t, const Tensor& packaged, bool traced, Device device) override {
      devices.push_back(device);
      // Kernels use vector loads, packages of torch 2.6 and 2.7 store members unaligned, and untraced bytes die with
      // the container: such constants are copied.
      const bool in_place = traced && reinterpret_cast<uintptr_t>(packaged.storage()->data()) % 64 == 0;
      tensors.push_back(in_place ? packaged : copied(packaged));
      return tensors.back();
    }
    static Tensor copied(const Tensor& packaged) {
      const Storage& from = *packaged.storage();
      StoragePtr storage = allocate_cpu(from.bytes());
      if (from.bytes()) std::memcpy(storage->data(), from.data(), from.bytes());
      if (from.opaque_metadata()) storage->set_opaque_metadata(*from.opaque_metadata());
      storage->set_immutable(true);
      return Tensor(std::move(storage), packaged.dtype(), packaged.sizes(), packaged.strides(),
                    packaged.storage_offset(), packaged.layout());
    }
    std::vector<Tensor> tensors;
    std::vector<Device> devices;
  } record;
  const Device device = code.info.devices.front();
  const bool on_cpu = device.type == DeviceType::kCpu;
  const std::unique_ptr<DeviceStream> stream =
      on_cpu ? nullptr : device_backend(device).make_lane(device, {options.allow_tf32});
  const DeviceStream::Scope on_device(stream.get());
  auto instance = std::make_unique<ModelInstance>();
  instance->container = std::make_unique<loader::Container>(code.module, device, record);
  const loader::Container& container = *instance->container;
  const auto constants = container.constants();
  std::vector<Tensor> tensors = std::move(record.tensors);
  const size_t stored =
      static_cast<size_t>(std::count_if(constants.begin(), constants.end(), [](const auto& c) { return !c.folded; }));
  if (tensors.size() < stored) tensors = code.module->outside_constants(constants);
  tensors.resize(stored);
  code.table = std::make_unique<const ConstantTable>(constants, tensors, code.info.spec, record.devices);
  code.info.spec.constants = code.table->all();
  for (const Tensor& t : tensors)
    if (t.defined()) code.info.constant_bytes += t.storage()->bytes();

  container.complete(code.info.spec);
  code.input_check = InputCheck(code.info.spec.inputs, device, code.input_check.full(), code.module->least_ranks(),
                                code.info.spec.bounds);
  // It serves too, if it was given all its constants, folds none and writes none.
  const bool usable =
      on_cpu && !code.table->any_mutated() && container.constants_given() == stored && !code.table->any_folded();
  weights = std::make_shared<const ConstantSet>(std::move(tensors));
  if (usable) first = std::move(instance);
}

}  // namespace sconce::runner
