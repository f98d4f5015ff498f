#include "src/runner/runner.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/device/open_ahead.h"
#include "src/runner/replicas/openmp_limits.h"
#include "src/runner/warm_up.h"

namespace sconce::runner {
namespace {

// What runs that failed may lose of the model's memory before it fails.
constexpr uint64_t kMaxLost = uint64_t{256} << 20;

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

std::vector<int> share(const std::vector<int>& cpus, size_t index, size_t count) {
  if (cpus.size() < count) return cpus;
  const size_t each = cpus.size() / count;
  return {cpus.begin() + static_cast<std::ptrdiff_t>(index * each),
          cpus.begin() + static_cast<std::ptrdiff_t>((index + 1) * each)};
}

void check_device(Device device, const ModelSpec& spec) {
  const bool cuda = spec.device_key == "cuda";
  SCONCE_CHECK(cuda == (device.type == DeviceType::kCuda), kInvalidArgument, "device ", to_string(device),
               ": the model was compiled for ", cuda ? "cuda" : "the CPU");
  if (cuda) device_backend(device).check(device);
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

Runner::Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
    : package_(std::move(package)),
      package_watch_(package_->archive()),
      check_(spec.inputs, options.devices.empty() ? Device{} : options.devices.front(), options.check_inputs, {},
             spec.bounds),
      indices_(spec, options.check_inputs && options.check_indices),
      slots_([this](ReplicaSlot& slot, RunRequest& request) {
        {
          const Held held(slot);
          if (!request.starting()) return;
          const Watch watch(*this, slot);  // waits for what was begun, if something fails
          {
            const DeviceStream::Scope on_device(slot.replica->lane());
            request.preparing();
          }
          check_(request.inputs);
          indices_.of_host(request.inputs);
          check_device_indices(slot, request.inputs);
          run_on(slot, request.inputs, request.outputs, request.weights, request.step,
                 {request.device_outputs, request.last_rows}, request.info);
          request.ran();
        }
        settle_packed();
      }) {
  const auto start = std::chrono::steady_clock::now();
  SCONCE_CHECK(options.max_code_faults >= 0, kInvalidArgument, "max_code_faults: ", options.max_code_faults,
               " is negative");
  max_code_faults_ = static_cast<uint64_t>(options.max_code_faults);
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
  const OpeningAhead opening(devices, on_device ? needs_of(*package_, spec) : ModelNeeds());
  check_cores(options.cpu_set);
  check_openmp_limits(spec.threads);
  info_.spec = spec;
  info_.devices = devices;
  // The child loads the model at the same time as this process.
  std::optional<WarmUpTrial> trial;
  const bool tried = options.warm_up && devices.front().type == DeviceType::kCpu && !options.trial.program.empty();
  if (tried && spec.weights_bytes >= kWarmUpBytes && why_no_dummy_run(spec).empty())
    trial.emplace(*package_, spec, options);
  module_ = loader::Module::load(package_, spec);

  SCONCE_CHECK(options.cuda_graphs >= 0 && options.cuda_graphs <= 1024, kInvalidArgument,
               "cuda_graphs: ", options.cuda_graphs, " is not between 0 and 1024");
  replica_settings_ = {threads_of(options, spec), spec.threads,
                       options.host_outputs,      devices_of(spec.inputs, devices.front()),
                       written(spec.inputs),      LaneOptions{options.allow_tf32},
                       options.cuda_graphs};
  warm_up_ = options.warm_up;
  inline_runs_ = replica_settings_.threads == 1 && spec.threads <= 1;
  on_caller_ = inline_runs_ && options.cpu_set.empty();
  const size_t count = devices.size() * static_cast<size_t>(options.replicas);
  info_.replicas = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i)
    slots_.open(slots_.vacant(),
                std::make_unique<Replica>(devices[i / static_cast<size_t>(options.replicas)], replica_settings_),
                share(options.cpu_set, i, count));
  load_constants(options);
  if (warm_up_ && devices.front().type == DeviceType::kCpu && info_.constant_bytes >= kWarmUpBytes)
    info_.no_warm_up = tried ? warm_up_tried(trial, options) : "no program was given that tries made-up inputs first";
  info_.load_time = std::chrono::steady_clock::now() - start;
}

Runner::~Runner() {
  const std::vector<Device> devices = std::move(info_.devices);
  for (size_t i = 0; i < slots_.limit(); ++i) close(slots_[i]);  // runs what is queued
  published_.store(nullptr);
  other_.reset();
  active_.reset();
  for (const Device device : devices)
    if (device.type != DeviceType::kCpu) device_backend(device).trim(device);
}

// Returns why the model did not run; empty: it did, after the child.
std::string Runner::warm_up_tried(std::optional<WarmUpTrial>& trial, const LoadOptions& options) const {
  if (std::string why = why_no_dummy_run(info_.spec); !why.empty()) return why;
  if (!trial) trial.emplace(*package_, info_.spec, options);
  const WarmUp learned = trial->wait();
  return learned.problem.empty() ? warm_up(learned.inputs).problem : learned.problem;
}

void Runner::load_constants(const LoadOptions& options) {
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
  const Device device = slots_[0].replica->device();
  const bool on_cpu = device.type == DeviceType::kCpu;
  const std::unique_ptr<DeviceStream> lane =
      on_cpu ? nullptr : device_backend(device).make_lane(device, {options.allow_tf32});
  const DeviceStream::Scope on_device(lane.get());
  auto first = std::make_unique<ModelInstance>();
  first->container = std::make_unique<loader::Container>(module_, device, record);
  const loader::Container& container = *first->container;
  const auto constants = container.constants();
  std::vector<Tensor> tensors = std::move(record.tensors);
  const size_t stored =
      static_cast<size_t>(std::count_if(constants.begin(), constants.end(), [](const auto& c) { return !c.folded; }));
  if (tensors.size() < stored) tensors = module_->outside_constants(constants);
  tensors.resize(stored);
  table_ = std::make_unique<ConstantTable>(constants, tensors, info_.spec, record.devices);
  info_.spec.constants = table_->all();
  for (const Tensor& t : tensors)
    if (t.defined()) info_.constant_bytes += t.storage()->bytes();

  container.complete(info_.spec);
  check_ = InputCheck(info_.spec.inputs, device, check_.full(), module_->least_ranks(), info_.spec.bounds);
  // The first container serves too, if it was given all its constants, folds none and writes none.
  const bool usable =
      on_cpu && !table_->any_mutated() && container.constants_given() == stored && !table_->any_folded();
  const auto packaged = std::make_shared<const ConstantSet>(std::move(tensors));
  auto generation = std::make_unique<Generation>(*table_, packaged, "", std::vector<bool>{});
  if (usable) generation->bound[0] = std::move(first);
  first.reset();
  {
    const MutexLock work(work_mutex_);
    bind_all(*generation);
    publish(std::move(generation));
  }
  open_sets(packaged, options);
  open_places(options);
}

bool Runner::code_has_failed() const noexcept {
  return max_code_faults_ > 0 && (module_->damage() >= max_code_faults_ || module_->loss() >= kMaxLost);
}

void Runner::refuse_failed_code() const {
  constexpr std::string_view kAgain = ": it does not run again before it is loaded again";
  SCONCE_CHECK(module_->damage() >= max_code_faults_, kUnavailable, "the model's code has lost ", module_->loss() >> 20,
               " MiB of memory in runs that failed", kAgain);
  SCONCE_FAIL(kUnavailable, "the model's code has accessed memory that it may not, or met an illegal instruction, ",
              max_code_faults_, " times", kAgain);
}

Runner::Watch::Watch(Runner& runner, ReplicaSlot& slot) noexcept
    : runner_(runner), slot_(slot), before_(std::uncaught_exceptions()) {}
Runner::Watch::~Watch() {
  if (std::uncaught_exceptions() == before_) return;
  if (runner_.code_has_failed()) runner_.code_failed_.store(true);
  if (!slot_.replica->lost()) return;
  slot_.failed.store(true);
  if (runner_.slots_.all_failed()) runner_.failed_.store(true);
}

void Runner::check_device_indices(ReplicaSlot& slot, std::span<const Tensor> inputs) {
  if (!slot.replica->lane() || !indices_.any_on_device(inputs)) return;  // entering a lane is a call of CUDA
  const DeviceStream::Scope on_device(slot.replica->lane());
  indices_.of_device(inputs);
}

void Runner::run_on(ReplicaSlot& slot, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                    const WeightSet* weights, const SequenceStep& step, const Delivery& delivery, RunInfo& info) {
  struct Pin {
    ReplicaSlot& slot;
    const Generation* generation;
    Pin(ReplicaSlot& s, const std::atomic<const Generation*>& published) : slot(s), generation(published.load()) {
      slot.pinned.store(generation);
      for (const Generation* now = published.load(); now != generation; now = published.load()) {
        generation = now;
        slot.pinned.store(generation);
        slot.pinned.notify_all();
      }
    }
    ~Pin() {
      slot.pinned.store(nullptr);
      slot.pinned.notify_all();
    }
  } pin(slot, published_);
  if (code_failed()) [[unlikely]]
    refuse_failed_code();
  const Generation& generation = *pin.generation;
  const Watch watch(*this, slot);
  if (step.sequence) return run_step(slot, generation, weights, step, inputs, outputs, delivery, info);
  if (weights) [[unlikely]]
    return run_set(slot, generation, *weights, inputs, outputs, delivery, info);
  SCONCE_CHECK(generation.missing.empty(), kFailedPrecondition, "the package brings no weights and constant '",
               generation.missing, "' has not been given");
  ModelInstance* const bound = generation.bound[slot.index].get();
  SCONCE_CHECK(bound, kUnavailable, "replica ", slot.index, " does not serve any more: ", slot.replica->failure());
  run_container(slot, *bound, generation.reads_package, inputs, outputs, delivery, info);
  info.generation = generation.number.load(std::memory_order_relaxed);
  info.label = generation.label;
}

void Runner::run_container(ReplicaSlot& slot, ModelInstance& bound, bool reads_package, std::span<const Tensor> inputs,
                           std::span<Tensor> outputs, const Delivery& delivery, RunInfo& info) {
  const auto start = std::chrono::steady_clock::now();
  slot.replica->run(bound, inputs, outputs, delivery);
  const auto end = std::chrono::steady_clock::now();
  if (reads_package) package_watch_.check_outputs(outputs, end);
  info.compute = end - start;
  info.ended = end;
  info.replica = static_cast<int>(slot.index);
}

RunInfo Runner::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity,
                    const WeightSet* weights, const SequenceStep& step, bool device_outputs) {
  check_inputs(inputs);
  if (inline_runs_) {
    std::exception_ptr error;
    ReplicaSlot* const own = step.sequence ? slot_for(step, -1, error) : nullptr;
    if (error) std::rethrow_exception(error);
    if (ReplicaSlot* slot = own ? slots_.acquire_idle(*own) : slots_.acquire_idle(affinity)) {
      RunInfo info;
      {
        const Held held(*slot, Held::Adopt{});
        check_device_indices(*slot, inputs);
        run_on(*slot, inputs, outputs, weights, step, {.device_outputs = device_outputs, .last_rows = {}}, info);
      }
      settle_packed();
      return info;
    }
  }
  struct Waiting final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done.store(true, std::memory_order_release);
      done.notify_one();
    }
  } request;
  request.inputs = inputs;
  request.outputs = outputs;
  request.affinity = affinity;
  request.weights = weights;
  request.step = step;
  request.device_outputs = device_outputs;
  submit(request);
  request.done.wait(false, std::memory_order_acquire);
  if (request.error) std::rethrow_exception(request.error);
  return request.info;
}

void Runner::submit(RunRequest& request) noexcept {
  if (request.step.sequence || request.replica >= 0) {
    if (ReplicaSlot* const slot = slot_for(request.step, request.replica, request.error)) {
      if (slot->lane.submit(request)) return;
      request.error = no_replica_;
    }
    return request.finished();
  }
  // A slot may close between the choice and the request's arrival. Then choose again, until the model is unloaded.
  while (ReplicaSlot* slot = slots_.choose(request.affinity, static_cast<const LoadedSet*>(request.weights)))
    if (slot->lane.submit(request)) return;
  request.error = unloading_;
  request.finished();
}

int Runner::add_replica(Device device, std::vector<int> cpus) {
  check_device(device, info_.spec);
  check_cores(cpus);
  const MutexLock work(work_mutex_);
  ReplicaSlot& slot = slots_.vacant();
  auto replica = std::make_unique<Replica>(device, replica_settings_);
  const Generation &served = *active(), *const beside = other();
  auto container = on_cores(cpus, [&] { return replica->bind(module_, *table_, *served.set, {}, nullptr, nullptr); });
  package_watch_.check(*served.set);
  // The staged set must remain one exchange away from serving.
  std::unique_ptr<ModelInstance> staged;
  if (beside && beside->staged) {
    staged = on_cores(cpus, [&] {
      return replica->bind(module_, *table_, *beside->set, beside->reset, container.get(), served.set.get());
    });
  }
  {
    const MutexLock state(state_mutex_);
    active_->bound[slot.index] = std::move(container);
    if (staged) other_->bound[slot.index] = std::move(staged);
  }
  if (!cpus.empty()) on_caller_.store(false);
  slots_.open(slot, std::move(replica), std::move(cpus));
  failed_.store(false);
  return static_cast<int>(slot.index);
}

void Runner::remove_replica(int index) {
  const MutexLock work(work_mutex_);
  const auto i = static_cast<size_t>(index);
  SCONCE_CHECK(index >= 0 && i < slots_.limit() && slots_[i].open.load(), kNotFound, "there is no replica ", index);
  SCONCE_CHECK(slots_.open_count() > 1, kFailedPrecondition, "replica ", index, " is the last one: unload the model");
  close(slots_[i]);
  std::unique_ptr<ModelInstance> gone[2];
  const MutexLock state(state_mutex_);
  gone[0] = std::move(active_->bound[i]);
  if (other_) gone[1] = std::move(other_->bound[i]);
  on_caller_.store(inline_runs_ && !slots_.any_pinned());
}

}  // namespace sconce::runner
