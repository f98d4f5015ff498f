#include "src/runner/replicas/replica_pool.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "sconce/check.h"
#include "src/device/device_backend.h"

namespace sconce::runner {
namespace {

// What runs that failed may lose of the model's memory before it fails.
constexpr uint64_t kMaxLost = uint64_t{256} << 20;

std::vector<int> share(const std::vector<int>& cpus, size_t index, size_t count) {
  if (cpus.size() < count) return cpus;
  const size_t each = cpus.size() / count;
  return {cpus.begin() + static_cast<std::ptrdiff_t>(index * each),
          cpus.begin() + static_cast<std::ptrdiff_t>((index + 1) * each)};
}

}  // namespace

ReplicaPool::ReplicaPool(const ModelCode& code, const PackageWatch& files, const LoadOptions& options,
                         std::function<void(ReplicaSlot&, RunRequest&)> run)
    : code_(code),
      files_(files),
      inline_runs_(code.replica_settings.threads == 1 && code.info.spec.threads <= 1),
      max_code_faults_(static_cast<uint64_t>(options.max_code_faults)),
      on_caller_(inline_runs_ && options.cpu_set.empty()),
      slots_(std::move(run)) {
  const auto count = static_cast<size_t>(code.info.replicas);
  for (size_t i = 0; i < count; ++i)
    slots_.open(
        slots_.vacant(),
        std::make_unique<Replica>(code.info.devices[i / static_cast<size_t>(options.replicas)], code.replica_settings),
        share(options.cpu_set, i, count));
}

ReplicaSlot* ReplicaPool::open_slot(size_t index) const noexcept {
  return index < slots_.limit() && slots_[index].open.load() ? &slots_[index] : nullptr;
}

void ReplicaPool::run(ReplicaSlot& slot, ModelInstance& instance, bool reads_package, const RunCall& call) const {
  const auto start = std::chrono::steady_clock::now();
  slot.replica->run(instance, call.inputs, call.outputs, call.delivery);
  const auto end = std::chrono::steady_clock::now();
  if (reads_package) files_.check_outputs(call.outputs, end);
  call.info.compute = end - start;
  call.info.ended = end;
  call.info.replica = static_cast<int>(slot.index);
}

void ReplicaPool::open(ReplicaSlot& slot, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept {
  if (!cpus.empty()) on_caller_.store(false);
  slots_.open(slot, std::move(replica), std::move(cpus));
  failed_.store(false);
}

bool ReplicaPool::code_has_failed() const noexcept {
  return max_code_faults_ > 0 && (code_.module->damage() >= max_code_faults_ || code_.module->loss() >= kMaxLost);
}

void ReplicaPool::refuse_code() const {
  constexpr std::string_view kAgain = ": it does not run again before it is loaded again";
  SCONCE_CHECK(code_.module->damage() >= max_code_faults_, kUnavailable, "the model's code has lost ",
               code_.module->loss() >> 20, " MiB of memory in runs that failed", kAgain);
  SCONCE_FAIL(kUnavailable, "the model's code has accessed memory that it may not, or met an illegal instruction, ",
              max_code_faults_, " times", kAgain);
}

void ReplicaPool::note_fault(ReplicaSlot& slot) noexcept {
  if (code_has_failed()) code_failed_.store(true);
  if (!slot.replica->lost()) return;
  slot.failed.store(true);
  if (slots_.all_failed()) failed_.store(true);
}

void ReplicaPool::check_any_works() const {
  SCONCE_CHECK(!slots_.all_failed(), kUnavailable, "no replica is left whose device works");
}

std::optional<Device> ReplicaPool::device_of_all() const {
  std::optional<Device> first;
  for (const ReplicaInfo& replica : slots_.describe()) {
    if (replica.device.type == DeviceType::kCpu) return std::nullopt;
    if (!first && replica.failure.empty()) first = replica.device;
  }
  return first;
}

Device ReplicaPool::first_device() const {
  for (const ReplicaInfo& replica : slots_.describe())
    if (replica.failure.empty()) return replica.device;
  SCONCE_FAIL(kUnavailable, "no replica is left whose device works");
}

void ReplicaPool::free_idle_memory() noexcept {
  for (size_t i = 0; i < slots_.limit(); ++i) {
    ReplicaSlot& slot = slots_[i];
    if (!slot.open.load() || slot.failed.load() || !slot.try_acquire()) continue;
    const SlotLock lock(slot, SlotLock::Adopt{});
    slot.replica->give_back_idle_memory();
  }
}

void ReplicaPool::trim_devices() const noexcept {
  for (size_t i = 0; i < slots_.limit(); ++i) {
    const ReplicaSlot& slot = slots_[i];
    if (!slot.open.load() || !slot.replica || slot.failed.load()) continue;
    const Device device = slot.replica->device();
    bool before = device.type == DeviceType::kCpu;
    for (size_t j = 0; j < i && !before; ++j) before = slots_[j].replica && slots_[j].replica->device() == device;
    if (!before) device_backend(device).trim(device);
  }
}

}  // namespace sconce::runner
