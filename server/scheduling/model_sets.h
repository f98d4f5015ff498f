// ModelSets: chooses the named weight set that answers a request to a model, and counts the answers of each set.
//
// A request names a set, or routes choose one for it. A set on disk is read by the model's own thread, once for all
// requests that wait for it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"

namespace sconce::server::scheduling {

class ModelSets {
 public:
  static constexpr std::string_view kActive = "active";  // the active set's name

  struct Counters {
    std::atomic<uint64_t> success{0}, failures{0}, rows{0}, total_ns{0};
  };
  struct Choice {
    std::shared_ptr<const WeightSet> set;  // null: the active set, or a set on disk
    std::shared_ptr<Counters> counters;    // null: the active set
  };
  // A request whose set is being read. Its owner keeps it until notify() was called.
  struct Waiter {
    void (*notify)(void* context) noexcept = nullptr;
    void* context = nullptr;
    Choice choice;
    std::exception_ptr problem;
    Waiter* next = nullptr;
  };
  // Names and their shares. Shares are not negative, and at least one is positive.
  using Routes = std::vector<std::pair<std::string, double>>;

  // routes: as in the setting, "active:95", "v2:5". kInvalidArgument.
  ModelSets(Model& model, std::span<const std::string> routes);
  ~ModelSets();  // waits for the set that is being read; waiters for other sets get kUnavailable
  ModelSets(const ModelSets&) = delete;
  ModelSets& operator=(const ModelSets&) = delete;

  // kNotFound.
  Choice find(std::string_view name);
  // Reads the set from disk, then notifies the waiter. std::system_error if the thread cannot be started.
  void bring(const std::string& name, Waiter& waiter);
  // kBusy if routes name the set; kNotFound.
  void remove(const std::string& name);

  bool routed() const noexcept { return routed_.load(std::memory_order_relaxed); }
  // The set for a request that names none. Requests with the same key get the same set while the routes stay unchanged.
  std::string route(std::string_view key) const;
  Routes routes() const;
  // kNotFound for an unknown set. Empty: all requests get the active set.
  void set_routes(Routes routes);

  // Counters of each named set that the model has. Removed sets are not included.
  struct Count {
    std::string name;
    uint64_t success, failures, rows, total_ns;
  };
  std::vector<Count> counts() const;

 private:
  std::shared_ptr<Counters> counters_of(std::string_view name);
  void read_sets();

  Model& model_;
  std::atomic<bool> routed_{false};
  mutable std::atomic<uint64_t> without_key_{0};  // requests
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Counters>, std::less<>> counters_ SCONCE_GUARDED_BY(mutex_);
  std::shared_ptr<const Routes> routes_ SCONCE_GUARDED_BY(mutex_);

  Mutex reading_;
  ConditionVariable wake_;
  std::deque<std::string> wanted_ SCONCE_GUARDED_BY(reading_);
  std::map<std::string, Waiter*> waiters_ SCONCE_GUARDED_BY(reading_);
  bool stopping_ SCONCE_GUARDED_BY(reading_) = false;
  std::thread thread_ SCONCE_GUARDED_BY(reading_);
};

}  // namespace sconce::server::scheduling
