#include "src/runner/runner.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/copy.h"
#include "src/runner/openmp_limits.h"

namespace sconce {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

// Operators outside compiled kernels use as many threads as those kernels; a model without parallel kernels is too
// small to gain from more than one.
int threads_of(const LoadOptions& options, const ModelSpec& spec) {
  SCONCE_CHECK(options.threads >= 0, kInvalidArgument, "threads: ", options.threads, " is negative");
  if (options.threads > 0) return options.threads;
  return spec.threads > 0 ? std::min(spec.threads, usable_cores()) : 1;
}

// Share `index` of `count` of the cores.
std::vector<int> share(const std::vector<int>& cpus, size_t index, size_t count) {
  if (cpus.size() < count) return cpus;
  const size_t each = cpus.size() / count;
  return {cpus.begin() + static_cast<std::ptrdiff_t>(index * each),
          cpus.begin() + static_cast<std::ptrdiff_t>((index + 1) * each)};
}

}  // namespace

Runner::Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
    : package_(std::move(package)),
      check_(spec.inputs, options.devices.empty() ? Device{} : options.devices.front(), options.check_inputs) {
  const auto start = std::chrono::steady_clock::now();
  SCONCE_CHECK(!options.devices.empty(), kInvalidArgument, "devices: none given");
  SCONCE_CHECK(options.replicas >= 1 && options.replicas <= 1024, kInvalidArgument, "replicas: ", options.replicas,
               " is out of range");
  for (Device device : options.devices)
    SCONCE_CHECK(device.type == DeviceType::kCpu, kUnsupported, "device ", to_string(device),
                 ": this build serves the CPU only");
  check_openmp_limits(spec.threads);
  info_.spec = spec;
  info_.devices = options.devices;
  module_ = loader::Module::load(package_, spec);

  const int threads = threads_of(options, spec);
  inline_runs_ = threads == 1 && spec.threads <= 1;
  const size_t count = options.devices.size() * static_cast<size_t>(options.replicas);
  info_.replicas = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i)
    seats_.push_back(std::make_unique<Seat>(static_cast<int>(i),
                                            options.devices[i / static_cast<size_t>(options.replicas)], threads));
  load_constants(options);
  for (size_t i = 0; i < count; ++i) {
    Seat* seat = seats_[i].get();
    seat->lane = std::make_unique<Lane>(
        [this, seat](RunRequest& request) {
          check_(request.inputs);
          seat->replica.acquire();
          struct Release {
            Replica& replica;
            ~Release() { replica.release(); }
          } release{seat->replica};
          run_on(*seat, request.inputs, request.outputs, request.info);
        },
        share(options.cpu_set, i, count), "lane-" + std::to_string(i));
  }
  info_.load_time = std::chrono::steady_clock::now() - start;
}

Runner::~Runner() {
  for (auto& seat : seats_) seat->lane.reset();  // runs what is queued
  active_.store(nullptr);
  active_owner_.reset();
  inactive_prepared_.reset();
}

void Runner::load_constants(const LoadOptions&) {
  // The first container tells what the model's constants are, and the scope it is made in where their bytes lie.
  class Record final : public loader::ConstantSource {
   public:
    Tensor constant(size_t, const Tensor& packaged, bool traced) override {
      // Kernels read with vector loads; packages of torch 2.6 and 2.7 store members unaligned, and untraced bytes die
      // with the container: both get memory of their own.
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
  } record;
  auto first = std::make_unique<loader::Container>(module_, seats_.front()->replica.device(), record);
  const auto constants = first->constants();
  std::vector<Tensor> tensors = std::move(record.tensors);
  const size_t stored =
      static_cast<size_t>(std::count_if(constants.begin(), constants.end(), [](const auto& c) { return !c.folded; }));
  if (tensors.size() < stored) tensors = module_->outside_constants(constants);
  tensors.resize(stored);
  table_ = std::make_unique<ConstantTable>(constants, tensors, info_.spec);
  info_.spec.constants = table_->all();
  for (const Tensor& t : tensors)
    if (t.defined()) info_.constant_bytes += t.storage()->bytes();

  auto complete = [](std::vector<TensorSpec>& specs, const std::vector<std::string>& names) {
    specs.resize(names.size());
    for (size_t i = 0; i < names.size(); ++i) specs[i].name = names[i];
  };
  complete(info_.spec.inputs, first->input_names());
  complete(info_.spec.outputs, first->output_names());
  check_ = InputCheck(info_.spec.inputs, seats_.front()->replica.device(), check_.full());
  // It serves as well, unless it has constants that this replica alone may write or some that are not its own to bring.
  const bool usable = !table_->any_mutated() && first->constants_given() == stored && stored == constants.size();
  if (!usable) first.reset();
  publish(stage(std::make_shared<ConstantSet>(std::move(tensors)), {}, std::move(first)));
}

std::unique_ptr<Runner::Generation> Runner::stage(std::shared_ptr<const ConstantSet> set,
                                                  const std::vector<bool>& reset,
                                                  std::unique_ptr<loader::Container> first) {
  auto next = std::make_unique<Generation>();
  next->set = std::move(set);
  if (first) next->containers.push_back(std::move(first));
  for (size_t i = next->containers.size(); i < seats_.size(); ++i)
    next->containers.push_back(seats_[i]->replica.build(module_, *table_, *next->set, reset));
  return next;
}

void Runner::publish(std::unique_ptr<Generation> next) {
  next->number = published_number_.load(std::memory_order_relaxed) + 1;
  Generation* old = active_.exchange(next.get());
  published_number_.store(next->number, std::memory_order_relaxed);
  for (auto& seat : seats_) {
    seat->replica.commit_buffers();
    if (old)
      while (seat->pinned.load() == old) seat->pinned.wait(old);
  }
  active_owner_ = std::move(next);
}

void Runner::run_on(Seat& seat, std::span<const Tensor> inputs, std::span<Tensor> outputs, RunInfo& info) {
  struct Pin {
    Seat& seat;
    Generation* generation;
    Pin(Seat& s, const std::atomic<Generation*>& active) : seat(s), generation(active.load()) {
      seat.pinned.store(generation);
      for (Generation* now = active.load(); now != generation; now = active.load()) {
        generation = now;
        seat.pinned.store(generation);
        seat.pinned.notify_all();
      }
    }
    ~Pin() {
      seat.pinned.store(nullptr);
      seat.pinned.notify_all();
    }
  } pin(seat, active_);
  const Generation& generation = *pin.generation;
  if (const std::string_view missing = generation.set->missing(*table_); !missing.empty())
    SCONCE_FAIL(kFailedPrecondition, "the package brings no weights and constant '", missing, "' has not been given");
  const auto start = std::chrono::steady_clock::now();
  seat.replica.run(*generation.containers[static_cast<size_t>(seat.replica.index())], inputs, outputs);
  info.compute = std::chrono::steady_clock::now() - start;
  info.generation = generation.number;
  info.replica = seat.replica.index();
}

RunInfo Runner::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  check_(inputs);
  if (inline_runs_) {
    const size_t first = seats_.size() == 1 ? 0 : next_seat_.fetch_add(1, std::memory_order_relaxed);
    for (size_t i = 0; i < seats_.size(); ++i) {
      Seat& seat = *seats_[(first + i) % seats_.size()];
      if (!seat.replica.try_acquire()) continue;
      struct Release {
        Replica& replica;
        ~Release() { replica.release(); }
      } release{seat.replica};
      RunInfo info;
      run_on(seat, inputs, outputs, info);
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
  submit(request);
  request.done.wait(false, std::memory_order_acquire);
  if (request.error) std::rethrow_exception(request.error);
  return request.info;
}

void Runner::submit(RunRequest& request) noexcept {
  Lane* least = seats_.front()->lane.get();
  for (auto& seat : seats_)
    if (seat->lane->load() < least->load()) least = seat->lane.get();
  least->submit(request);
}

std::unique_lock<std::mutex> Runner::begin_update() const {
  std::unique_lock lock(update_mutex_, std::try_to_lock);
  SCONCE_CHECK(lock, kBusy, "another weight update of this model is under way");
  return lock;
}

std::vector<bool> Runner::named(const ConstantMap& constants) const {
  std::vector<bool> named(table_->stored().size());
  for (const auto& [name, tensor] : constants)
    for (const size_t i : table_->indices(name)) named[i] = true;
  return named;
}

void Runner::update(Buffer buffer, const ConstantMap& constants, bool full, bool user_managed) {
  const auto lock = begin_update();
  auto set = active_owner_->set->with(*table_, constants, full, user_managed);
  if (buffer == Buffer::kActive) {
    publish(stage(std::move(set), named(constants)));
    return;
  }
  inactive_prepared_.reset();
  inactive_ = std::move(set);
  inactive_reset_ = named(constants);
}

void Runner::fold(Buffer buffer) {
  const auto lock = begin_update();
  if (buffer == Buffer::kActive) {
    for (auto& seat : seats_) {
      seat->replica.acquire();
      struct Release {
        Replica& replica;
        ~Release() { replica.release(); }
      } release{seat->replica};
      active_owner_->containers[static_cast<size_t>(seat->replica.index())]->fold();
    }
    return;
  }
  SCONCE_CHECK(inactive_, kFailedPrecondition, "there is no inactive constant set to fold");
  inactive_prepared_ = stage(inactive_, inactive_reset_);
}

void Runner::swap() {
  const auto lock = begin_update();
  SCONCE_CHECK(inactive_, kFailedPrecondition, "there is no inactive constant set to swap in");
  auto next = inactive_prepared_ ? std::move(inactive_prepared_) : stage(inactive_, inactive_reset_);
  auto previous = active_owner_->set;
  publish(std::move(next));
  inactive_ = std::move(previous);
  inactive_reset_.clear();
}

void Runner::free_inactive() {
  const auto lock = begin_update();
  inactive_prepared_.reset();
  inactive_.reset();
}

ConstantMap Runner::extract(Buffer buffer) const {
  const auto lock = begin_update();
  const auto& set = buffer == Buffer::kActive ? active_owner_->set : inactive_;
  SCONCE_CHECK(set, kFailedPrecondition, "there is no inactive constant set");
  ConstantMap map;
  for (size_t i = 0; i < set->tensors().size(); ++i) {
    const auto& buffers = seats_.front()->replica.buffers();
    const bool own = buffer == Buffer::kActive && i < buffers.size() && buffers[i].defined();
    const Tensor& tensor = own ? buffers[i] : set->tensors()[i];
    if (tensor.defined()) map.emplace(table_->stored()[i].public_name(), tensor);
  }
  return map;
}

}  // namespace sconce
