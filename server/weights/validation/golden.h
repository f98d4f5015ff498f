// Golden: a model's golden requests and their last verdict on a weight set. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/support/json_document.h"
#include "server/weights/validation/golden_file.h"

namespace sconce::server::weights {

struct GoldenVerdict {
  struct Failure {
    std::string request, output;  // output: empty if the run itself failed
    GoldenMismatch mismatch;
  };
  // The judged set: a staged set, by its label and the time of staging, or a named set.
  std::string label, set;
  std::string digest;                                  // empty without libcrypto
  std::chrono::system_clock::time_point staged, time;  // time: of the verdict
  size_t passed = 0, requests = 0, needed = 0;
  std::chrono::duration<double> seconds{};
  std::vector<Failure> failures;  // at most one for each request; the first ones

  bool good() const noexcept { return passed >= needed; }
};

class Golden {
 public:
  explicit Golden(GoldenFile file) : file_(std::move(file)) {}

  const GoldenFile& file() const noexcept { return file_; }
  // Runs every request on the set, one after the other. `verdict` identifies the set. Calls `check` before each request
  // and passes on its exceptions. A run that fails in the model, or whose inputs the model refuses, counts against the
  // set. Other errors give no verdict: kOutOfMemory, kDevice, kUnavailable.
  GoldenVerdict judge(const scheduling::ModelSignature& interface, Rehearsal& rehearsal, GoldenVerdict verdict,
                      const std::function<void()>& check);
  std::optional<GoldenVerdict> last() const;
  // Number of verdicts so far.
  uint64_t verdicts(bool good) const noexcept { return (good ? passed_ : failed_).load(std::memory_order_relaxed); }

 private:
  const GoldenFile file_;
  std::atomic<uint64_t> passed_{0}, failed_{0};
  mutable Mutex mutex_;
  std::optional<GoldenVerdict> last_ SCONCE_GUARDED_BY(mutex_);
};

// The reason for which a set is refused.
std::string refusal_of(const GoldenVerdict& verdict);
OrderedJson verdict_json(const GoldenVerdict& verdict);
// The members of GET .../golden.
OrderedJson golden_json(const Golden& golden);

}  // namespace sconce::server::weights
