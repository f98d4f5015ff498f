#include "server/scheduling/decoding/decode_batch.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/registry/package_model.h"
#include "server/scheduling/decoding/decode_loop.h"
#include "server/support/failure.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

// Models of make_row_packages.py: "running" makes a number from the one before and each token, "counted" counts
// positions itself and has no place for more than 48.
class RowModel {
 public:
  explicit RowModel(int sequences, const std::string& name = "running", int64_t steps = 1000000, int replicas = 1) {
    LoadOptions options;
    options.model_name = name;
    options.sequences = sequences;
    options.replicas = replicas;
    auto loaded = Model::load(Package::open(source_path("tests/server/packages/rows.pt2")), options);
    ModelSignature interface("m", 1, loaded->info().spec);
    ModelConfig config = ServerConfig().model("m");
    config.sequences = sequences;
    const std::string loop = R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "stop": {"steps": )" +
                             std::to_string(steps) + R"(}, "pick": {"temperature": 0}})";
    auto plan = std::make_shared<const LoopPlan>(plan_loop(read_loop(loop, "loop.json"), interface, true));
    CHECK(plan->rows == 4);
    model = std::make_unique<registry::PackageModel>(
        registry::LoadedModel{std::move(interface), std::move(loaded), nullptr, {}, nullptr, std::move(plan)}, config,
        std::make_shared<Statistics>(1), clock, 0ns);
  }
  uint64_t groups() { return model->sequences()->counts().live; }
  uint64_t groups_begun() { return model->sequences()->counts().begun; }
  uint64_t runs() { return model->statistics().totals().executions; }
  uint64_t steps() { return model->statistics().loops().steps; }
  int64_t running() { return model->statistics().loops().running; }

  TimerQueue clock;
  std::unique_ptr<registry::PackageModel> model;
};

std::vector<int64_t> expected(const std::vector<int64_t>& prompt, size_t count, int64_t add) {
  int64_t number = 5;
  const auto step = [&](int64_t token) { number = (number * 31 + token + add) % 1000003; };
  for (const int64_t token : prompt) step(token);
  std::vector<int64_t> tokens;
  while (tokens.size() < count) {
    tokens.push_back(number % 64);
    step(tokens.back());
  }
  return tokens;
}

// A loop and whoever takes its tokens.
class Talker {
 public:
  explicit Talker(RowModel& served) : served_(served), loop_(nullptr, &Talker::notify, this) {
    const bool brings = served.model->interface().inputs.size() > 1;
    inputs_.resize(brings ? 2 : 1);
    if (!brings) return;
    inputs_[1] = Tensor::empty(std::vector<int64_t>{1}, DType::kInt64);
    *inputs_[1].data_as<int64_t>() = 0;
  }
  ~Talker() { stop(); }

  void begin(std::vector<int64_t> prompt, int64_t most, int64_t add = 0, bool each = true,
             std::chrono::nanoseconds timeout = 0ns) {
    request_.prompt = std::move(prompt);
    request_.most_tokens = most;
    request_.pick = served_.model->loop()->pick;
    if (inputs_.size() > 1) *inputs_[1].data_as<int64_t>() = add;
    DecodeLoop::Terms terms;
    terms.inputs = inputs_;
    terms.timeout = timeout;
    terms.deadline = DecodeLoop::Clock::time_point::max();
    terms.each = each;
    loop_.begin(*served_.model->loop_host(), request_, terms);
    begun_ = fresh_ = true;
  }
  // Takes at most that many at once, and may rest in between.
  std::vector<int64_t> rest(size_t most = SIZE_MAX, std::chrono::microseconds pause = 0us) {
    std::vector<int64_t> tokens;
    if (fresh_) wait();
    for (;;) {
      switch (loop_.take(tokens, most)) {
        case DecodeLoop::Look::kOver:
          return tokens;
        case DecodeLoop::Look::kWait:
          wait();
          break;
        default:
          if (pause > 0us) std::this_thread::sleep_for(pause);
      }
    }
  }
  void wait() {
    std::unique_lock lock(mutex_);
    REQUIRE(told_.wait_for(lock, 30s, [this] { return notices_ > 0; }));
    CHECK(--notices_ == 0);
    fresh_ = false;
  }
  void stop() {
    if (std::exchange(begun_, false)) {
      if (!loop_.cancel()) do
          wait();
        while (!loop_.let_go());
      loop_.clear();
    }
  }
  DecodeLoop& loop() { return loop_; }

 private:
  static void notify(void* context) noexcept {
    auto& self = *static_cast<Talker*>(context);
    const std::lock_guard lock(self.mutex_);
    ++self.notices_;
    self.told_.notify_one();
  }

  RowModel& served_;
  std::vector<Tensor> inputs_;
  LoopRequest request_;
  std::mutex mutex_;
  std::condition_variable told_;
  int notices_ = 0;
  bool begun_ = false, fresh_ = false;  // fresh_: the first notice has not come
  DecodeLoop loop_;
};

ErrorCode code_of_loop(Talker& talker) { return describe_failure(talker.loop().problem()).code; }

}  // namespace

TEST_CASE("loop rows: every loop's tokens are those that it makes alone") {
  for (const int replicas : {1, 2}) {
    RowModel served(5, "running", 1000000, replicas);
    std::vector<std::thread> threads;
    std::vector<int> wrong(20);
    for (size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        Talker talker(served);
        for (size_t i = 0; i < 15; ++i) {
          const auto n = static_cast<int64_t>(t);
          const std::vector<int64_t> prompt(1 + (t + i) % 7, n);
          const size_t count = 1 + (t * 37 + i * 91) % 300;
          // Some take all at the end, some one by one, and some so slowly that their loops wait for them.
          talker.begin(prompt, static_cast<int64_t>(count), n * 3, t % 3 > 0);
          const bool slow = t % 5 == 0;
          if (talker.rest(t % 2 ? 1 : 40, slow ? 300us : 0us) != expected(prompt, count, n * 3)) ++wrong[t];
          talker.stop();
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(wrong.size()));
    CHECK(served.running() == 0);
    CHECK(served.groups() == 0);
    CHECK(served.runs() < served.steps());
  }
}

TEST_CASE("loop rows: a loop that waits for its client stays as it is while others step") {
  RowModel served(1);
  Talker slow(served), quick(served);
  slow.begin({7, 8}, 400);
  std::vector<int64_t> got;
  slow.wait();
  for (int i = 0; i < 8; ++i) {
    CHECK(slow.loop().take(got, 40) == DecodeLoop::Look::kTokens);
    quick.begin({i}, 500, i);
    CHECK(quick.rest() == expected({i}, 500, i));
    quick.stop();
    if (i == 0) CHECK(served.groups() == 1);
  }
  const std::vector<int64_t> more = slow.rest();
  got.insert(got.end(), more.begin(), more.end());
  CHECK(got == expected({7, 8}, 400, 0));
}

TEST_CASE("loop rows: as many loops as places have rows, and one run for all of a group") {
  RowModel served(2);
  std::vector<std::unique_ptr<Talker>> talkers;
  for (int64_t i = 0; i < 8; ++i) {
    talkers.push_back(std::make_unique<Talker>(served));
    talkers.back()->begin({i}, 100000, i);
  }
  CHECK(served.groups() == 2);
  Talker ninth(served);
  CHECK(error_from(ErrorCode::kQueueFull, [&] { ninth.begin({3}, 5); }).find("places for sequences") !=
        std::string::npos);
  CHECK(served.running() == 8);
  talkers.pop_back();
  ninth.begin({3}, 50);
  CHECK(ninth.rest() == expected({3}, 50, 0));
  CHECK(served.groups_begun() == 2);
  talkers.clear();
  CHECK(served.groups() == 0);
  CHECK(served.runs() * 2 < served.steps());
}

TEST_CASE("loop rows: a row without a loop does no more steps than a loop might") {
  RowModel served(1, "counted", 40);
  for (int i = 0; i < 10; ++i) {
    Talker one(served), two(served);
    one.begin({3, 4}, 40);
    two.begin({5}, 3 + i * 4);
    CHECK(two.rest().size() == static_cast<size_t>(3 + i * 4));
    CHECK(one.rest().size() == 40);
    CHECK(one.loop().end() == DecodeLoop::End::kLength);
  }
}

TEST_CASE("loop rows: a run that fails ends the loops in it, and no others") {
  RowModel served(2, "counted", 40);
  Talker good(served), bad(served), later(served);
  std::vector<std::unique_ptr<Talker>> full;
  for (int i = 0; i < 3; ++i) {
    full.push_back(std::make_unique<Talker>(served));
    full.back()->begin({3}, 40, 0, false);
  }
  bad.begin({3, 4, 100, 5}, 40, 0, false);  // there is no token 100
  good.begin({3, 4}, 40, 0, false);         // perhaps in another group
  bad.rest();
  CHECK(bad.loop().end() == DecodeLoop::End::kFailed);
  CHECK(code_of_loop(bad) == ErrorCode::kModelFailed);
  for (const auto& one : full) {
    const size_t made = one->rest().size();
    CHECK((one->loop().end() == DecodeLoop::End::kFailed || made == 40));
  }
  good.rest();
  later.begin({3, 4}, 40);
  CHECK(later.rest().size() == 40);
  CHECK(later.loop().end() == DecodeLoop::End::kLength);
  for (Talker* one : {&good, &bad, &later}) one->stop();
  full.clear();
  CHECK(served.groups() == 0);
  CHECK(served.running() == 0);
}

TEST_CASE("loop rows: a step that waits too long ends its loop, and the others go on") {
  RowModel served(1);
  Talker other(served);
  other.begin({3}, 20000, 0, false);
  for (int i = 0; i < 50; ++i) {
    Talker late(served);
    late.begin({3}, 5, 0, true, 1ns);
    late.rest();
    CHECK(late.loop().end() == DecodeLoop::End::kFailed);
    CHECK(code_of_loop(late) == ErrorCode::kDeadlineExceeded);
  }
  CHECK(other.rest() == expected({3}, 20000, 0));
}

TEST_CASE("loop rows: cancelled at any time") {
  RowModel served(3);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 12; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 60; ++i) {
        Talker talker(served);  // its end cancels, and waits for the loop
        // A group that ends keeps its slot for a moment, so that twelve loops may find fewer than twelve rows.
        if (const std::exception_ptr full = exception_of([&] { talker.begin({static_cast<int64_t>(t)}, 1000000); })) {
          CHECK(describe_failure(full).code == ErrorCode::kQueueFull);
          continue;
        }
        std::vector<int64_t> tokens;
        if (i % 4 > 0) {
          talker.wait();
          talker.loop().take(tokens, i % 4 > 1 ? i : 1);
        }
        if (i % 4 > 2) std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(served.running() == 0);
  CHECK(served.groups() == 0);
  Talker after(served);
  after.begin({1}, 100);
  CHECK(after.rest() == expected({1}, 100, 0));
}

TEST_CASE("loop rows: a model that is unloaded") {
  RowModel served(1);
  Talker one(served), two(served);
  one.begin({3}, 1000000, 0, false);
  two.begin({3}, 1000000, 0, false);
  served.model->end_loops("the model was unloaded");
  one.rest();
  two.rest();
  CHECK(code_of_loop(one) == ErrorCode::kUnavailable);
  CHECK(code_of_loop(two) == ErrorCode::kUnavailable);
  CHECK(served.groups() == 0);
}

TEST_CASE("loop rows: inputs of a request must be one row") {
  RowModel served(1);
  Talker talker(served);
  talker.begin({3}, 3);
  talker.rest();
  const Tensor two = Tensor::empty(std::vector<int64_t>{2}, DType::kInt64);
  const std::vector<Tensor> inputs{Tensor(), two};
  LoopRequest request;
  request.prompt = {3};
  request.most_tokens = 2;
  DecodeLoop loop(
      nullptr, [](void*) noexcept {}, nullptr);
  DecodeLoop::Terms terms;
  terms.inputs = inputs;
  terms.deadline = DecodeLoop::Clock::time_point::max();
  CHECK(error_from(ErrorCode::kInvalidArgument, [&] {
          loop.begin(*served.model->loop_host(), request, terms);
        }).find("must be one row") != std::string::npos);
}

}  // namespace sconce::server::scheduling
