#include "server/scheduling/pipeline.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "tests/errors.h"
#include "tests/server/queued_requests.h"
#include "tests/server/scheduling/scripted_model.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

TensorSpec pair_of_floats(std::string name) {
  return tensor_spec(std::move(name), DType::kFloat32, {fixed_dim(1), fixed_dim(2)});
}
Tensor floats(float value) {
  Tensor tensor = Tensor::empty(std::vector<int64_t>{1, 2}, DType::kFloat32);
  std::fill_n(tensor.data_as<float>(), 2, value);
  return tensor;
}

// A model that adds the first elements of its inputs, and a number of its own. The test ends its requests.
class ScriptedStep final : public Schedulable {
 public:
  ScriptedStep(std::string name, size_t inputs, float adds)
      : interface_(signature(std::move(name), inputs)), adds_(adds) {}

  const ModelSignature& interface() const noexcept override { return interface_; }
  const BatchPolicy& policy() const noexcept override { return policy_; }
  bool watches_answers() const noexcept override { return false; }
  void check_inputs(std::span<const Tensor> inputs) const override {
    SCONCE_CHECK(inputs.size() == interface_.inputs.size(), kInvalidArgument, "wrong number of inputs");
  }
  void enqueue(QueuedRequest& request) override {
    if (full) SCONCE_FAIL(kQueueFull, "told to be full");
    queued.push_back(&request);
  }
  bool run_here(size_t /*input_bytes*/) noexcept override { return here; }
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* /*weights*/,
              bool /*device_outputs*/) override {
    ++runs_here;
    if (when_running) when_running();
    return answer(inputs, outputs);
  }
  void ran_here(std::chrono::nanoseconds /*compute*/, size_t /*input_bytes*/) noexcept override { ++permits_returned; }
  void count_step(const QueuedRequest& step, QueuedRequest::Clock::time_point /*begun*/) noexcept override {
    ++(step.error ? failures : successes);
  }

  // Ends the first request in the queue.
  void finish(std::chrono::nanoseconds queue = 0ns) {
    end([&](QueuedRequest& request) {
      request.info = answer(request.inputs, request.outputs);
      request.info.queue = queue;
    });
  }
  void fail() {
    end([](QueuedRequest&) { SCONCE_FAIL(kModelFailed, "told to fail"); });
  }
  void finish_with_none() {
    end([](QueuedRequest&) {});
  }

  std::deque<QueuedRequest*> queued;
  bool here = false, full = false;
  uint64_t weight_version = 1;
  std::shared_ptr<const std::string> label;
  std::function<void()> when_running;
  int runs_here = 0, permits_returned = 0, successes = 0, failures = 0;

 private:
  static ModelSignature signature(std::string name, size_t inputs) {
    std::vector<TensorSpec> specs;
    for (size_t i = 0; i < inputs; ++i) specs.push_back(pair_of_floats("in" + std::to_string(i)));
    return {std::move(name), 1, model_spec(std::move(specs), {pair_of_floats("out")})};
  }
  RunInfo answer(std::span<const Tensor> inputs, std::span<Tensor> outputs) const {
    float sum = adds_;
    for (const Tensor& input : inputs) sum += input.data_as<float>()[0];
    outputs[0] = floats(sum);
    RunInfo info;
    info.compute = 1ms;
    info.weight_version = weight_version;
    info.label = label;
    return info;
  }
  template <class F>
  void end(F&& model) {
    REQUIRE_FALSE(queued.empty());
    QueuedRequest& request = *std::exchange(queued.front(), nullptr);
    queued.pop_front();
    request.error = nullptr;
    try {
      model(request);
      request.ran();
    } catch (...) {
      request.error = std::current_exception();
    }
    request.finished();
  }

  const ModelSignature interface_;
  const BatchPolicy policy_;
  const float adds_;
};

// A run of one request.
class Whole final : public BatchRun {
 public:
  Whole() : output_(1) {
    classify();
    requests.push_back(&client);
    inputs = input_;
    outputs = output_;
  }
  void finished() noexcept override { ++ended; }
  // Sets the deadline of the client's request, as the pipeline's queue does: none without a timeout.
  void classify() {
    const BatchPolicy policy;
    RequestQueue(policy).classify(client, StillTime::now());
  }
  float answer() const { return output_[0].data_as<float>()[0]; }
  std::string problem() const { return error ? describe_failure(error).message : std::string(); }

  TestRequest client{1};
  int ended = 0;

 private:
  const std::vector<Tensor> input_{floats(1)};
  std::vector<Tensor> output_;
};

// Steps first, left, right and last: left and right read what first makes, last reads both.
struct Diamond {
  Diamond() : pipeline(plan(), members(), true, clock) {}
  static PipelinePlan plan() {
    PipelinePlan plan{{"p", 1, model_spec({pair_of_floats("x")}, {pair_of_floats("y")})}, 5, {4}, {}};
    plan.steps = {{.inputs = {{0, {}}}, .outputs = {1}, .next = {1, 2}, .needs = 0},
                  {.inputs = {{1, {}}}, .outputs = {2}, .next = {3}, .needs = 1},
                  {.inputs = {{1, {}}}, .outputs = {3}, .next = {3}, .needs = 1},
                  {.inputs = {{2, {}}, {3, {}}}, .outputs = {4}, .next = {}, .needs = 2}};
    return plan;
  }
  std::vector<std::shared_ptr<Schedulable>> members() const { return {first, left, right, last}; }

  const std::shared_ptr<ScriptedStep> first = std::make_shared<ScriptedStep>("first", 1, 10.0F),
                                      left = std::make_shared<ScriptedStep>("left", 1, 100.0F),
                                      right = std::make_shared<ScriptedStep>("right", 1, 1000.0F),
                                      last = std::make_shared<ScriptedStep>("last", 2, 0.0F);
  TimerQueue clock{&StillTime::now};
  Pipeline pipeline;
};

}  // namespace

TEST_CASE("pipeline: a step starts when all steps that it depends on have ended") {
  Diamond d;
  Whole run;
  d.pipeline.submit(run);
  CHECK(d.first->queued.size() == 1);
  CHECK(d.left->queued.empty());
  d.first->finish(5ms);
  CHECK(d.left->queued.size() == 1);
  CHECK(d.right->queued.size() == 1);
  d.right->finish(7ms);
  CHECK(d.last->queued.empty());
  d.left->finish(1ms);
  CHECK(d.last->queued.size() == 1);
  CHECK(run.ended == 0);
  d.last->finish(2ms);
  CHECK(run.ended == 1);
  CHECK_FALSE(run.error);
  CHECK(run.answer() == (1 + 10 + 100) + (1 + 10 + 1000));
  // The times of the steps that each waited for: first, left, last.
  CHECK(run.waited == 8ms);
  CHECK(run.info.compute == 3ms);
  CHECK(d.last->successes == 1);
}

TEST_CASE("pipeline: the same run again, with the weights that answered") {
  Diamond d;
  Whole run;
  const auto answer = [&] {
    d.pipeline.submit(run);
    d.first->finish();
    d.left->finish();
    d.right->finish();
    d.last->finish();
    return run.info.label ? *run.info.label : std::string();
  };
  CHECK(answer() == "first=1,left=1,right=1,last=1");
  CHECK(run.info.weight_version == 4);
  d.left->weight_version = 3;
  d.right->label = std::make_shared<const std::string>("v7");
  CHECK(answer() == "first=1,left=3,right=v7,last=1");
  CHECK(run.info.weight_version == 6);
  CHECK(run.ended == 2);
}

TEST_CASE("pipeline: a step that fails is named, and no further step starts") {
  Diamond d;
  Whole run;
  d.pipeline.submit(run);
  d.first->finish();
  d.left->fail();
  CHECK(run.ended == 0);  // another step still runs
  d.right->finish();
  CHECK(d.last->queued.empty());
  CHECK(run.ended == 1);
  CHECK(run.problem() == "step 2 (model 'left'): told to fail");
  CHECK(d.left->failures == 1);
  CHECK(d.right->successes == 1);
}

TEST_CASE("pipeline: the first of two failures is told") {
  Diamond d;
  Whole run;
  d.pipeline.submit(run);
  d.first->finish();
  d.right->fail();
  d.left->fail();
  CHECK(run.ended == 1);
  CHECK(run.problem() == "step 3 (model 'right'): told to fail");
}

TEST_CASE("pipeline: an output that is None, and a queue that is full") {
  Diamond d;
  Whole run;
  d.pipeline.submit(run);
  d.first->finish_with_none();
  CHECK(run.ended == 1);
  CHECK(contains(run.problem(), "step 1 (model 'first'): output '"));
  CHECK(contains(run.problem(), "' is None"));
  Whole refused;
  d.first->full = true;
  d.pipeline.submit(refused);
  CHECK(refused.ended == 1);
  CHECK(refused.problem() == "step 1 (model 'first'): told to be full");
  CHECK(describe_failure(refused.error).code == ErrorCode::kQueueFull);
}

TEST_CASE("pipeline: of an abandoned request, steps that have not started are skipped") {
  Diamond d;
  Whole run;
  d.pipeline.submit(run);
  CHECK(d.first->queued[0]->wanted());
  run.client.give_up();
  CHECK_FALSE(d.first->queued[0]->wanted());
  d.first->finish();
  CHECK(d.left->queued.empty());
  CHECK(run.ended == 1);
  CHECK(describe_failure(run.error).code == ErrorCode::kCancelled);
}

TEST_CASE("pipeline: short steps run on the thread that began the run, if that may run models") {
  Diamond d;
  for (const auto& step : {d.first, d.left, d.right, d.last}) step->here = true;
  Whole elsewhere;
  d.pipeline.submit(elsewhere);
  CHECK(d.first->queued.size() == 1);
  CHECK(d.first->runs_here == 0);
  d.first->finish();
  d.left->finish();
  d.right->finish();
  d.last->finish();
  CHECK(elsewhere.ended == 1);

  Whole run;
  {
    const Pipeline::Here here;
    d.pipeline.submit(run);
  }
  CHECK(d.first->runs_here == 1);
  CHECK(d.first->permits_returned == 1);
  // One of two steps that are ready must not delay the other: it goes to its queue.
  REQUIRE(d.left->queued.size() + d.right->queued.size() == 1);
  CHECK(d.left->runs_here + d.right->runs_here == 1);
  (d.left->queued.empty() ? d.right : d.left)->finish();
  CHECK(d.last->queued.size() == 1);  // this thread began no run
  d.last->finish();
  CHECK(run.ended == 1);
  CHECK(run.answer() == elsewhere.answer());
}

TEST_CASE("pipeline: a run that began long ago uses its thread no further") {
  Diamond d;
  for (const auto& step : {d.first, d.left, d.right, d.last}) step->here = true;
  Whole run;
  d.first->when_running = [] { StillTime::pass(200us); };
  {
    const Pipeline::Here here;
    d.pipeline.submit(run);
  }
  CHECK(d.first->runs_here == 1);
  CHECK(d.left->queued.size() == 1);
  CHECK(d.right->queued.size() == 1);
  d.left->finish();
  d.right->finish();
  d.last->finish();
  CHECK(run.ended == 1);
}

TEST_CASE("pipeline: a step does not start after the request's time for waiting") {
  Diamond d;
  Whole run;
  run.client.timeout = 2s;
  run.classify();
  d.pipeline.submit(run);
  CHECK(d.first->queued[0]->timeout == 2s);
  StillTime::pass(1999ms);
  d.first->finish();
  CHECK(d.left->queued.size() == 1);
  CHECK(d.left->queued[0]->timeout == 1ms);
  StillTime::pass(1ms);
  d.left->finish();
  d.right->finish();
  CHECK(d.last->queued.empty());
  CHECK(run.ended == 1);
  CHECK(describe_failure(run.error).code == ErrorCode::kDeadlineExceeded);
  CHECK(contains(run.problem(), "step 4 (model 'last')"));
}

}  // namespace sconce::server::scheduling
