#include "server/registry/trial/row_checks.h"

#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "package_format/files/host_memory.h"
#include "server/registry/trial/trial_plan.h"
#include "server/registry/trial/trial_report.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::registry {
namespace {

constexpr int kNice = 10;

}  // namespace

void RowChecks::start(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting) {
  const MutexLock lock(mutex_);
  if (state_ != State::kNew) return;
  state_ = program.empty() ? State::kClosed : State::kOpen;
  if (state_ == State::kClosed) return queue_.clear();
  program_ = std::move(program);
  if (!queue_.empty()) waiting_ = std::move(waiting);
  begin();
}

void RowChecks::add(const PackageEntry& package, const scheduling::ModelSignature& interface, const ModelConfig& config,
                    Subject subject) {
  std::optional<TrialRequest> request = trial_while_served(package, interface, config);
  if (!request) return;
  Check check{package.name, package.package, trial_settings({}, config), std::move(*request), std::move(subject)};
  const MutexLock lock(mutex_);
  if (state_ == State::kClosed) return;
  // Models may be replaced faster than they are checked. A check does not keep a model in memory.
  std::erase_if(queue_, [](const Check& waits) { return !waits.subject.served(); });
  queue_.push_back(std::move(check));
  begin();
}

void RowChecks::begin() {
  if (state_ != State::kOpen || running_ || queue_.empty()) return;
  if (thread_.joinable()) thread_.join();
  running_ = true;
  const std::exception_ptr failure = exception_of([this] {
    mutex_.assert_held();
    thread_ = std::thread([this] { run(); });
  });
  if (!failure) return;
  running_ = false;
  const size_t untried = queue_.size();
  queue_.clear();
  log_warn("{} models are served without a trial of shared runs: there is no thread: {}", untried,
           describe_failure(failure).message);
}

void RowChecks::end() noexcept {
  close();
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

void RowChecks::run() noexcept {
  // Lowers the priority of this thread and of its children, from their first instruction on.
  ::setpriority(PRIO_PROCESS, 0, kNice);
  for (;;) {
    std::optional<Check> check;
    std::unique_ptr<TrialProcess> unused;
    {
      const MutexLock lock(mutex_);
      running_ = !queue_.empty();
      if (!running_) {
        unused = std::move(waiting_);
        return;
      }
      check.emplace(std::move(queue_.front()));
      queue_.pop_front();
    }
    bool ending = false;
    // If memory is short, there may be none for the reason either.
    succeeds([&] {
      const std::string problem = problem_of([&] { ending = !perform(*check); });
      if (!problem.empty())
        log_warn("model {}: the batch invariance check was aborted: {}", check->model, printable(problem));
    });
    if (ending) return close();
  }
}

void RowChecks::close() noexcept {
  const MutexLock lock(mutex_);
  state_ = State::kClosed;
  queue_.clear();
}

bool RowChecks::perform(Check& check) {
  if (!check.subject.served()) return true;
  TrialReport report;
  std::string problem;
  bool stopped = false;
  const std::string cannot = problem_of([&] {
    std::unique_ptr<TrialProcess> child;
    {
      const MutexLock lock(mutex_);
      child = std::move(waiting_);
    }
    // The thread that starts a child must outlive it: this thread, or the one that started the waiting child.
    if (!child) child = std::make_unique<TrialProcess>(program_);
    TrialSettings settings = check.settings;
    // The model is already in memory, and its child must not take memory that requests need.
    if (settings.memory == 0) settings.memory = std::max<uint64_t>(host_memory().left / 2, 1);
    child->give(settings, *check.package, to_text(check.request));
    check.package.reset();
    const TrialEnd end = child->wait(stop_);
    stopped = end.stopped;
    problem = read_trial_end(end, report);
  });
  if (stopped) return false;
  if (!cannot.empty()) problem = cannot;
  const scheduling::InvarianceFinding& found = report.rows;
  if (found.kind == scheduling::InvarianceFinding::Kind::kDiffers) check.subject.contradict(found);
  const bool untold = found.kind == scheduling::InvarianceFinding::Kind::kUnknown;
  if (untold || (found.kind == scheduling::InvarianceFinding::Kind::kNone && !problem.empty()))
    log_info("model {}: it is served without a trial of shared runs: {}", check.model,
             printable(untold ? found.reason : "its trial in a child process " + problem));
  return true;
}

}  // namespace sconce::server::registry
