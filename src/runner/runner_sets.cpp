// Runner: runs with named sets, and how such a set is made.
#include <algorithm>
#include <chrono>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/runner/constants/set_weights.h"
#include "src/runner/runner.h"

namespace sconce::runner {

void Runner::open_sets(std::shared_ptr<const ConstantSet> packaged, const LoadOptions& options) {
  SCONCE_CHECK(options.sets >= 0, kInvalidArgument, "sets: ", options.sets, " is negative");
  SCONCE_CHECK(options.bound_sets >= 1, kInvalidArgument, "bound_sets: ", options.bound_sets, " is less than 1");
  if (options.sets == 0) return;
  bound_sets_ = static_cast<size_t>(options.bound_sets);
  sets_ = std::make_unique<NamedSets>(
      *table_, std::move(packaged),
      NamedSets::Limits{static_cast<size_t>(options.sets), options.sets_memory, options.sets_folder},
      NamedSets::Owner{[this] { return next_generation(); },
                       [this](uint64_t generation) {
                         const MutexLock state(state_mutex_);
                         last_number_ = std::max(last_number_, generation);
                       },
                       [this] { return active_set(); },
                       [this](std::string name, uint64_t generation, NamedSets::Values values) {
                         return make_set(std::move(name), generation, std::move(values));
                       },
                       [this](const std::vector<NamedSets::Held>& left) { unbind(left); }});
}

NamedSets& Runner::named_sets() const {
  SCONCE_CHECK(sets_, kNotFound, "the model holds no named sets (setting sets)");
  return *sets_;
}

std::shared_ptr<const ConstantSet> Runner::active_set() const {
  const MutexLock state(state_mutex_);
  return active_->set;
}

uint64_t Runner::next_generation() {
  const MutexLock state(state_mutex_);
  return ++last_number_;
}

NamedSets::Held Runner::make_set(std::string name, uint64_t generation, std::shared_ptr<const ConstantSet> values) {
  const std::shared_ptr<const ConstantSet> served = active_set();
  if (const std::optional<Device> device = device_of_all()) {
    values->on(*device, *table_, served.get());
    if (std::shared_ptr<const ConstantSet> there = package_watch_.without_host(*values, *device))
      values = std::move(there);
  }
  if (warm_up_) values->derive_as(*served);
  package_watch_.check(*values);
  const bool reads = package_watch_.is_read_by(*values, *table_);
  return std::make_shared<const LoadedSet>(this, std::move(name), generation, *table_, std::move(values), reads);
}

void Runner::finish_set(Staging& staging, const UpdateOptions& options, const LoadedSet* base) {
  const std::shared_ptr<const ConstantSet> active = active_set();
  const std::shared_ptr<const ConstantSet> staged = staging.finish(base ? *base->values : *active);
  const std::string_view dropped = sets_->would_drop(*staged);
  SCONCE_CHECK(
      dropped.empty(), kFailedPrecondition, "constant '", dropped,
      "': nothing says whether the model writes it, so a named set cannot have other values than the active one");
  const std::shared_ptr<const ConstantSet> values = sets_->share(*staged);
  {
    // A set that cannot be folded is refused now, not when a request comes.
    const MutexLock work(work_mutex_);
    SCONCE_CHECK(!slots_.all_failed(), kUnavailable, "no replica is left whose device works");
    for (size_t i = 0; i < slots_.limit(); ++i) {
      if (!slots_[i].open.load() || slots_[i].failed.load()) continue;
      if (options.progress) options.progress(static_cast<int>(i), false);
      const Watch watch(*this, slots_[i]);
      bind(slots_[i], Generation(*table_, values, "", {}));
      if (options.progress) options.progress(static_cast<int>(i), true);
      break;
    }
  }
  sets_->put(options.set, {options.label, options.note}, values, options.hold);
}

ModelInstance& Runner::bound_set(ReplicaSlot& slot, const Generation& active, const LoadedSet& set) const {
  if (!slot.sets) slot.sets = std::make_unique<BoundSets>(slot.index, bound_sets_);
  const ModelInstance* const served = active.bound[slot.index].get();
  if (ModelInstance* const bound = slot.sets->find(set)) {
    // Buffers are the replica's: an update may have given it others.
    bool current = true;
    for (size_t i = 0; table_->any_mutated() && served && current && i < served->buffers.size(); ++i)
      current = !served->buffers[i].defined() || served->buffers[i].storage() == bound->buffers[i].storage();
    if (current) return *bound;
    slot.sets->forget(set);
  }
  const auto begin = std::chrono::steady_clock::now();
  slot.sets->make_room();
  std::unique_ptr<ModelInstance> bound =
      slot.replica->bind(module_, *table_, *set.values, {}, served, active.set.get());
  ModelInstance& kept = slot.sets->keep(set.shared_from_this(), std::move(bound));
  bind_times_.took(std::chrono::steady_clock::now() - begin);
  return kept;
}

const LoadedSet& Runner::own_set(const WeightSet& weights) const {
  const auto& set = static_cast<const LoadedSet&>(weights);
  SCONCE_CHECK(set.owner == this, kInvalidArgument, "set '", *set.name(), "' is another model's");
  SCONCE_CHECK(set.missing.empty(), kFailedPrecondition, "set '", *set.name(), "' has no value for constant '",
               set.missing, "'");
  return set;
}

void Runner::run_set(ReplicaSlot& slot, const Generation& active, const WeightSet& weights,
                     std::span<const Tensor> inputs, std::span<Tensor> outputs, const Delivery& delivery,
                     RunInfo& info) {
  const LoadedSet& set = own_set(weights);
  struct Leave {
    ReplicaSlot& slot;
    const LoadedSet& set;
    ~Leave() {
      if (set.gone() && slot.sets) slot.sets->forget(set);
    }
  } const leave{slot, set};
  const uint64_t before = Storage::derivations();
  run_container(slot, bound_set(slot, active, set), set.reads_package, inputs, outputs, delivery, info);
  if (Storage::derivations() != before) [[unlikely]]
    packed_.store(true, std::memory_order_relaxed);
  info.generation = set.generation();
  info.label = set.name();
  info.set = set.name();
}

void Runner::unbind(const std::vector<NamedSets::Held>& sets) noexcept {
  const auto any = [&] {
    return std::any_of(sets.begin(), sets.end(), [](const NamedSets::Held& set) { return set->bound(); });
  };
  for (size_t i = 0; i < slots_.limit() && any(); ++i) {
    const Held held(slots_[i]);
    if (!slots_[i].sets) continue;
    for (const NamedSets::Held& set : sets) slots_[i].sets->forget(*set);
  }
}

void Runner::settle_sets(bool if_idle) noexcept {
  const auto settle = [&] { if_idle ? sets_->settle_if_idle() : sets_->settle(); };
  if (sets_ && aoti_abi::guard("settling named sets", settle) != 0) aoti_abi::take_error();
}

std::string Runner::set_digest(std::string_view name) {
  const auto set = std::static_pointer_cast<const LoadedSet>(bring_set(name));
  std::string digest = set->values->digest(*table_);
  package_watch_.check(*set->values);
  return digest;
}

std::unique_ptr<WeightSetFile> Runner::open_set(std::string_view name, std::shared_ptr<const void> owner) {
  const auto set = std::static_pointer_cast<const LoadedSet>(bring_set(name));
  const NamedSetInfo about = named_set(name);
  WeightSetInfo info;
  info.generation = set->generation();
  info.label = about.label;
  info.since = about.since;
  info.bytes = set->values->bytes();
  info.own_bytes = set->values->bytes(active_set().get());
  return std::make_unique<SetWeights>(
      *table_, set->values, std::move(info), [this, values = set->values] { package_watch_.check(*values); },
      std::move(owner));
}

uint64_t Runner::promote_set(std::string_view name) {
  const std::string text(name);
  const Turn turn(*this, "a commit of set '" + text + "'");
  const auto set = std::static_pointer_cast<const LoadedSet>(bring_set(text));
  const std::string label = sets_->label(text);
  uint64_t number = 0;
  {
    const MutexLock work(work_mutex_);
    auto next = std::make_unique<Generation>(*table_, set->values, label.empty() ? text : label, std::vector<bool>{});
    bind_all(*next);
    set_other(std::move(next), WeightState::kStaged);
    exchange();
    number = active()->number;
  }
  settle_sets();
  return number;
}

}  // namespace sconce::runner
