#include "server/support/memory/model_budget.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce::server {
namespace {

std::string place_name(int device) {
  return device == ModelBudget::kHost ? "memory_budget"
                                      : "device_memory_budget (device " + std::to_string(device) + ")";
}

}  // namespace

void ModelBudget::count(const Bytes& bytes) {
  for (const auto& [device, count] : bytes) used_[device] += count;
}

void ModelBudget::discount(const Bytes& bytes) noexcept {
  for (const auto& [device, count] : bytes)
    if (const auto at = used_.find(device); at != used_.end()) at->second -= std::min(at->second, count);
}

void ModelBudget::loaded(const std::string& name, int64_t version, Bytes bytes) {
  MutexLock lock(mutex_);
  if (const auto reserved = reserved_.find(name); reserved != reserved_.end()) {
    discount(reserved->second);
    reserved_.erase(reserved);
  }
  Bytes& known = models_[name][version];
  discount(known);
  known = std::move(bytes);
  count(known);
  lock.unlock();
  if (hook_) hook_();
}

void ModelBudget::unloaded(const std::string& name, int64_t version) {
  MutexLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  if (const auto at = model->second.find(version); at != model->second.end()) {
    discount(at->second);
    model->second.erase(at);
  }
  if (model->second.empty()) models_.erase(model);
  lock.unlock();
  if (hook_) hook_();
}

ModelBudget::Bytes ModelBudget::shortage(const Bytes& wanted) const {
  Bytes missing;
  for (const auto& [device, count] : wanted) {
    const uint64_t most = limit(device);
    const auto at = used_.find(device);
    const uint64_t all = count + (at == used_.end() ? 0 : at->second);
    if (most > 0 && all > most) missing[device] = all - most;
  }
  return missing;
}

bool ModelBudget::reserve(const std::string& name, const Bytes& bytes) {
  const MutexLock lock(mutex_);
  if (reserved_.contains(name)) return true;
  if (!shortage(bytes).empty()) return false;
  count(reserved_[name] = bytes);
  return true;
}

ModelBudget::Bytes ModelBudget::missing(const Bytes& bytes) const {
  const MutexLock lock(mutex_);
  return shortage(bytes);
}

void ModelBudget::release(const std::string& name) {
  MutexLock lock(mutex_);
  const auto reserved = reserved_.find(name);
  if (reserved == reserved_.end()) return;
  discount(reserved->second);
  reserved_.erase(reserved);
  lock.unlock();
  if (hook_) hook_();
}

bool ModelBudget::exceeded() const {
  const MutexLock lock(mutex_);
  return std::any_of(used_.begin(), used_.end(),
                     [this](const auto& one) { return limit(one.first) > 0 && one.second > limit(one.first); });
}

void ModelBudget::check(std::string_view name, const Bytes& bytes) const {
  for (const auto& [device, count] : bytes)
    SCONCE_CHECK(limit(device) == 0 || count <= limit(device), kOutOfMemory, "model '", name, "' takes ", count,
                 " bytes, setting ", place_name(device), " is ", limit(device));
}

std::vector<std::string> ModelBudget::victims(const Bytes& bytes, std::vector<Candidate> candidates) const {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.last_use < b.last_use; });
  const MutexLock lock(mutex_);
  Bytes wanted = bytes;
  for (const auto& [device, count] : used_) wanted.try_emplace(device);
  Bytes missing = shortage(wanted);
  std::vector<std::string> chosen;
  for (Candidate& candidate : candidates) {
    if (missing.empty()) break;
    const auto model = models_.find(candidate.name);
    if (model == models_.end()) continue;
    bool gives = false;
    for (const auto& [version, own] : model->second) {
      for (const auto& [device, count] : own) {
        const auto at = missing.find(device);
        if (at == missing.end() || count == 0) continue;
        gives = true;
        at->second -= std::min(at->second, count);
        if (at->second == 0) missing.erase(at);
      }
    }
    if (gives) chosen.push_back(std::move(candidate.name));
  }
  if (!missing.empty()) chosen.clear();
  return chosen;
}

ModelBudget::Bytes ModelBudget::used() const {
  const MutexLock lock(mutex_);
  Bytes all = used_;
  all.try_emplace(kHost);
  return all;
}

ModelBudget::Bytes ModelBudget::of(std::string_view name) const {
  Bytes all;
  const MutexLock lock(mutex_);
  if (const auto model = models_.find(name); model != models_.end())
    for (const auto& [version, own] : model->second)
      for (const auto& [device, count] : own) all[device] += count;
  return all;
}

}  // namespace sconce::server
