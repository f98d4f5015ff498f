// WeightVersions: the updates that AOTInductor's container offers.
#include <utility>

#include "sconce/check.h"
#include "src/runner/weight_versions.h"
#include "src/support/excerpt.h"

namespace sconce::runner {
namespace {

// The values from which a partial update of the inactive set starts, as in AOTInductor: the inactive set's parameters,
// so that one update may continue another, and the active set's values for everything that a full update may omit.
std::shared_ptr<const ConstantSet> with_parameters_of(const ConstantSet& active, const ConstantSet& inactive,
                                                      const ConstantTable& table) {
  std::vector<Tensor> tensors = active.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& own = inactive.tensors()[i];
    if (own.defined() && !table.stored()[i].may_be_left_out()) tensors[i] = own;
  }
  return std::make_shared<ConstantSet>(std::move(tensors), active.user_managed() || inactive.user_managed());
}

}  // namespace

void WeightVersions::update(SetRole role, const ConstantMap& constants, bool full, bool user_managed) {
  const UpdateLock update(*this, "an update of constants");
  std::vector<WeightEntry> entries;
  for (const auto& [name, tensor] : constants) {
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "constant '", excerpt(name), "': the tensor is undefined");
    SCONCE_CHECK(tensor.layout() == Layout::kStrided, kUnsupported, "constant '", excerpt(name),
                 "' is packed (oneDNN): a plain tensor is needed");
    entries.push_back({name, tensor.dtype(), {tensor.sizes().begin(), tensor.sizes().end()}});
  }
  Staging staging(*code_.table, entries, {.full = full, .keep = !user_managed});
  const auto give = [&] {
    staging.allocate();
    size_t entry = 0;
    for (const auto& [name, tensor] : constants) staging.give(entry++, tensor, user_managed);
  };
  if (user_managed) give();
  // An inactive set that is replaced as a whole is freed first; an update of the active set leaves it.
  if (role == SetRole::kInactive && full) {
    const MutexLock work(work_mutex_);
    set_other(nullptr, WeightState::kPrevious);
  }
  if (!user_managed) give();

  const MutexLock work(work_mutex_);
  const WeightVersion* const inactive = role == SetRole::kInactive ? other() : nullptr;
  const std::shared_ptr<const ConstantSet> base =
      inactive ? with_parameters_of(*active()->values, *inactive->values, *code_.table) : active()->values;
  auto next = std::make_unique<WeightVersion>(*code_.table, staging.finish(*base), "", staging.named());
  if (role == SetRole::kInactive) return set_other(std::move(next), WeightState::kStaged);
  instantiate_all(*next);
  publish(std::move(next));
}

void WeightVersions::fold(SetRole role) {
  const UpdateLock update(*this, "folding of constants");
  const MutexLock work(work_mutex_);
  if (role == SetRole::kInactive) {
    WeightVersion* const inactive = other();
    SCONCE_CHECK(inactive, kFailedPrecondition, "there is no inactive constant set to fold");
    for (auto& instance : inactive->instances) instance.reset();
    instantiate_all(*inactive);
    return;
  }
  // Fold all of them before any serves, so that a failure changes nothing.
  ReplicaSlots& slots = pool_.slots();
  std::vector<std::unique_ptr<ModelInstance>> folded(slots.limit());
  for (size_t i = 0; i < folded.size(); ++i)
    if (slots[i].open.load() && !slots[i].failed.load()) folded[i] = instantiate(slots[i], *active());
  files_.check(*active()->values);
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i]) continue;
    const SlotLock lock(slots[i]);
    const MutexLock state(state_mutex_);
    std::swap(active_->instances[i], folded[i]);
  }
}

void WeightVersions::swap() {
  const UpdateLock update(*this, "a swap of constants");
  const MutexLock work(work_mutex_);
  SCONCE_CHECK(other(), kFailedPrecondition, "there is no inactive constant set to swap in");
  instantiate_all(*other());
  exchange();
}

void WeightVersions::free_inactive() {
  const UpdateLock update(*this, "a release of the inactive set");
  const MutexLock work(work_mutex_);
  set_other(nullptr, WeightState::kPrevious);
}

ConstantMap WeightVersions::extract(SetRole role) const {
  std::shared_ptr<const ConstantSet> set;
  std::vector<Tensor> buffers;
  {
    const MutexLock state(state_mutex_);
    SCONCE_CHECK(role == SetRole::kActive || other_, kFailedPrecondition, "there is no inactive constant set");
    set = role == SetRole::kActive ? active_->values : other_->values;
    for (size_t i = 0; role == SetRole::kActive && i < active_->instances.size(); ++i)
      if (active_->instances[i]) {
        buffers = active_->instances[i]->buffers;
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

}  // namespace sconce::runner
