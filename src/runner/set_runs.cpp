#include "src/runner/set_runs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/runner/constants/set_weights.h"

namespace sconce::runner {

SetRuns::SetRuns(const ModelCode& code, const PackageWatch& files, ReplicaPool& pool, WeightVersions& versions,
                 std::shared_ptr<const ConstantSet> packaged, const LoadOptions& options)
    : code_(code),
      files_(files),
      pool_(pool),
      versions_(versions),
      most_instances_(static_cast<size_t>(std::max(options.sets_instances, 0))) {
  SCONCE_CHECK(options.sets >= 0, kInvalidArgument, "sets: ", options.sets, " is negative");
  SCONCE_CHECK(options.sets_instances >= 1, kInvalidArgument, "sets_instances: ", options.sets_instances,
               " is less than 1");
  if (options.sets == 0) return;
  sets_ = std::make_unique<NamedSets>(
      *code_.table, std::move(packaged),
      NamedSets::Limits{static_cast<size_t>(options.sets), options.sets_memory, options.sets_folder},
      NamedSets::Owner{[this] { return versions_.next_number(); },
                       [this](uint64_t number) { versions_.use_number(number); },
                       [this] { return versions_.active_values(); },
                       [this](std::string name, uint64_t number, NamedSets::Values values) {
                         return make(std::move(name), number, std::move(values));
                       },
                       [this](const std::vector<NamedSets::SetPtr>& left) { drop_instances(left); }});
}

NamedSets& SetRuns::named() const {
  SCONCE_CHECK(sets_, kNotFound, "the model holds no named sets (setting sets)");
  return *sets_;
}

NamedSets::SetPtr SetRuns::make(std::string name, uint64_t number, std::shared_ptr<const ConstantSet> values) const {
  const std::shared_ptr<const ConstantSet> active = versions_.active_values();
  if (const std::optional<Device> device = pool_.device_of_all()) {
    values->on(*device, *code_.table, active.get());
    if (std::shared_ptr<const ConstantSet> there = files_.without_host(*values, *device)) values = std::move(there);
  }
  if (code_.warm_up) values->derive_as(*active);
  files_.check(*values);
  const bool reads = files_.is_read_by(*values, *code_.table);
  return std::make_shared<const LoadedSet>(&code_, std::move(name), number, *code_.table, std::move(values), reads);
}

void SetRuns::finish(Staging& staging, const UpdateOptions& options, const LoadedSet* base) {
  const std::shared_ptr<const ConstantSet> staged = staging.finish(base ? *base->values : *versions_.active_values());
  const std::string_view dropped = named().would_drop(*staged);
  SCONCE_CHECK(
      dropped.empty(), kFailedPrecondition, "constant '", dropped,
      "': nothing says whether the model writes it, so a named set cannot have other values than the active one");
  const std::shared_ptr<const ConstantSet> values = sets_->share(*staged);
  // A set that cannot be folded is refused now, not when a request comes.
  versions_.try_values(values, options.progress);
  sets_->put(options.set, {options.label, options.note}, values, options.hold);
}

ModelInstance& SetRuns::instance_of(ReplicaSlot& slot, const WeightVersion& active, const LoadedSet& set) {
  if (!slot.sets) slot.sets = std::make_unique<SetInstances>(slot.index, most_instances_);
  const ModelInstance* const served = active.instances[slot.index].get();
  if (ModelInstance* const instance = slot.sets->find(set)) {
    // Buffers are the replica's: an update may have given it others.
    bool current = true;
    for (size_t i = 0; code_.table->any_mutated() && served && current && i < served->buffers.size(); ++i)
      current = !served->buffers[i].defined() || served->buffers[i].storage() == instance->buffers[i].storage();
    if (current) return *instance;
    slot.sets->forget(set);
  }
  const auto begin = std::chrono::steady_clock::now();
  slot.sets->make_room();
  std::unique_ptr<ModelInstance> instance =
      slot.replica->instantiate(code_.module, *code_.table, *set.values, {}, served, active.values.get());
  ModelInstance& kept = slot.sets->keep(set.shared_from_this(), std::move(instance));
  instantiation_times_.took(std::chrono::steady_clock::now() - begin);
  return kept;
}

void SetRuns::run(ReplicaSlot& slot, const WeightVersion& active, const LoadedSet& set, const RunCall& call) {
  struct Leave {
    ReplicaSlot& slot;
    const LoadedSet& set;
    ~Leave() {
      if (set.gone() && slot.sets) slot.sets->forget(set);
    }
  } const leave{slot, set};
  pool_.run(slot, instance_of(slot, active, set), set.reads_package, call);
  call.info.weight_version = set.weight_version();
  call.info.label = set.name();
  call.info.set = set.name();
}

void SetRuns::drop_instances(const std::vector<NamedSets::SetPtr>& sets) noexcept {
  const auto any = [&] {
    return std::any_of(sets.begin(), sets.end(), [](const NamedSets::SetPtr& set) { return set->has_instances(); });
  };
  ReplicaSlots& slots = pool_.slots();
  for (size_t i = 0; i < slots.limit() && any(); ++i) {
    const SlotLock lock(slots[i]);
    if (!slots[i].sets) continue;
    for (const NamedSets::SetPtr& set : sets) slots[i].sets->forget(*set);
  }
}

void SetRuns::reconcile(bool if_idle) noexcept {
  const auto reconcile = [&] { if_idle ? sets_->reconcile_if_idle() : sets_->reconcile(); };
  if (sets_ && aoti_abi::guard("reconciling named sets", reconcile) != 0) aoti_abi::take_error();
}

std::string SetRuns::digest(std::string_view name) const {
  const NamedSets::SetPtr set = named().bring(name);
  std::string digest = set->values->digest(*code_.table);
  files_.check(*set->values);
  return digest;
}

std::unique_ptr<WeightSetFile> SetRuns::open(std::string_view name, std::shared_ptr<const void> owner) const {
  const NamedSets::SetPtr set = named().bring(name);
  const NamedSetInfo about = named().info(name);
  WeightSetInfo info;
  info.weight_version = set->weight_version();
  info.label = about.label;
  info.since = about.since;
  info.bytes = set->values->bytes();
  info.own_bytes = set->values->bytes(versions_.active_values().get());
  return std::make_unique<SetWeights>(
      *code_.table, set->values, std::move(info), [&files = files_, values = set->values] { files.check(*values); },
      std::move(owner));
}

uint64_t SetRuns::promote(std::string_view name) {
  const std::string text(name);
  const WeightVersions::UpdateLock update(versions_, "a commit of set '" + text + "'");
  const NamedSets::SetPtr set = named().bring(text);
  const std::string label = sets_->label(text);
  const uint64_t number = versions_.activate(set->values, label.empty() ? text : label);
  reconcile();
  return number;
}

}  // namespace sconce::runner
