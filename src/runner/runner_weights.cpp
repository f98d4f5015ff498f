// Runner: the published constant set and the one beside it.
#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constants/set_difference.h"
#include "src/runner/constants/set_weights.h"
#include "src/runner/runner.h"

namespace sconce::runner {

Runner::Turn::Turn(const Runner& runner, std::string what, bool may_find_staged) : runner_(runner) {
  const MutexLock state(runner.state_mutex_);
  SCONCE_CHECK(runner.turn_.empty(), kBusy, "another weight update of this model is under way: ", runner.turn_);
  if (const Generation* other = runner.other_.get(); other && other->staged && !may_find_staged)
    SCONCE_FAIL(kBusy, "weights '", other->label ? *other->label : "",
                "' are staged: they are to be committed or aborted first");
  runner.turn_ = std::move(what);
}

Runner::Turn::~Turn() {
  const MutexLock state(runner_.state_mutex_);
  runner_.turn_.clear();
}

std::unique_ptr<ModelInstance> Runner::bind(const ReplicaSlot& slot, const Generation& generation) const {
  const Generation* const served = active();
  const ModelInstance* before = served ? served->bound[slot.index].get() : nullptr;
  return on_cores(slot.lane.cpus(), [&] {
    return slot.replica->bind(module_, *table_, *generation.set, generation.reset, before,
                              served ? served->set.get() : nullptr);
  });
}

bool Runner::has_current_buffers(const Generation& generation, size_t slot) const noexcept {
  const Generation* const served = active();
  if (!table_->any_mutated() || !served || !served->bound[slot]) return true;
  const std::vector<Tensor>&own = generation.bound[slot]->buffers, &current = served->bound[slot]->buffers;
  for (size_t i = 0; i < own.size() && i < current.size(); ++i) {
    const bool named = i < generation.reset.size() && generation.reset[i];
    if (!named && current[i].defined() && own[i].storage() != current[i].storage()) return false;
  }
  return true;
}

void Runner::bind_all(Generation& generation, const std::function<void(int, bool)>& progress) {
  // Replicas with a lost device are skipped; otherwise no weights could be updated until somebody removes them.
  SCONCE_CHECK(!slots_.all_failed(), kUnavailable, "no replica is left whose device works");
  for (size_t i = 0; i < slots_.limit(); ++i) {
    if (!slots_[i].open.load() || slots_[i].failed.load()) continue;
    if (generation.bound[i] && has_current_buffers(generation, i)) continue;
    if (progress) progress(static_cast<int>(i), false);
    const Watch watch(*this, slots_[i]);
    generation.bound[i] = bind(slots_[i], generation);
    if (progress) progress(static_cast<int>(i), true);
  }
  if (warm_up_ && active()) generation.set->derive_as(*active()->set);
  package_watch_.check(*generation.set);
  generation.reads_package = package_watch_.is_read_by(*generation.set, *table_);
  const std::optional<Device> device = device_of_all();
  if (!device) return;
  // The host keeps no second copy; values in the archive can be read again.
  if (std::shared_ptr<const ConstantSet> there = package_watch_.without_host(*generation.set, *device)) {
    const MutexLock state(state_mutex_);
    generation.set.swap(there);
  }
  const std::vector<Tensor>& tensors = generation.set->tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && table_->stored()[i].spec.device.value_or(Device{}).type != DeviceType::kCpu)
      package_watch_.free_pages(tensors[i]);
}

void Runner::announce(uint64_t number) noexcept {
  active_->number = number != 0 ? number : last_number_ + 1;
  last_number_ = std::max(last_number_, active_->number.load());
  active_->since = std::chrono::system_clock::now();
  active_->staged = false;
  active_->reset.clear();
  published_.store(active_.get());
  published_number_.store(active_->number, std::memory_order_relaxed);
}

void Runner::wait_until_unused(const Generation& generation) const noexcept {
  for (size_t i = 0; i < slots_.limit(); ++i)
    while (slots_[i].pinned.load() == &generation) slots_[i].pinned.wait(&generation);
}

void Runner::publish(std::unique_ptr<Generation> next) noexcept {
  {
    const MutexLock state(state_mutex_);
    std::swap(active_, next);
    announce();
  }
  if (!next) return;
  wait_until_unused(*next);
  if (places_) places_->trim(true);
  give_back(std::move(next));
  trim_devices();
}

void Runner::exchange(uint64_t number) noexcept {
  {
    const MutexLock state(state_mutex_);
    std::swap(active_, other_);
    announce(number);
    other_state_ = WeightState::kPrevious;
  }
  wait_until_unused(*other());
  if (places_) places_->trim(true);
  for (const auto& bound : other()->bound)
    if (bound && bound->graphs) bound->graphs->clear();
  trim_devices();
}

void Runner::trim_devices() const noexcept {
  for (size_t i = 0; i < slots_.limit(); ++i) {
    const ReplicaSlot& slot = slots_[i];
    if (!slot.open.load() || !slot.replica || slot.failed.load()) continue;
    const Device device = slot.replica->device();
    bool before = device.type == DeviceType::kCpu;
    for (size_t j = 0; j < i && !before; ++j) before = slots_[j].replica && slots_[j].replica->device() == device;
    if (!before) device_backend(device).trim(device);
  }
}

void Runner::give_back_idle_memory() noexcept {
  if (!work_mutex_.try_lock()) return;  // another time
  const MutexLock work(work_mutex_, std::adopt_lock);
  if (places_) places_->trim(false);
  for (size_t i = 0; i < slots_.limit(); ++i) {
    ReplicaSlot& slot = slots_[i];
    if (!slot.open.load() || slot.failed.load() || !slot.try_acquire()) continue;
    const Held held(slot, Held::Adopt{});
    slot.replica->give_back_idle_memory();
  }
  trim_devices();
}

void Runner::set_other(std::unique_ptr<Generation> generation, WeightState state) noexcept {
  {
    const MutexLock lock(state_mutex_);
    std::swap(other_, generation);
    other_state_ = state;
  }
  if (!generation) return;
  give_back(std::move(generation));
  trim_devices();
}

void Runner::drop_previous() noexcept {
  if (other(WeightState::kPrevious)) set_other(nullptr, WeightState::kPrevious);
}

std::vector<StoragePtr> Runner::take_previous() {
  std::vector<StoragePtr> blocks;
  if (const Generation* const previous = other(WeightState::kPrevious)) blocks = previous->set->blocks();
  drop_previous();
  std::erase_if(blocks, [](const StoragePtr& block) { return block->references() != 1; });
  return blocks;
}

std::optional<Device> Runner::device_of_all() const {
  std::optional<Device> first;
  for (const ReplicaInfo& replica : slots_.describe()) {
    if (replica.device.type == DeviceType::kCpu) return std::nullopt;
    if (!first && replica.failure.empty()) first = replica.device;
  }
  return first;
}

std::string Runner::package_fault() const {
  std::string fault = package_watch_.fault();
  if (fault.empty()) return {};
  const MutexLock state(state_mutex_);
  return active_->reads_package ? fault : std::string();
}

void Runner::give_back(std::unique_ptr<Generation> generation) const noexcept {
  const std::vector<Tensor>& tensors = generation->set->tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const auto kept = [&](const Generation* set) {
      return set && set->set->tensors()[i].storage() == tensors[i].storage();
    };
    if (!kept(active()) && !kept(other())) package_watch_.free_pages(tensors[i]);
  }
}

uint64_t Runner::commit(uint64_t generation) {
  const Turn turn(*this, "a commit", true);
  MutexLock work(work_mutex_);
  Generation* const staged = other(WeightState::kStaged);
  SCONCE_CHECK(staged, kFailedPrecondition, "no weights are staged");
  SCONCE_CHECK(generation == 0 || generation > active()->number, kInvalidArgument, "generation ", generation,
               " cannot follow generation ", active()->number);
  bind_all(*staged);
  exchange(generation);
  const uint64_t number = active()->number;
  work.unlock();
  settle_sets();
  return number;
}

void Runner::abort() {
  const Turn turn(*this, "an abort", true);
  const MutexLock work(work_mutex_);
  SCONCE_CHECK(other(WeightState::kStaged), kFailedPrecondition, "no weights are staged");
  set_other(nullptr, WeightState::kPrevious);
}

uint64_t Runner::rollback() {
  const Turn turn(*this, "a rollback");
  MutexLock work(work_mutex_);
  Generation* const previous = other(WeightState::kPrevious);
  SCONCE_CHECK(previous, kFailedPrecondition, "there is no previous constant set to roll back to");
  bind_all(*previous);
  exchange();
  const uint64_t number = active()->number;
  work.unlock();
  settle_sets();
  return number;
}

void Runner::renumber(uint64_t generation) {
  const Turn turn(*this, "a change of the active set's number", true);
  const MutexLock state(state_mutex_);
  SCONCE_CHECK(generation > active_->number, kInvalidArgument, "generation ", generation,
               " cannot be the number of generation ", active_->number);
  active_->number = generation;
  last_number_ = std::max(last_number_, generation);
  published_number_.store(generation, std::memory_order_relaxed);
}

void Runner::release_previous() {
  {
    const MutexLock state(state_mutex_);
    if (!other_ || other_state_ != WeightState::kPrevious) return;
  }
  const Turn turn(*this, "a release of the previous set", true);
  const MutexLock work(work_mutex_);
  drop_previous();
}

WeightSetInfo Runner::describe(const Generation& generation, WeightState state) {
  return {state,
          generation.number,
          generation.label ? *generation.label : "",
          0,
          0,
          generation.since,
          std::string(generation.missing)};
}

const Generation& Runner::find(WeightState state) const {
  SCONCE_CHECK(state == WeightState::kActive || (other_ && other_state_ == state), kFailedPrecondition,
               state == WeightState::kStaged ? "no weights are staged" : "there is no previous constant set");
  return state == WeightState::kActive ? *active_ : *other_;
}

std::vector<WeightSetInfo> Runner::sets() const {
  std::vector<WeightSetInfo> result;
  std::vector<std::shared_ptr<const ConstantSet>> sets;
  {
    const MutexLock state(state_mutex_);
    const auto add = [&](const Generation& generation, WeightState what) {
      result.push_back(describe(generation, what));
      sets.push_back(generation.set);
    };
    add(*active_, WeightState::kActive);
    if (other_) add(*other_, other_state_);
  }
  for (size_t i = 0; i < sets.size(); ++i) {
    result[i].bytes = sets[i]->bytes();
    result[i].own_bytes = sets[i]->bytes(i == 0 ? nullptr : sets.front().get());
  }
  return result;
}

std::string Runner::digest(WeightState wanted) const {
  std::shared_ptr<const ConstantSet> set;
  {
    const MutexLock state(state_mutex_);
    set = find(wanted).set;
  }
  std::string digest = set->digest(*table_);
  package_watch_.check(*set);
  return digest;
}

std::vector<TensorDifference> Runner::difference(WeightState other) const {
  std::shared_ptr<const ConstantSet> from, to;
  {
    const MutexLock state(state_mutex_);
    from = active_->set;
    to = find(other).set;
  }
  std::vector<TensorDifference> result = set_difference(*table_, *from, *to);
  package_watch_.check(*from);
  package_watch_.check(*to);
  return result;
}

std::unique_ptr<WeightSetFile> Runner::open(WeightState wanted, std::shared_ptr<const void> owner) const {
  std::shared_ptr<const ConstantSet> set, active;
  WeightSetInfo info;
  {
    const MutexLock state(state_mutex_);
    set = find(wanted).set;
    active = active_->set;
    info = describe(find(wanted), wanted);
  }
  info.bytes = set->bytes();
  info.own_bytes = set->bytes(set == active ? nullptr : active.get());
  return std::make_unique<SetWeights>(
      *table_, set, std::move(info), [this, set] { package_watch_.check(*set); }, std::move(owner));
}

}  // namespace sconce::runner
