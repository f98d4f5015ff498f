#include "src/runner/weight_versions.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constants/set_difference.h"
#include "src/runner/constants/set_weights.h"

namespace sconce::runner {

WeightVersions::UpdateLock::UpdateLock(const WeightVersions& versions, std::string what, bool may_find_staged)
    : versions_(versions) {
  const MutexLock state(versions.state_mutex_);
  SCONCE_CHECK(versions.update_.empty(), kBusy, "another weight update of this model is under way: ", versions.update_);
  if (const WeightVersion* other = versions.other_.get();
      other && versions.other_state_ == WeightState::kStaged && !may_find_staged)
    SCONCE_FAIL(kBusy, "weights '", other->label ? *other->label : "",
                "' are staged: they are to be committed or aborted first");
  versions.update_ = std::move(what);
}

WeightVersions::UpdateLock::~UpdateLock() {
  const MutexLock state(versions_.state_mutex_);
  versions_.update_.clear();
}

WeightVersions::WeightVersions(const ModelCode& code, const PackageWatch& files, ReplicaPool& pool,
                               SequenceRuns& sequences, Values packaged, std::unique_ptr<ModelInstance> first,
                               std::function<void()> activated)
    : code_(code), files_(files), pool_(pool), sequences_(sequences), activated_(std::move(activated)) {
  auto version = std::make_unique<WeightVersion>(*code_.table, std::move(packaged), "", std::vector<bool>{});
  version->instances[0] = std::move(first);
  const MutexLock work(work_mutex_);
  instantiate_all(*version);
  start_with(std::move(version));
}

void WeightVersions::close() noexcept {
  ReplicaSlots& slots = pool_.slots();
  for (size_t i = 0; i < slots.limit(); ++i) close(slots[i]);
  published_.store(nullptr);
  const MutexLock state(state_mutex_);
  other_.reset();
  active_.reset();
}

void WeightVersions::close(ReplicaSlot& slot) noexcept {
  pool_.slots().close(slot, [&] { sequences_.leave(slot.index); });
}

std::unique_ptr<ModelInstance> WeightVersions::instantiate(const ReplicaSlot& slot,
                                                           const WeightVersion& version) const {
  const WeightVersion* const served = active();
  const ModelInstance* before = served ? served->instances[slot.index].get() : nullptr;
  return on_cores(slot.thread.cpus(), [&] {
    return slot.replica->instantiate(code_.module, *code_.table, *version.values, version.reset, before,
                                     served ? served->values.get() : nullptr);
  });
}

bool WeightVersions::has_current_buffers(const WeightVersion& version, size_t slot) const noexcept {
  const WeightVersion* const served = active();
  if (!code_.table->any_mutated() || !served || !served->instances[slot]) return true;
  const std::vector<Tensor>&own = version.instances[slot]->buffers, &current = served->instances[slot]->buffers;
  for (size_t i = 0; i < own.size() && i < current.size(); ++i) {
    const bool named = i < version.reset.size() && version.reset[i];
    if (!named && current[i].defined() && own[i].storage() != current[i].storage()) return false;
  }
  return true;
}

void WeightVersions::instantiate_all(WeightVersion& version, const Progress& progress) {
  // Replicas with a lost device are skipped; otherwise no weights could be updated until somebody removes them.
  pool_.check_any_works();
  ReplicaSlots& slots = pool_.slots();
  for (size_t i = 0; i < slots.limit(); ++i) {
    if (!slots[i].open.load() || slots[i].failed.load()) continue;
    if (version.instances[i] && has_current_buffers(version, i)) continue;
    if (progress) progress(static_cast<int>(i), false);
    const ReplicaPool::FaultScope faults(pool_, slots[i]);
    version.instances[i] = instantiate(slots[i], version);
    if (progress) progress(static_cast<int>(i), true);
  }
  if (code_.warm_up && active()) version.values->derive_as(*active()->values);
  files_.check(*version.values);
  version.reads_package = files_.is_read_by(*version.values, *code_.table);
  const std::optional<Device> device = pool_.device_of_all();
  if (!device) return;
  // The host keeps no second copy; values in the archive can be read again.
  if (Values there = files_.without_host(*version.values, *device)) {
    const MutexLock state(state_mutex_);
    version.values.swap(there);
  }
  const std::vector<Tensor>& tensors = version.values->tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && code_.table->stored()[i].spec.device.value_or(Device{}).type != DeviceType::kCpu)
      files_.free_pages(tensors[i]);
}

void WeightVersions::go_live(uint64_t number) noexcept {
  active_->number = number != 0 ? number : last_number_ + 1;
  last_number_ = std::max(last_number_, active_->number.load());
  active_->since = std::chrono::system_clock::now();
  active_->reset.clear();
  published_.store(active_.get());
  published_number_.store(active_->number, std::memory_order_relaxed);
}

void WeightVersions::wait_until_unused(const WeightVersion& version) const noexcept {
  const ReplicaSlots& slots = pool_.slots();
  for (size_t i = 0; i < slots.limit(); ++i)
    while (slots[i].pinned.load() == &version) slots[i].pinned.wait(&version);
}

void WeightVersions::start_with(std::unique_ptr<WeightVersion> first) noexcept {
  const MutexLock state(state_mutex_);
  active_ = std::move(first);
  go_live();
}

uint64_t WeightVersions::exchange(uint64_t number) noexcept {
  {
    const MutexLock state(state_mutex_);
    std::swap(active_, other_);
    go_live(number);
    other_state_ = WeightState::kPrevious;
  }
  wait_until_unused(*other());
  sequences_.trim(true);
  for (const auto& instance : other()->instances)
    if (instance && instance->graphs) instance->graphs->clear();
  pool_.trim_devices();
  return active()->number;
}

void WeightVersions::set_other(std::unique_ptr<WeightVersion> version, WeightState state) noexcept {
  {
    const MutexLock lock(state_mutex_);
    std::swap(other_, version);
    other_state_ = state;
  }
  if (!version) return;
  destroy(std::move(version));
  pool_.trim_devices();
}

void WeightVersions::drop_previous() noexcept {
  if (other(WeightState::kPrevious)) set_other(nullptr, WeightState::kPrevious);
}

void WeightVersions::destroy(std::unique_ptr<WeightVersion> version) const noexcept {
  const std::vector<Tensor>& tensors = version->values->tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const auto kept = [&](const WeightVersion* by) {
      return by && by->values->tensors()[i].storage() == tensors[i].storage();
    };
    if (!kept(active()) && !kept(other())) files_.free_pages(tensors[i]);
  }
}

std::vector<StoragePtr> WeightVersions::take_previous() {
  const MutexLock work(work_mutex_);
  std::vector<StoragePtr> blocks;
  if (const WeightVersion* const previous = other(WeightState::kPrevious)) blocks = previous->values->blocks();
  drop_previous();
  // Runs that used these pieces have ended, since a run waits for its stream before it lets go of its weights.
  std::erase_if(blocks, [](const StoragePtr& block) { return block->references() != 1; });
  return blocks;
}

void WeightVersions::stage(Staging& staging, const std::string& label, const Progress& progress) {
  const MutexLock work(work_mutex_);
  auto next = std::make_unique<WeightVersion>(*code_.table, staging.finish(*active()->values), label, staging.named());
  instantiate_all(*next, progress);
  set_other(std::move(next), WeightState::kStaged);
}

uint64_t WeightVersions::activate(Values values, const std::string& label) {
  const MutexLock work(work_mutex_);
  auto next = std::make_unique<WeightVersion>(*code_.table, std::move(values), label, std::vector<bool>{});
  instantiate_all(*next);
  set_other(std::move(next), WeightState::kStaged);
  return exchange();
}

void WeightVersions::try_values(const Values& values, const Progress& progress) const {
  const MutexLock work(work_mutex_);
  pool_.check_any_works();
  ReplicaSlots& slots = pool_.slots();
  for (size_t i = 0; i < slots.limit(); ++i) {
    if (!slots[i].open.load() || slots[i].failed.load()) continue;
    if (progress) progress(static_cast<int>(i), false);
    const ReplicaPool::FaultScope faults(pool_, slots[i]);
    instantiate(slots[i], WeightVersion(*code_.table, values, "", {}));
    if (progress) progress(static_cast<int>(i), true);
    break;
  }
}

uint64_t WeightVersions::commit(uint64_t number) {
  const UpdateLock update(*this, "a commit", true);
  {
    const MutexLock work(work_mutex_);
    WeightVersion* const staged = other(WeightState::kStaged);
    SCONCE_CHECK(staged, kFailedPrecondition, "no weights are staged");
    SCONCE_CHECK(number == 0 || number > active()->number, kInvalidArgument, "weight version ", number,
                 " cannot follow weight version ", active()->number);
    instantiate_all(*staged);
    number = exchange(number);
  }
  activated_();
  return number;
}

void WeightVersions::abort() {
  const UpdateLock update(*this, "an abort", true);
  const MutexLock work(work_mutex_);
  SCONCE_CHECK(other(WeightState::kStaged), kFailedPrecondition, "no weights are staged");
  set_other(nullptr, WeightState::kPrevious);
}

uint64_t WeightVersions::rollback() {
  const UpdateLock update(*this, "a rollback");
  uint64_t number = 0;
  {
    const MutexLock work(work_mutex_);
    WeightVersion* const previous = other(WeightState::kPrevious);
    SCONCE_CHECK(previous, kFailedPrecondition, "there is no previous constant set to roll back to");
    instantiate_all(*previous);
    number = exchange();
  }
  activated_();
  return number;
}

void WeightVersions::set_number(uint64_t number) {
  const UpdateLock update(*this, "a change of the active set's number", true);
  const MutexLock state(state_mutex_);
  SCONCE_CHECK(number > active_->number, kInvalidArgument, "weight version ", number,
               " cannot be the number of weight version ", active_->number);
  active_->number = number;
  last_number_ = std::max(last_number_, number);
  published_number_.store(number, std::memory_order_relaxed);
}

void WeightVersions::release_previous() {
  {
    const MutexLock state(state_mutex_);
    if (!other_ || other_state_ != WeightState::kPrevious) return;
  }
  const UpdateLock update(*this, "a release of the previous set", true);
  const MutexLock work(work_mutex_);
  drop_previous();
}

uint64_t WeightVersions::next_number() {
  const MutexLock state(state_mutex_);
  return ++last_number_;
}

void WeightVersions::use_number(uint64_t number) {
  const MutexLock state(state_mutex_);
  last_number_ = std::max(last_number_, number);
}

int WeightVersions::add_replica(Device device, std::vector<int> cpus) {
  check_device(device, code_.info.spec);
  check_cores(cpus);
  const MutexLock work(work_mutex_);
  ReplicaSlot& slot = pool_.slots().vacant();
  auto replica = std::make_unique<Replica>(device, code_.replica_settings);
  const auto instance = [&](const WeightVersion& version, const ModelInstance* before, const ConstantSet* beside) {
    return on_cores(cpus, [&] {
      return replica->instantiate(code_.module, *code_.table, *version.values, version.reset, before, beside);
    });
  };
  const WeightVersion &served = *active(), *const waiting = other(WeightState::kStaged);
  std::unique_ptr<ModelInstance> first = instance(served, nullptr, nullptr), staged;
  files_.check(*served.values);
  // The staged set must remain one exchange away from serving.
  if (waiting) staged = instance(*waiting, first.get(), served.values.get());
  {
    const MutexLock state(state_mutex_);
    active_->instances[slot.index] = std::move(first);
    if (staged) other_->instances[slot.index] = std::move(staged);
  }
  pool_.open(slot, std::move(replica), std::move(cpus));
  return static_cast<int>(slot.index);
}

void WeightVersions::remove_replica(int index) {
  const MutexLock work(work_mutex_);
  ReplicaSlots& slots = pool_.slots();
  const auto i = static_cast<size_t>(index);
  SCONCE_CHECK(index >= 0 && pool_.open_slot(i), kNotFound, "there is no replica ", index);
  SCONCE_CHECK(slots.open_count() > 1, kFailedPrecondition, "replica ", index, " is the last one: unload the model");
  close(slots[i]);
  std::unique_ptr<ModelInstance> gone[2];
  const MutexLock state(state_mutex_);
  gone[0] = std::move(active_->instances[i]);
  if (other_) gone[1] = std::move(other_->instances[i]);
  pool_.closed();
}

void WeightVersions::free_idle_memory() noexcept {
  if (!work_mutex_.try_lock()) return;  // another time
  const MutexLock work(work_mutex_, std::adopt_lock);
  sequences_.trim(false);
  pool_.free_idle_memory();
  pool_.trim_devices();
}

WeightSetInfo WeightVersions::describe(const WeightVersion& version, WeightState state) {
  return {state, version.number, version.label ? *version.label : "", 0,
          0,     version.since,  std::string(version.missing)};
}

const WeightVersion& WeightVersions::find(WeightState state) const {
  SCONCE_CHECK(state == WeightState::kActive || (other_ && other_state_ == state), kFailedPrecondition,
               state == WeightState::kStaged ? "no weights are staged" : "there is no previous constant set");
  return state == WeightState::kActive ? *active_ : *other_;
}

WeightVersions::Values WeightVersions::values(WeightState state, const WeightSet* set) const {
  const MutexLock lock(state_mutex_);
  const WeightsRef weights(find(state), set);
  weights.check(&code_);
  return weights.values();
}

WeightVersions::Values WeightVersions::active_values() const {
  const MutexLock state(state_mutex_);
  return active_->values;
}

std::vector<WeightSetInfo> WeightVersions::list() const {
  std::vector<WeightSetInfo> result;
  std::vector<Values> sets;
  {
    const MutexLock state(state_mutex_);
    const auto add = [&](const WeightVersion& version, WeightState what) {
      result.push_back(describe(version, what));
      sets.push_back(version.values);
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

std::string WeightVersions::digest(WeightState state) const {
  Values set;
  {
    const MutexLock lock(state_mutex_);
    set = find(state).values;
  }
  std::string digest = set->digest(*code_.table);
  files_.check(*set);
  return digest;
}

std::vector<TensorDifference> WeightVersions::difference(WeightState other) const {
  Values from, to;
  {
    const MutexLock state(state_mutex_);
    from = active_->values;
    to = find(other).values;
  }
  std::vector<TensorDifference> result = set_difference(*code_.table, *from, *to);
  files_.check(*from);
  files_.check(*to);
  return result;
}

std::unique_ptr<WeightSetFile> WeightVersions::open(WeightState state, std::shared_ptr<const void> owner) const {
  Values set, active;
  WeightSetInfo info;
  {
    const MutexLock lock(state_mutex_);
    set = find(state).values;
    active = active_->values;
    info = describe(find(state), state);
  }
  info.bytes = set->bytes();
  info.own_bytes = set->bytes(set == active ? nullptr : active.get());
  return std::make_unique<SetWeights>(
      *code_.table, set, std::move(info), [&files = files_, set] { files.check(*set); }, std::move(owner));
}

ConstantMap WeightVersions::extract(WeightState state) const {
  Values set;
  std::vector<Tensor> buffers;
  {
    const MutexLock lock(state_mutex_);
    const WeightVersion& version = find(state);
    set = version.values;
    if (state == WeightState::kActive)
      for (const std::unique_ptr<ModelInstance>& instance : version.instances)
        if (instance) {
          buffers = instance->buffers;
          break;
        }
  }
  files_.check(*set);
  ConstantMap map;
  for (size_t i = 0; i < set->tensors().size(); ++i) {
    if (i < buffers.size() && buffers[i].defined())
      map.emplace(code_.table->stored()[i].public_name(), buffers[i]);
    else if (const Tensor& tensor = set->tensors()[i]; tensor.defined())
      map.emplace(code_.table->stored()[i].public_name(), on_host(tensor));
  }
  return map;
}

std::string WeightVersions::package_fault() const {
  std::string fault = files_.fault();
  if (fault.empty()) return {};
  const MutexLock state(state_mutex_);
  return active_->reads_package ? fault : std::string();
}

}  // namespace sconce::runner
