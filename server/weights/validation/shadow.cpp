#include "server/weights/validation/shadow.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/support/enum_name.h"
#include "server/support/failure.h"

namespace sconce::server::weights {
namespace {

std::string why_not(const scheduling::ModelSignature& interface) {
  if (interface.mutates_constants)
    return "the model writes its buffers, so an answer depends on the requests before it";
  for (size_t i = 0; i < interface.spec.inputs.size(); ++i)
    if (interface.spec.inputs[i].may_be_written)
      return "the model may write its input '" + interface.input_names.name(i) +
             "', so its content after a run may differ from the request; the package has no source that shows "
             "otherwise";
  return {};
}

// Threads that a kernel starts from this thread inherit the priority.
void take_lowest_priority() noexcept {
  pthread_setname_np(pthread_self(), "shadow");
  const sched_param none{};
  if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) == 0) return;
  constexpr int kLowest = 19;
  // Linux has a nice value per thread, and raising it is always allowed.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
}

double largest_of(std::span<const OutputDifference> differences) noexcept {
  double largest = 0;
  for (const OutputDifference& difference : differences) largest = std::max(largest, difference.values.largest);
  return std::min(largest, std::numeric_limits<double>::max());  // for a metric
}

// Whether a count of any output differs.
bool differ(std::span<const OutputDifference> a, std::span<const OutputDifference> b,
            uint64_t OutputDifference::*count) noexcept {
  return !std::ranges::equal(a, b, {}, count, count);
}

}  // namespace

std::chrono::nanoseconds RunTimes::mean() const noexcept {
  return next_ == 0 ? std::chrono::nanoseconds(0) : sum_ / static_cast<int64_t>(next_);
}

std::chrono::nanoseconds RunTimes::quantile(double of) const {
  if (next_ == 0) return {};
  std::vector<std::chrono::nanoseconds> times(
      times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(next_, kMost)));
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(of * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

struct Shadow::Sums {
  ShadowCounts counts;
  std::atomic<uint64_t> other_argmax{0}, new_nonfinite{0};
  std::atomic<double> largest{0};  // of the last trial
};

struct Shadow::Trial {
  Trial(const WeightSetInfo& set, uint64_t weight_version, const scheduling::ModelSignature& interface,
        ShadowCounts& sums)
      : label(set.label),
        since(set.since),
        beside(weight_version),
        batched(interface.max_batch_size > 0),
        counts(&sums),
        differences(interface.outputs.size()) {}

  const std::string label;
  const std::chrono::system_clock::time_point since;
  const uint64_t beside;
  const bool batched;
  ShadowCounts counts;

  mutable Mutex mutex;                           // the thread holds it briefly
  std::string problem SCONCE_GUARDED_BY(mutex);  // why the set has no replica
  std::string digest SCONCE_GUARDED_BY(mutex);
  std::string first_failure SCONCE_GUARDED_BY(mutex);
  std::vector<OutputDifference> differences SCONCE_GUARDED_BY(mutex);
  RunTimes live SCONCE_GUARDED_BY(mutex), staged SCONCE_GUARDED_BY(mutex);
};

Shadow::Shadow(const Model& model, const scheduling::ModelSignature& interface, AnswerTap& answers,
               std::function<int64_t()> waiting, double share, uint64_t memory)
    : model_(model),
      interface_(interface),
      answers_(answers),
      waiting_(std::move(waiting)),
      memory_(memory),
      refusal_(why_not(interface)),
      sums_(std::make_unique<Sums>()),
      share_(share) {}

Shadow::~Shadow() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    changing_ = true;
    stop();
    last.swap(thread_);
  }
  if (last.joinable()) last.join();
}

void Shadow::set_share(double share) {
  SCONCE_CHECK(share >= 0 && share <= 1, kInvalidArgument, "the share must be from 0 to 1, got ", share);
  SCONCE_CHECK(share == 0 || refusal_.empty(), kFailedPrecondition,
               "its requests cannot be run a second time: ", refusal_);
  const MutexLock lock(mutex_);
  share_ = share;
  if (queue_ && !queue_->closed() && share > 0) return queue_->set_share(share);
  stop();
  look();
}

void Shadow::weights_change() noexcept {
  const MutexLock lock(mutex_);
  changing_ = true;
  stop();
}

void Shadow::weights_settled() noexcept {
  const MutexLock lock(mutex_);
  changing_ = false;
  succeeds([this] {
    mutex_.assert_held();
    problem_ = problem_of([this] {
      mutex_.assert_held();
      look();
    });
  });
}

void Shadow::stop() noexcept {
  if (!queue_) return;
  queue_->close();
  answers_.remove(*queue_);
  queue_.reset();
}

// Starts the shadow if there is a set to run.
void Shadow::look() {
  problem_.clear();
  if (changing_ || queue_ || share() == 0 || !refusal_.empty()) return;
  const uint64_t weight_version = model_.weight_version();
  for (const WeightSetInfo& set : model_.weight_sets()) {
    if (set.state != WeightState::kStaged) continue;
    if (!trial_ || trial_->since != set.since || trial_->beside != weight_version) {
      trial_ = std::make_shared<Trial>(set, weight_version, interface_, sums_->counts);
      sums_->largest = 0;
    }
    start();
  }
}

void Shadow::start() {
  auto queue = std::make_shared<ShadowQueue>(trial_->beside, share(), memory_, waiting_,
                                             std::shared_ptr<ShadowCounts>(trial_, &trial_->counts));
  // The previous thread may be in a run. Only the next thread waits for it.
  const auto before = std::make_shared<std::thread>();
  {
    const MutexLock lock(trial_->mutex);
    trial_->problem.clear();
  }
  answers_.add(queue);
  before->swap(thread_);
  const std::exception_ptr problem = exception_of([&] {
    mutex_.assert_held();
    thread_ = std::thread([this, before, queue, trial = trial_] {
      if (before->joinable()) before->join();
      work(model_, *trial, *queue, *sums_);
    });
  });
  queue_ = std::move(queue);
  if (!problem) return;
  thread_.swap(*before);
  stop();
  std::rethrow_exception(problem);
}

void Shadow::work(const Model& model, Trial& trial, ShadowQueue& queue, Sums& sums) noexcept {
  take_lowest_priority();
  std::unique_ptr<Rehearsal> staged;
  std::vector<Tensor> outputs;
  std::vector<OutputDifference> differences;
  std::string problem = problem_of([&] {
    staged = model.rehearse(WeightState::kStaged);
    const MutexLock lock(trial.mutex);
    differences = trial.differences;
    outputs.resize(differences.size());
  });
  std::string digest;
  succeeds([&] { digest = model.weights_digest(WeightState::kStaged); });
  // If the weights have changed meanwhile, another set may be staged by now; but then the queue was closed before.
  if (queue.closed()) return;
  {
    const MutexLock lock(trial.mutex);
    trial.problem.swap(problem);
    trial.digest.swap(digest);
    if (!trial.problem.empty()) return queue.close();
  }
  queue.open();
  for (bool warm = false; ShadowQueue::Request* const request = queue.next(); warm = true) {
    RunInfo info;
    std::vector<OutputDifference> sum;
    std::string failure = problem_of([&] {
      info = staged->run(request->inputs, outputs);
      for (Tensor& output : outputs)
        if (output.defined() && !output.is_cpu()) output = copy_to(output, Device{});
      sum = differences;
      add_answers(request->outputs, outputs, trial.batched, sum);
    });
    for (Tensor& output : outputs) output = Tensor();
    if (failure.empty()) {
      if (differ(differences, sum, &OutputDifference::answers_of_other_argmax)) ++sums.other_argmax;
      if (differ(differences, sum, &OutputDifference::answers_with_new_nonfinite)) ++sums.new_nonfinite;
      sums.largest = largest_of(sum);
      differences.swap(sum);
    }
    const bool timed = warm && failure.empty() && request->alone;
    const std::chrono::nanoseconds live = request->compute;
    queue.done(*request);
    const MutexLock lock(trial.mutex);
    trial.counts.raise(failure.empty() ? ShadowCounts::kCompared : ShadowCounts::kFailed);
    if (trial.first_failure.empty()) trial.first_failure.swap(failure);
    std::ranges::copy(differences, trial.differences.begin());
    if (!timed) continue;
    trial.live.add(live);
    trial.staged.add(info.compute);
  }
}

Shadow::Report Shadow::report() const {
  const MutexLock lock(mutex_);
  Report report{share(), State::kWaiting, refusal_, {}};
  if (trial_) {
    const ShadowCounts& counts = trial_->counts;
    const MutexLock trial_lock(trial_->mutex);
    report.summary = {trial_->label,
                      trial_->digest,
                      trial_->since,
                      trial_->beside,
                      counts[ShadowCounts::kCompared],
                      counts[ShadowCounts::kFailed],
                      counts[ShadowCounts::kBusy],
                      counts[ShadowCounts::kFull],
                      counts[ShadowCounts::kPlaced],
                      counts[ShadowCounts::kEnded],
                      trial_->first_failure,
                      trial_->differences,
                      trial_->live,
                      trial_->staged};
    if (queue_ && !trial_->problem.empty()) report.reason = trial_->problem;
  }
  if (share() == 0) {
    report.state = State::kOff;
  } else if (!refusal_.empty()) {
    report.state = State::kRefused;
  } else if (changing_) {
    report.state = State::kPaused;
  } else if (!problem_.empty() || !report.reason.empty()) {
    report.state = State::kFailed;
    if (report.reason.empty()) report.reason = problem_;
  } else if (queue_) {
    report.state = queue_->opened() ? State::kRunning : State::kStarting;
  }
  return report;
}

Shadow::Totals Shadow::totals() const noexcept {
  const ShadowCounts& counts = sums_->counts;
  return {counts[ShadowCounts::kCompared], counts.skipped(),
          counts[ShadowCounts::kFailed],   sums_->other_argmax.load(),
          sums_->new_nonfinite.load(),     sums_->largest.load()};
}

const char* state_name(Shadow::State state) noexcept {
  return name_of(state, {"off", "refused", "waiting", "starting", "running", "paused", "failed"});
}

}  // namespace sconce::server::weights
