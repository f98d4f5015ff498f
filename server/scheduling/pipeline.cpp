#include "server/scheduling/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <utility>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/scheduling/batching/batch_tensors.h"
#include "server/scheduling/pipelines/cast.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/failure.h"

namespace sconce::server::scheduling {
namespace {

using Clock = QueuedRequest::Clock;
using std::chrono::nanoseconds;

// How long a run may occupy the thread that started it.
constexpr std::chrono::microseconds kLongestHere{200};

thread_local bool may_run_here = false;

}  // namespace

// A step of a run: a request to the step's model.
class Pipeline::Step final : public QueuedRequest {
 public:
  Step(Run& run, const PipelinePlan::Step& plan, Schedulable& model, size_t index)
      : run_(run), plan_(plan), model_(model), index_(index) {
    in_.resize(plan.inputs.size());
    out_.resize(plan.outputs.size());
  }

  void reset() noexcept {
    needs_.store(plan_.needs, std::memory_order_relaxed);
    info = {};
    run_rows = -1;
    queue_before_ = compute_before_ = {};
  }
  bool wanted() const noexcept override;
  void ran() override {
    if (model_.interface().mutates_constants) keep_outputs(out_);
  }
  void finished() noexcept override;

 private:
  friend class Run;
  // on_device: whether the model may receive inputs in device memory.
  void prepare(const Pipeline& pipeline, std::span<const Tensor> values, const QueuedRequest& whole, bool on_device);

  Run& run_;
  const PipelinePlan::Step& plan_;
  Schedulable& model_;
  const size_t index_;
  std::vector<Tensor> in_, out_;
  TensorScratch scratch_;
  Clock::time_point begun_;
  std::atomic<size_t> needs_{0};  // number of steps that it still waits for
  Step* next_ready_ = nullptr;
  nanoseconds queue_before_{}, compute_before_{};  // of the previous steps; these set them one after the other
};

class Pipeline::Run final : public BatchRun::Keep {
 public:
  explicit Run(const Pipeline& pipeline) : pipeline_(pipeline), values_(pipeline.plan_.values) {
    for (size_t i = 0; i < pipeline.plan_.steps.size(); ++i)
      steps_.emplace_back(*this, pipeline.plan_.steps[i], *pipeline.members_[i], i);
    weight_versions_.resize(steps_.size());
    labels_.resize(steps_.size());
  }

  void begin(BatchRun& run) noexcept {
    run_ = &run;
    begun_ = pipeline_.clock_.now();
    bool any = false;
    run.error = exception_of([&] {
      any = run.starting();
      if (any) begin_times();
    });
    if (!any) return run.finished();  // the request was late, or could not start
    std::copy(run.inputs.begin(), run.inputs.end(), values_.begin());
    failed_.store(false, std::memory_order_relaxed);
    left_.store(steps_.size(), std::memory_order_relaxed);
    Step* ready = nullptr;
    for (Step& step : steps_) step.reset();
    for (Step& step : steps_)
      if (step.plan_.needs == 0) step.next_ready_ = std::exchange(ready, &step);
    launch(ready);
  }

  bool wanted() const noexcept { return !failed_.load(std::memory_order_relaxed) && run_->requests.front()->wanted(); }

  // The request of a step has ended.
  void ended(Step& step) noexcept {
    finish_step(step);
    launch(complete(step));
  }

 private:
  // Starts the steps in a list, and the steps that become ready because these end immediately. The run may have ended
  // on return.
  void launch(Step* ready) noexcept {
    while (ready) {
      Step& step = *std::exchange(ready, ready->next_ready_);
      bool over = true;
      if (wanted()) {
        std::exception_ptr problem = exception_of([&] { over = start(step, ready == nullptr); });
        // A queued step, and the whole run, may have ended by now.
        if (!over) continue;
        step.error = std::move(problem);
        finish_step(step);
      } else if (!failed_.exchange(true)) {
        run_->error = std::make_exception_ptr(Error(ErrorCode::kCancelled, "the request was abandoned"));
      }
      Step* more = complete(step);
      while (more) {
        Step* const next = more->next_ready_;
        more->next_ready_ = std::exchange(ready, more);
        more = next;
      }
    }
  }

  // True: the step has ended. alone: no other step waits to be started.
  bool start(Step& step, bool alone) {
    const QueuedRequest& whole = *run_->requests.front();
    step.begun_ = pipeline_.clock_.now();
    const bool late = pipeline_.reject_late_ && step.begun_ >= whole.deadline();
    SCONCE_CHECK(!late, kDeadlineExceeded, "Request timeout expired before the step began");
    Schedulable& model = step.model_;
    // Watchers of a model's answers compare them on the host.
    const bool on_device = !model.watches_answers();
    step.prepare(pipeline_, values_, whole, on_device);
    step.device_outputs = on_device && pipeline_.stays_[step.index_];
    const size_t bytes = step.input_bytes();
    // A run on this thread must not delay another step.
    if (alone && may_run_here && step.begun_ - begun_ < kLongestHere && model.run_here(bytes)) {
      const std::exception_ptr problem = exception_of([&] {
        step.info = model.run(step.in_, step.out_, nullptr, step.device_outputs);
        step.ran();
      });
      step.run_rows = step.rows;
      step.gather = step.split = {};
      model.ran_here(problem ? nanoseconds(0) : step.info.compute, bytes);
      if (problem) std::rethrow_exception(problem);
      return true;
    }
    model.check_inputs(step.in_);
    // The step may end before enqueue() returns, and release the last other reference to the model.
    const std::shared_ptr<Schedulable> kept = pipeline_.members_[step.index_];
    model.enqueue(step);
    return false;
  }

  std::vector<StepTime>* times() const noexcept { return run_->requests.front()->step_times; }

  void begin_times() {
    if (!times()) return;
    times()->clear();
    for (const Step& step : steps_) times()->push_back({&step.model_.interface().name, {}, {}});
  }

  // Takes the results of a finished step.
  void finish_step(Step& step) noexcept {
    if (std::vector<StepTime>* all = times()) {
      (*all)[step.index_].begun = step.begun_;
      (*all)[step.index_].ended = pipeline_.clock_.now();
    }
    step.model_.count_step(step, step.begun_);
    step.error = step.error ? explained(step) : exception_of([&] { take_outputs(step); });
    if (step.error && !failed_.exchange(true)) run_->error = step.error;
    step.error = nullptr;
    for (Tensor& tensor : step.in_) tensor = Tensor();
    for (Tensor& tensor : step.out_) tensor = Tensor();
    step.scratch_.reset();
  }

  void take_outputs(Step& step) {
    for (size_t k = 0; k < step.out_.size(); ++k) {
      if (!step.plan_.outputs[k]) continue;
      SCONCE_CHECK(step.out_[k].defined(), kModelFailed, name_of(step), ": output '",
                   step.model_.interface().output_names.name(k), "' is None");
      values_[*step.plan_.outputs[k]] = std::move(step.out_[k]);
    }
  }

  std::string name_of(const Step& step) const {
    return "step " + std::to_string(step.index_ + 1) + " (model '" + step.model_.interface().name + "')";
  }

  // The step's error with its name; the error itself if memory is short.
  std::exception_ptr explained(const Step& step) const noexcept {
    std::exception_ptr told = step.error;
    succeeds([&] {
      const Failure failure = describe_failure(step.error);
      told = std::make_exception_ptr(Error(failure.code, name_of(step) + ": " + failure.message));
    });
    return told;
  }

  // Counts the step as finished. Returns the steps that have become ready.
  Step* complete(Step& step) noexcept {
    Step* ready = nullptr;
    const nanoseconds queue = step.queue_before_ + step.info.queue, compute = step.compute_before_ + step.info.compute;
    for (const size_t i : step.plan_.next) {
      Step& next = steps_[i];
      // If a step depends on several steps, the last one to end is the one that it waited for.
      if (next.needs_.fetch_sub(1) != 1) continue;
      next.queue_before_ = queue;
      next.compute_before_ = compute;
      next.next_ready_ = std::exchange(ready, &next);
    }
    if (left_.fetch_sub(1) == 1) finish(queue, compute);
    return ready;
  }

  // All steps have ended.
  void finish(nanoseconds queue, nanoseconds compute) noexcept {
    BatchRun& run = *run_;
    if (!run.error) {
      run.error = exception_of([&] {
        for (size_t k = 0; k < run.outputs.size(); ++k) {
          const Tensor& value = values_[pipeline_.plan_.outputs[k]];
          run.outputs[k] = value.is_cpu() ? value : copy_to(value, Device{});
        }
        name_weights();
        run.info = {};
        run.info.label = label_;
        for (const Step& step : steps_) run.info.weight_version += step.info.weight_version;
        run.info.compute = compute;
        run.waited = queue;
        run.ran();
      });
    }
    for (Tensor& value : values_) value = Tensor();
    run.finished();  // another run may start on this thread here
  }

  // The weights that answered, "encoder=3,head=v7". The text is cached, because successive runs use the same weights.
  void name_weights() {
    bool same = label_ != nullptr;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const RunInfo& info = steps_[i].info;
      same = same && weight_versions_[i] == info.weight_version && labels_[i] == info.label;
      weight_versions_[i] = info.weight_version;
      labels_[i] = info.label;
    }
    if (same) return;
    std::string text;
    for (const Step& step : steps_) {
      if (!text.empty()) text += ',';
      text += step.model_.interface().name + "=";
      text += step.info.label ? *step.info.label : std::to_string(step.info.weight_version);
    }
    label_ = std::make_shared<const std::string>(std::move(text));
  }

  const Pipeline& pipeline_;
  BatchRun* run_ = nullptr;
  Clock::time_point begun_;
  std::vector<Tensor> values_;
  std::deque<Step> steps_;
  std::atomic<size_t> left_{0};            // number of unfinished steps
  std::atomic<bool> failed_{false};        // run_->error belongs to the thread that set this
  std::vector<uint64_t> weight_versions_;  // of the cached label
  std::vector<std::shared_ptr<const std::string>> labels_;
  std::shared_ptr<const std::string> label_;
};

bool Pipeline::Step::wanted() const noexcept { return run_.wanted(); }

void Pipeline::Step::finished() noexcept { run_.ended(*this); }

void Pipeline::Step::prepare(const Pipeline& pipeline, std::span<const Tensor> values, const QueuedRequest& whole,
                             bool on_device) {
  const ModelSignature& interface = model_.interface();
  for (size_t i = 0; i < in_.size(); ++i) {
    const PipelinePlan::Input& from = plan_.inputs[i];
    const TensorSpec& spec = interface.spec.inputs[i];
    in_[i] = values[from.value];
    if (!in_[i].is_cpu()) {
      if (on_device && pipeline.takes_on_device(index_, i) && lies_as_recorded(in_[i], spec)) continue;
      in_[i] = copy_to(in_[i], Device{});
    }
    if (from.cast) in_[i] = cast(in_[i], *from.cast);
    if (in_[i].dim() != static_cast<int64_t>(spec.dims.size()) && spec.has_shape)
      continue;  // the model reports the error
    in_[i] = laid_as_recorded(in_[i], spec, scratch_);
  }
  rows = 1;
  if (interface.max_batch_size > 0) {
    const auto rows_of = [](const Tensor& tensor) { return tensor.dim() > 0 ? tensor.size(0) : 0; };
    rows = rows_of(in_[0]);
    for (const Tensor& tensor : in_)
      SCONCE_CHECK(rows_of(tensor) == rows, kInvalidArgument, "its inputs have different numbers of rows: ", rows,
                   " and ", rows_of(tensor));
    SCONCE_CHECK(rows <= model_.policy().most_rows, kInvalidArgument,
                 "inference request batch-size must be <= ", model_.policy().most_rows, " for '", interface.name,
                 "', got ", rows);
  }
  inputs = in_;
  outputs = out_;
  priority = whole.priority;
  timeout = whole.deadline() == Clock::time_point::max() ? nanoseconds(0)
                                                         : std::max(whole.deadline() - begun_, Clock::duration(1));
}

Pipeline::Pipeline(PipelinePlan plan, std::vector<std::shared_ptr<Schedulable>> members, bool reject_late,
                   const TimerQueue& clock)
    : plan_(std::move(plan)), members_(std::move(members)), reject_late_(reject_late), clock_(clock) {
  std::vector<bool> taken(plan_.values);  // by value: a step accepts it on a device
  for (size_t i = 0; i < plan_.steps.size(); ++i)
    for (size_t k = 0; k < plan_.steps[i].inputs.size(); ++k)
      if (takes_on_device(i, k)) taken[plan_.steps[i].inputs[k].value] = true;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const ModelSignature& interface = members_[i]->interface();
    // An output may be a buffer that the next run overwrites.
    stays_.push_back(interface.spec.device_key == "cuda" && !interface.mutates_constants &&
                     std::any_of(plan_.steps[i].outputs.begin(), plan_.steps[i].outputs.end(),
                                 [&](const std::optional<size_t>& value) { return value && taken[*value]; }));
  }
}

bool Pipeline::takes_on_device(size_t step, size_t input) const noexcept {
  const ModelSpec& spec = members_[step]->interface().spec;
  const TensorSpec& one = spec.inputs[input];
  const bool on_host = one.device && one.device->type == DeviceType::kCpu;
  // A model that writes an input would change it for the other steps too.
  return spec.device_key == "cuda" && !plan_.steps[step].inputs[input].cast && !on_host && !one.may_be_written;
}

Pipeline::~Pipeline() = default;

void Pipeline::submit(BatchRun& run) noexcept {
  run.error = exception_of([&] {
    if (!run.keep) run.keep = std::make_unique<Run>(*this);
  });
  if (run.error) return run.finished();
  static_cast<Run&>(*run.keep).begin(run);
}

Pipeline::Here::Here() noexcept : before_(std::exchange(may_run_here, true)) {}
Pipeline::Here::~Here() { may_run_here = before_; }

}  // namespace sconce::server::scheduling
