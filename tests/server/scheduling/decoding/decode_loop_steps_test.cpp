// The state machine of DecodeLoop, step by step, on a model that the test scripts.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/scheduling/decoding/decode_loop.h"
#include "server/support/failure.h"
#include "tests/errors.h"
#include "tests/server/queued_requests.h"
#include "tests/server/scheduling/scripted_model.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

using Look = DecodeLoop::Look;
using End = DecodeLoop::End;

constexpr int64_t kVocabulary = 300;

Tensor numbers(const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::empty(std::vector<int64_t>{1, static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return tensor;
}
std::vector<int64_t> values_of(const Tensor& tensor) {
  const int64_t* const data = tensor.data_as<int64_t>();
  return {data, data + tensor.numel()};
}
Tensor logits_of(int64_t token) {
  Tensor logits = Tensor::empty(std::vector<int64_t>{1, 1, kVocabulary}, DType::kFloat32);
  for (int64_t i = 0; i < kVocabulary; ++i) logits.data_as<float>()[i] = i == token ? 1.0F : 0.0F;
  return logits;
}

// Inputs: token, position, state. Outputs: logits, state. The test ends each step.
class ScriptedLoops final : public LoopHost {
 public:
  ScriptedLoops()
      : interface_(
            "m", 1,
            model_spec({tensor_spec("token", DType::kInt64, {fixed_dim(1), variable_dim("t", 1)}),
                        tensor_spec("position", DType::kInt64, {fixed_dim(1), fixed_dim(1)}),
                        tensor_spec("state", DType::kInt64, {fixed_dim(1), fixed_dim(2)})},
                       {tensor_spec("logits", DType::kFloat32, {fixed_dim(1), fixed_dim(1), fixed_dim(kVocabulary)}),
                        tensor_spec("next", DType::kInt64, {fixed_dim(1), fixed_dim(2)})})) {
    rule.token_rank = 2;
    rule.count = LoopPlan::Count{.input = 1, .rank = 2};
    rule.feeds = {{.output = 1, .input = 2, .dtype = DType::kInt64, .shape = {1, 2}}};
  }

  const ModelSignature& interface() const noexcept override { return interface_; }
  const LoopPlan& plan() const noexcept override { return rule; }
  LoopCounts& counts() noexcept override { return counts_; }
  Clock::time_point now() const noexcept override { return StillTime::now(); }
  DecodeBatch* rows() noexcept override { return nullptr; }
  Sequences* sequences() noexcept override { return sequences_of_model; }
  void enqueue(QueuedRequest& step) override {
    if (full) SCONCE_FAIL(kQueueFull, "told to be full");
    steps.push_back(&step);
  }
  void check_inputs(std::span<const Tensor> inputs) const override {
    if (bad_inputs) SCONCE_FAIL(kInvalidArgument, "told to refuse ", inputs.size(), " inputs");
  }
  bool watches_answers() const noexcept override { return false; }
  void count_step(const QueuedRequest& /*step*/, Clock::time_point /*begun*/) noexcept override { ++counted; }
  const char* why_end() const noexcept override { return ends; }

  // Ends the step, or the first step, with these logits and this state.
  void answer(int64_t token, std::optional<Tensor> state = numbers({0, 0})) {
    finish([&](QueuedRequest& step) {
      step.outputs[0] = logits_of(token);
      if (state) step.outputs[1] = std::move(*state);
    });
  }
  void fail(ErrorCode code) {
    finish([&](QueuedRequest&) { throw Error(code, "told to fail"); });
  }
  template <class F>
  void finish(F&& model) {
    REQUIRE_FALSE(steps.empty());
    QueuedRequest& step = *std::exchange(steps.front(), nullptr);
    steps.pop_front();
    step.error = nullptr;
    try {
      model(step);
      step.ran();
    } catch (...) {
      step.error = std::current_exception();
    }
    step.info.queue = 1ms;
    step.info.compute = 2ms;
    step.finished();
  }
  std::vector<int64_t> input(size_t index) const { return values_of(steps.front()->inputs[index]); }
  int64_t running() const { return counts_.running; }

  LoopPlan rule;  // the plan
  std::deque<QueuedRequest*> steps;
  Sequences* sequences_of_model = nullptr;
  bool full = false, bad_inputs = false;
  const char* ends = nullptr;
  int counted = 0;

 private:
  ModelSignature interface_;
  LoopCounts counts_;
};

// A request to the loop, with the consumer of its tokens.
class Consumer {
 public:
  explicit Consumer(ScriptedLoops& host) : host_(host), loop_(nullptr, &Consumer::notify, this) {
    inputs_.resize(3);
    terms.deadline = DecodeLoop::Clock::time_point::max();
  }
  ~Consumer() {
    // Ends the loop, if the test has not.
    if (begun_ && !loop_.cancel()) {
      if (!host_.steps.empty()) host_.answer(0);
      loop_.let_go();
    }
    loop_.clear();
  }

  void begin(std::vector<int64_t> prompt, int64_t most, bool each = true) {
    request.prompt = std::move(prompt);
    request.most_tokens = most;
    request.pick.temperature = 0;
    terms.inputs = inputs_;
    terms.each = each;
    loop_.begin(host_, request, terms);
    begun_ = true;
  }
  // The tokens that one call gives.
  std::vector<int64_t> take(Look expected, size_t most = SIZE_MAX) {
    std::vector<int64_t> tokens;
    CHECK(loop_.take(tokens, most) == expected);
    return tokens;
  }
  // The number of notices since the last call.
  int notices() { return std::exchange(notices_, 0); }
  DecodeLoop& loop() { return loop_; }

  LoopRequest request;
  DecodeLoop::Terms terms;

 private:
  static void notify(void* context) noexcept { ++static_cast<Consumer*>(context)->notices_; }

  ScriptedLoops& host_;
  std::vector<Tensor> inputs_;
  int notices_ = 0;
  bool begun_ = false;
  DecodeLoop loop_;
};

using Tokens = std::vector<int64_t>;

}  // namespace

TEST_CASE("decode loop: a prompt goes in steps of the largest size, and only the last one picks") {
  ScriptedLoops host;
  host.rule.most_tokens = 2;
  host.rule.count->from = 10;
  Consumer consumer(host);
  consumer.begin({4, 5, 6}, 2, false);
  REQUIRE(host.steps.size() == 1);
  CHECK(host.input(0) == Tokens{4, 5});
  CHECK(host.input(1) == Tokens{10});
  CHECK(host.input(2) == Tokens{0, 0});
  CHECK_FALSE(host.steps[0]->admitted);
  host.answer(99, numbers({1, 2}));
  REQUIRE(host.steps.size() == 1);
  CHECK(host.input(0) == Tokens{6});
  CHECK(host.input(1) == Tokens{12});
  CHECK(host.input(2) == Tokens{1, 2});
  CHECK(host.steps[0]->admitted);
  CHECK(host.counts().tokens == 0);
  host.answer(7, numbers({3, 4}));
  REQUIRE(host.steps.size() == 1);
  CHECK(host.input(0) == Tokens{7});
  CHECK(host.input(1) == Tokens{13});
  CHECK(host.input(2) == Tokens{3, 4});
  CHECK(consumer.notices() == 0);
  host.answer(8);
  CHECK(host.steps.empty());
  CHECK(consumer.notices() == 1);
  CHECK(consumer.take(Look::kOver) == Tokens{7, 8});
  CHECK(consumer.loop().end() == End::kLength);
  CHECK(consumer.loop().made() == 2);
  CHECK(host.counted == 3);
  CHECK(host.running() == 0);
  CHECK(consumer.loop().info_now().queue == 3ms);
  CHECK(consumer.loop().info_now().compute == 6ms);
}

TEST_CASE("decode loop: a model of whole prefixes gets all tokens in each step") {
  ScriptedLoops host;
  host.rule.prefix = true;
  host.rule.feeds.clear();
  Consumer consumer(host);
  consumer.begin({4, 5}, 3);
  CHECK(host.input(0) == Tokens{4, 5});
  host.answer(7);
  CHECK(host.input(0) == Tokens{4, 5, 7});
  CHECK(host.input(1) == Tokens{0});
  host.answer(8);
  CHECK(host.input(0) == Tokens{4, 5, 7, 8});
  host.answer(9);
  CHECK(consumer.take(Look::kOver) == Tokens{7, 8, 9});
}

TEST_CASE("decode loop: a consumer that waits is notified once, and one that does not is left alone") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 10);
  CHECK(consumer.notices() == 0);
  host.answer(1);
  CHECK(consumer.notices() == 1);
  host.answer(2);
  CHECK(consumer.notices() == 0);
  CHECK(consumer.take(Look::kTokens) == Tokens{1, 2});
  host.answer(3);
  CHECK(consumer.notices() == 0);  // it will look again by itself
  CHECK(consumer.take(Look::kTokens) == Tokens{3});
  CHECK(consumer.take(Look::kWait).empty());
  host.answer(4);
  CHECK(consumer.notices() == 1);
  host.answer(5);
  CHECK(consumer.notices() == 0);
  CHECK(consumer.take(Look::kTokens, 1) == Tokens{4});
  CHECK(consumer.take(Look::kTokens) == Tokens{5});
}

TEST_CASE("decode loop: it pauses while 64 tokens were not taken") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000);
  for (int64_t token = 0; token < 64; ++token) {
    REQUIRE(host.steps.size() == 1);
    host.answer(token);
  }
  CHECK(host.steps.empty());
  CHECK(host.running() == 1);
  CHECK(consumer.notices() == 1);
  CHECK(consumer.take(Look::kTokens, 3) == Tokens{0, 1, 2});
  REQUIRE(host.steps.size() == 1);
  CHECK(host.input(0) == Tokens{63});
  for (int64_t token = 64; token < 67; ++token) {
    REQUIRE(host.steps.size() == 1);
    host.answer(token);
  }
  CHECK(host.steps.empty());
  const Tokens rest = consumer.take(Look::kTokens);
  REQUIRE(rest.size() == 64);
  for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == static_cast<int64_t>(i) + 3);
  CHECK(host.steps.size() == 1);
}

TEST_CASE("decode loop: without streaming it never pauses") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 70, false);
  for (int64_t token = 0; token < 70; ++token) {
    REQUIRE(host.steps.size() == 1);
    CHECK(consumer.notices() == 0);
    host.answer(token);
  }
  CHECK(consumer.notices() == 1);
  CHECK(consumer.take(Look::kOver).size() == 70);
}

TEST_CASE("decode loop: cancelled while it pauses, it ends at once") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000);
  for (int64_t token = 0; token < 64; ++token) host.answer(token);
  consumer.take(Look::kTokens, 1);  // takes the notice
  host.answer(64);
  CHECK(consumer.notices() == 1);
  CHECK(host.steps.empty());
  CHECK(consumer.loop().cancel());
  CHECK(consumer.notices() == 0);
  CHECK(host.running() == 0);
  CHECK(consumer.loop().end() == End::kFailed);
}

TEST_CASE("decode loop: cancelled during a step, it ends after the step, with one notice") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000);
  host.answer(1);
  consumer.notices();
  consumer.take(Look::kTokens);
  CHECK_FALSE(consumer.loop().cancel());
  CHECK_FALSE(host.steps[0]->wanted());
  CHECK(consumer.notices() == 0);
  host.answer(2);
  CHECK(host.steps.empty());
  CHECK(consumer.notices() == 1);
  CHECK(consumer.loop().let_go());
  CHECK(host.running() == 0);
  CHECK(describe_failure(consumer.loop().problem()).code == ErrorCode::kCancelled);
}

TEST_CASE("decode loop: cancelled with a notice on its way, another one follows") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000);
  host.answer(1);
  CHECK(consumer.notices() == 1);  // the consumer has not looked yet
  CHECK_FALSE(consumer.loop().cancel());
  CHECK_FALSE(consumer.loop().let_go());  // for the first notice
  host.answer(2);
  CHECK(consumer.notices() == 1);
  CHECK(consumer.loop().let_go());
  CHECK(host.running() == 0);
}

TEST_CASE("decode loop: cancelled and ended with a notice on its way, no other one follows") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000);
  host.answer(1);
  CHECK(consumer.notices() == 1);
  CHECK_FALSE(consumer.loop().cancel());
  host.answer(2);
  CHECK(consumer.notices() == 0);
  CHECK(consumer.loop().let_go());  // for the first notice
}

TEST_CASE("decode loop: the deadline ends it between two steps, and limits the waiting of each") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.terms.deadline = StillTime::now() + 10s;
  consumer.terms.timeout = 6s;
  consumer.begin({4}, 1000, false);
  CHECK(host.steps[0]->timeout == 6s);
  StillTime::pass(7s);
  host.answer(1);
  REQUIRE(host.steps.size() == 1);
  CHECK(host.steps[0]->timeout == 3s);
  StillTime::pass(3s);
  host.answer(2);
  CHECK(host.steps.empty());
  CHECK(consumer.take(Look::kOver) == Tokens{1, 2});
  CHECK(consumer.loop().end() == End::kDeadline);
  CHECK_FALSE(consumer.loop().problem());
}

TEST_CASE("decode loop: a step that is late ends it by its deadline, or fails") {
  for (const bool after : {false, true}) {
    ScriptedLoops host;
    Consumer consumer(host);
    consumer.terms.deadline = StillTime::now() + 10s;
    consumer.begin({4}, 1000, false);
    host.answer(1);
    StillTime::pass(after ? 10s : 9s);
    host.fail(ErrorCode::kDeadlineExceeded);
    CHECK(consumer.notices() == 1);
    CHECK(consumer.take(Look::kOver) == Tokens{1});
    CHECK(consumer.loop().end() == (after ? End::kDeadline : End::kFailed));
  }
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.terms.deadline = StillTime::now() + 10s;
  consumer.begin({4}, 1000, false);
  StillTime::pass(10s);
  host.fail(ErrorCode::kModelFailed);
  CHECK(consumer.loop().end() == End::kFailed);
}

TEST_CASE("decode loop: a model that is unloaded ends it before its next step") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 1000, false);
  host.answer(1);
  host.ends = "the model was unloaded";
  host.answer(2);
  CHECK(host.steps.empty());
  CHECK(consumer.take(Look::kOver) == Tokens{1, 2});
  CHECK(consumer.loop().end() == End::kFailed);
  const Failure failure = describe_failure(consumer.loop().problem());
  CHECK(failure.code == ErrorCode::kUnavailable);
  CHECK(failure.message == "the loop of model 'm' ended: the model was unloaded");
}

TEST_CASE("decode loop: a refused beginning leaves nothing, and the object can begin again") {
  ScriptedLoops host;
  Consumer consumer(host);
  host.full = true;
  CHECK(error_from(ErrorCode::kQueueFull, [&] { consumer.begin({4}, 2); }) == "told to be full");
  host.full = false;
  host.bad_inputs = true;
  CHECK(error_from([&] { consumer.begin({4}, 2); }) == "told to refuse 3 inputs");
  host.bad_inputs = false;
  CHECK(host.running() == 0);
  CHECK(host.counts().begun == 0);
  consumer.begin({4}, 1);
  host.answer(9);
  CHECK(consumer.take(Look::kOver) == Tokens{9});
  CHECK(host.counts().begun == 1);
}

TEST_CASE("decode loop: a refused later step fails it") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 10, false);
  host.full = true;
  host.answer(1);
  CHECK(consumer.notices() == 1);
  CHECK(consumer.take(Look::kOver) == Tokens{1});
  CHECK(consumer.loop().end() == End::kFailed);
  CHECK(describe_failure(consumer.loop().problem()).code == ErrorCode::kQueueFull);
}

TEST_CASE("decode loop: stop tokens of the plan and of the request are not part of the answer") {
  for (const int64_t stop : {20, 30}) {
    ScriptedLoops host;
    host.rule.stop_tokens = {20};
    Consumer consumer(host);
    consumer.request.stop_tokens = {30};
    consumer.begin({20, 30}, 10, false);  // in a prompt they stop nothing
    host.answer(1);
    host.answer(1);
    host.answer(stop);
    CHECK(host.steps.empty());
    CHECK(consumer.take(Look::kOver) == Tokens{1});
    CHECK(consumer.loop().end() == End::kStop);
    CHECK(consumer.loop().made() == 1);
  }
}

TEST_CASE("decode loop: a state that is None fails it") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 10, false);
  host.answer(1, std::nullopt);
  CHECK(consumer.take(Look::kOver).empty());
  const Failure failure = describe_failure(consumer.loop().problem());
  CHECK(failure.code == ErrorCode::kModelFailed);
  CHECK(contains(failure.message, "which the next step needs, is None"));
}

TEST_CASE("decode loop: a state in the memory of an input is copied before the next step") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 10, false);
  host.answer(1, numbers({5, 6}));
  const Tensor same = host.steps[0]->inputs[2];
  const int64_t* const memory = same.data_as<int64_t>();
  host.answer(2, same);
  CHECK(host.input(2) == Tokens{5, 6});
  CHECK(host.steps[0]->inputs[2].data_as<int64_t>() != memory);
}

TEST_CASE("decode loop: times of tokens are counted from the beginning, and from token to token") {
  ScriptedLoops host;
  Consumer consumer(host);
  consumer.begin({4}, 3, false);
  StillTime::pass(5ms);
  host.answer(1);
  StillTime::pass(2ms);
  host.answer(2);
  StillTime::pass(1ms);
  host.answer(3);
  CHECK(host.counts().first.sum_ns() == 5'000'000);
  CHECK(host.counts().between.sum_ns() == 3'000'000);
  CHECK(host.counts().tokens == 3);
}

TEST_CASE("decode loop: each loop has a sequence of its own, which ends with it") {
  ScriptedModel model(1);
  TimerQueue clock{&StillTime::now};
  InlinePolicy inline_policy{0ns, false};
  const BatchPolicy policy = up_to(1);
  Sequences sequences("m", model, policy, 10s, clock, inline_policy, 1);
  ScriptedLoops host;
  host.sequences_of_model = &sequences;
  host.rule.sequence = true;
  host.rule.feeds.clear();
  const auto run = [&](int64_t token) {
    SequenceStep step;
    model.run_next([&](RunRequest& run) {
      step = run.step;
      run.outputs[0] = logits_of(token);
    });
    return step;
  };
  Consumer consumer(host), second(host);
  consumer.terms.set = "v2";
  consumer.begin({4}, 2, false);
  CHECK(sequences.counts().live == 1);
  CHECK(error_from(ErrorCode::kQueueFull, [&] { second.begin({4}, 2, false); }) == "model 'm': all slots are taken");
  CHECK(run(1).begins);
  CHECK_FALSE(run(2).begins);
  CHECK(consumer.take(Look::kOver) == Tokens{1, 2});
  CHECK(sequences.counts().live == 0);
  second.begin({4}, 1, false);
  CHECK(run(3).begins);
  CHECK(second.take(Look::kOver) == Tokens{3});
}

}  // namespace sconce::server::scheduling
