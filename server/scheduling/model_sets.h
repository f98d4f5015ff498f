// ModelSets: which named set of weights answers a request to a model, and what each has answered.
//
// A request names a set, or routes choose one for it. A set that is on disk is read by a thread of the model's own,
// once for all requests that wait for it. Thread-safe.
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

namespace sconce::server {

class ModelSets {
 public:
  static constexpr std::string_view kActive = "active";  // the active set's name

  struct Counters {
    std::atomic<uint64_t> success{0}, failures{0}, rows{0}, total_ns{0};
  };
  struct Choice {
    std::shared_ptr<const WeightSet> set;  // null: the active one, or it is on disk
    std::shared_ptr<Counters> counters;    // null: the active one
  };
  // A request whose set is being read. Its owner keeps it until notify() was called.
  struct Waiter {
    void (*notify)(void* context) noexcept = nullptr;
    void* context = nullptr;
    Choice choice;
    std::exception_ptr problem;
    Waiter* next = nullptr;
  };
  // Names and their shares, which are not negative and not all 0.
  using Routes = std::vector<std::pair<std::string, double>>;

  // routes: as the setting has them, "active:95", "v2:5". kInvalidArgument.
  ModelSets(Model& model, std::span<const std::string> routes);
  ~ModelSets();  // waits for the set that is being read; those who wait for others get kUnavailable
  ModelSets(const ModelSets&) = delete;
  ModelSets& operator=(const ModelSets&) = delete;

  // kNotFound.
  Choice find(std::string_view name);
  // Reads the set; tells the waiter. std::system_error if there is no thread for that.
  void bring(const std::string& name, Waiter& waiter);
  // kBusy if routes name the set; kNotFound.
  void remove(const std::string& name);

  bool routed() const noexcept { return routed_.load(std::memory_order_relaxed); }
  // What a request gets that names no set. Those with one key get one set, as long as the routes stay.
  std::string route(std::string_view key) const;
  Routes routes() const;
  // kNotFound for a set that is not there. Empty: all get the active set.
  void set_routes(Routes routes);

  // Of each named set that the model has; what was removed is not counted any more.
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
  mutable std::atomic<uint64_t> turn_{0};  // requests without a key
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

}  // namespace sconce::server
