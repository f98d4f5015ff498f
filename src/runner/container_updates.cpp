// Runner: the updates that AOTInductor's container offers.
#include <utility>

#include "sconce/check.h"
#include "src/runner/runner.h"
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

void Runner::update(SetRole role, const ConstantMap& constants, bool full, bool user_managed) {
  const Turn turn(*this, "an update of constants");
  std::vector<WeightEntry> entries;
  for (const auto& [name, tensor] : constants) {
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "constant '", excerpt(name), "': the tensor is undefined");
    SCONCE_CHECK(tensor.layout() == Layout::kStrided, kUnsupported, "constant '", excerpt(name),
                 "' is packed (oneDNN): a plain tensor is needed");
    entries.push_back({name, tensor.dtype(), {tensor.sizes().begin(), tensor.sizes().end()}});
  }
  Staging staging(*table_, entries, {.full = full, .keep = !user_managed});
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
  const Generation* const inactive = role == SetRole::kInactive ? other() : nullptr;
  const std::shared_ptr<const ConstantSet> base =
      inactive ? with_parameters_of(*active()->set, *inactive->set, *table_) : active()->set;
  auto next = std::make_unique<Generation>(*table_, staging.finish(*base), "", staging.named());
  if (role == SetRole::kInactive) return set_other(std::move(next), WeightState::kStaged);
  bind_all(*next);
  publish(std::move(next));
}

void Runner::fold(SetRole role) {
  const Turn turn(*this, "folding of constants");
  const MutexLock work(work_mutex_);
  if (role == SetRole::kInactive) {
    Generation* const inactive = other();
    SCONCE_CHECK(inactive, kFailedPrecondition, "there is no inactive constant set to fold");
    for (auto& bound : inactive->bound) bound.reset();
    bind_all(*inactive);
    return;
  }
  // Fold all of them before any serves, so that a failure changes nothing.
  std::vector<std::unique_ptr<ModelInstance>> folded(slots_.limit());
  for (size_t i = 0; i < folded.size(); ++i)
    if (slots_[i].open.load() && !slots_[i].failed.load()) folded[i] = bind(slots_[i], *active());
  package_watch_.check(*active()->set);
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i]) continue;
    const Held held(slots_[i]);
    const MutexLock state(state_mutex_);
    std::swap(active_->bound[i], folded[i]);
  }
}

void Runner::swap() {
  const Turn turn(*this, "a swap of constants");
  const MutexLock work(work_mutex_);
  SCONCE_CHECK(other(), kFailedPrecondition, "there is no inactive constant set to swap in");
  bind_all(*other());
  exchange();
}

void Runner::free_inactive() {
  const Turn turn(*this, "a release of the inactive set");
  const MutexLock work(work_mutex_);
  set_other(nullptr, WeightState::kPrevious);
}

ConstantMap Runner::extract(SetRole role) const {
  std::shared_ptr<const ConstantSet> set;
  std::vector<Tensor> buffers;
  {
    const MutexLock state(state_mutex_);
    SCONCE_CHECK(role == SetRole::kActive || other_, kFailedPrecondition, "there is no inactive constant set");
    set = role == SetRole::kActive ? active_->set : other_->set;
    for (size_t i = 0; role == SetRole::kActive && i < slots_.limit(); ++i)
      if (active_->bound[i]) {
        buffers = active_->bound[i]->buffers;
        break;
      }
  }
  package_watch_.check(*set);
  ConstantMap map;
  for (size_t i = 0; i < set->tensors().size(); ++i) {
    if (i < buffers.size() && buffers[i].defined())
      map.emplace(table_->stored()[i].public_name(), buffers[i]);
    else if (const Tensor& tensor = set->tensors()[i]; tensor.defined())
      map.emplace(table_->stored()[i].public_name(), on_host(tensor));
  }
  return map;
}

}  // namespace sconce::runner
