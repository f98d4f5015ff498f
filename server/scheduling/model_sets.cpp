#include "server/scheduling/model_sets.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "src/support/excerpt.h"
#include "src/support/hash.h"

namespace sconce::server::scheduling {
namespace {

// A key gets the same set on every server and after every restart.
uint64_t hash_of(std::string_view key) noexcept { return mixed_bits(fnv1a(key)); }

// From 0 to less than 1.
double fraction(uint64_t bits) noexcept { return static_cast<double>(bits >> 11) * 0x1p-53; }

double sum_of(const ModelSets::Routes& routes) noexcept {
  double sum = 0;
  for (const auto& [name, share] : routes) sum += share;
  return sum;
}

void check_routes(const ModelSets::Routes& routes) {
  for (size_t i = 0; i < routes.size(); ++i) {
    const auto& [name, share] = routes[i];
    SCONCE_CHECK(std::isfinite(share) && share >= 0 && share <= 1e9, kInvalidArgument, "routes: the share of '",
                 excerpt(name), "' must be a number from 0 to 1e9");
    for (size_t j = 0; j < i; ++j)
      SCONCE_CHECK(routes[j].first != name, kInvalidArgument, "routes: '", excerpt(name), "' is given twice");
  }
  SCONCE_CHECK(routes.empty() || sum_of(routes) > 0, kInvalidArgument, "routes: all shares are 0");
}

// "v2:5"
std::pair<std::string, double> parsed(const std::string& text) {
  const size_t colon = text.rfind(':');
  double share = 0;
  const char* const end = text.data() + text.size();
  const bool good = colon != std::string::npos && colon > 0 &&
                    std::from_chars(text.data() + colon + 1, end, share).ptr == end && text.back() != ':';
  SCONCE_CHECK(good, kInvalidArgument, "setting routes: expected NAME:SHARE, got '", excerpt(text), "'");
  return {text.substr(0, colon), share};
}

}  // namespace

ModelSets::ModelSets(Model& model, std::span<const std::string> routes) : model_(model) {
  Routes all;
  for (const std::string& route : routes) all.push_back(parsed(route));
  check_routes(all);
  routed_ = !all.empty();
  routes_ = std::make_shared<const Routes>(std::move(all));
}

ModelSets::~ModelSets() {
  std::thread thread;
  {
    const MutexLock lock(reading_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  wake_.notify_all();
  if (thread.joinable()) thread.join();
}

std::shared_ptr<ModelSets::Counters> ModelSets::counters_of(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = counters_.find(name);
  if (found != counters_.end()) return found->second;
  return counters_.emplace(name, std::make_shared<Counters>()).first->second;
}

ModelSets::Choice ModelSets::find(std::string_view name) {
  std::shared_ptr<const WeightSet> set = model_.find_set(name);
  return {std::move(set), counters_of(name)};
}

void ModelSets::bring(const std::string& name, Waiter& waiter) {
  {
    const MutexLock lock(reading_);
    if (!thread_.joinable()) thread_ = std::thread([this] { read_sets(); });
    // In this order, a lack of memory leaves at most a read that nobody waits for.
    if (!waiters_.contains(name)) wanted_.push_back(name);
    Waiter*& newest = waiters_[name];
    waiter.next = newest;
    newest = &waiter;
  }
  wake_.notify_one();
}

void ModelSets::read_sets() {
  for (;;) {
    std::string name;
    bool stopping = false;
    {
      const MutexLock lock(reading_);
      while (wanted_.empty() && !stopping_) wake_.wait(reading_);
      if (wanted_.empty()) return;
      stopping = stopping_;
      name.swap(wanted_.front());
      wanted_.pop_front();
    }
    std::shared_ptr<const WeightSet> set;
    const std::exception_ptr problem = exception_of([&] {
      SCONCE_CHECK(!stopping, kUnavailable, "the model is being unloaded");
      set = model_.bring_set(name);
    });
    Waiter* waiter = nullptr;
    {
      const MutexLock lock(reading_);
      const auto it = waiters_.find(name);
      if (it == waiters_.end()) continue;
      waiter = it->second;
      waiters_.erase(it);
    }
    while (waiter) {
      Waiter& told = *waiter;
      waiter = told.next;
      told.choice.set = set;
      told.problem = problem;
      told.notify(told.context);
    }
  }
}

void ModelSets::remove(const std::string& name) {
  for (const auto& [routed, share] : routes())
    SCONCE_CHECK(routed != name, kBusy, "routes send requests to set '", excerpt(name), "'");
  // Removing the set waits for its runs, so it happens without the lock. If new routes name the set meanwhile, their
  // requests get the active set.
  model_.remove_set(name);
  const MutexLock lock(mutex_);
  counters_.erase(name);
}

std::string ModelSets::route(std::string_view key) const {
  std::shared_ptr<const Routes> routes;
  {
    const MutexLock lock(mutex_);
    routes = routes_;
  }
  // Multiples of kGoldenStep spread successive requests without a key evenly.
  const uint64_t bits = key.empty() ? without_key_.fetch_add(1, std::memory_order_relaxed) * kGoldenStep : hash_of(key);
  double at = fraction(bits) * sum_of(*routes);
  const std::string* chosen = nullptr;
  for (const auto& [name, share] : *routes) {
    if (share <= 0) continue;
    chosen = &name;
    if (at < share) break;
    at -= share;
  }
  return chosen == nullptr || *chosen == kActive ? std::string() : *chosen;
}

ModelSets::Routes ModelSets::routes() const {
  const MutexLock lock(mutex_);
  return *routes_;
}

void ModelSets::set_routes(Routes routes) {
  check_routes(routes);
  for (const auto& [name, share] : routes)
    if (name != kActive) model_.find_set(name);
  const bool any = !routes.empty();
  const MutexLock lock(mutex_);
  routes_ = std::make_shared<const Routes>(std::move(routes));
  routed_ = any;
}

std::vector<ModelSets::Count> ModelSets::counts() const {
  std::vector<Count> result;
  for (const NamedSetInfo& info : model_.named_sets()) result.push_back({info.name, 0, 0, 0, 0});
  const MutexLock lock(mutex_);
  for (Count& count : result) {
    const auto found = counters_.find(count.name);
    if (found == counters_.end()) continue;
    const Counters& c = *found->second;
    count = {count.name, c.success.load(), c.failures.load(), c.rows.load(), c.total_ns.load()};
  }
  return result;
}

}  // namespace sconce::server::scheduling
