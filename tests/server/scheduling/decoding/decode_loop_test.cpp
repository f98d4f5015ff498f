#include "server/scheduling/decoding/decode_loop.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "server/registry/package_model.h"
#include "server/support/failure.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/runner/counted_memory.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

// "explicit" of make_loop_packages.py: a token, its position and a cache to logits and the cache. The position is given
// by the request, so that no loop runs out of positions.
const std::string kLoop = R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "feed": {"OUTPUT__1": "INPUT__2"},
  "stop": {"steps": 1000000}, "pick": {"temperature": 0}})";

struct Served {
  explicit Served(int64_t queue = 100) {
    LoadOptions options;
    options.model_name = "explicit";
    auto loaded = Model::load(Package::open(source_path("tests/server/packages/loops.pt2")), std::move(options));
    ModelSignature interface("m", 1, loaded->info().spec);
    ModelConfig config = ServerConfig().model("m");
    config.queue = queue;
    auto plan = std::make_shared<const LoopPlan>(plan_loop(read_loop(kLoop, "loop.json"), interface, false));
    model = std::make_unique<registry::PackageModel>(
        registry::LoadedModel{std::move(interface), std::move(loaded), nullptr, {}, nullptr, std::move(plan)}, config,
        std::make_shared<Statistics>(1), clock, 0ns);
  }
  TimerQueue clock;
  std::unique_ptr<registry::PackageModel> model;
};

// Counts notices, and whether two were under way at the same time.
class Consumer {
 public:
  explicit Consumer(Served& served) : served_(served), loop_(nullptr, &Consumer::notify, this) {
    position_ = Tensor::empty(std::vector<int64_t>{1, 1}, DType::kInt64);
    *position_.data_as<int64_t>() = 5;
    inputs_ = {Tensor(), position_, Tensor()};
  }
  ~Consumer() {
    if (begun_ && !loop_.cancel()) do
        wait();
      while (!loop_.let_go());
    loop_.clear();
  }

  void begin(int64_t most, bool each = true,
             DecodeLoop::Clock::time_point deadline = DecodeLoop::Clock::time_point::max()) {
    request_.prompt = {3, 4, 5};
    request_.most_tokens = most;
    request_.pick = served_.model->loop()->pick;
    DecodeLoop::Terms terms;
    terms.inputs = inputs_;
    terms.deadline = deadline;
    terms.each = each;
    loop_.begin(*served_.model->loop_host(), request_, terms);
    begun_ = true;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    REQUIRE(told_.wait_for(lock, 20s, [this] { return notices_ > 0; }));
    CHECK(--notices_ == 0);
  }
  // All tokens up to the end.
  std::vector<int64_t> rest(size_t most = SIZE_MAX) {
    std::vector<int64_t> tokens;
    for (;;) {
      switch (loop_.take(tokens, most)) {
        case DecodeLoop::Look::kOver:
          return tokens;
        case DecodeLoop::Look::kWait:
          wait();
          break;
        default:
          break;
      }
    }
  }
  bool noticed() {
    const std::lock_guard lock(mutex_);
    return notices_ > 0;
  }
  uint64_t made() { return served_.model->statistics().loops().tokens.load(); }
  DecodeLoop& loop() { return loop_; }

 private:
  static void notify(void* context) noexcept {
    auto& self = *static_cast<Consumer*>(context);
    const std::lock_guard lock(self.mutex_);
    ++self.notices_;
    self.told_.notify_one();
  }

  Served& served_;
  Tensor position_;
  std::vector<Tensor> inputs_;
  LoopRequest request_;
  std::mutex mutex_;
  std::condition_variable told_;
  int notices_ = 0;
  bool begun_ = false;
  DecodeLoop loop_;
};

int64_t running(Served& served) { return served.model->statistics().loops().running.load(); }

// Until the loop waits for room.
void until_paused(Consumer& consumer) {
  for (uint64_t before = 0; before != consumer.made() || before == 0; std::this_thread::sleep_for(50ms))
    before = consumer.made();
}

}  // namespace

TEST_CASE("token loop: tokens come as they are made, or at the end") {
  Served served;
  std::vector<int64_t> expected;
  for (const bool each : {false, true, true}) {
    Consumer consumer(served);
    consumer.begin(500, each);
    consumer.wait();
    const std::vector<int64_t> tokens = consumer.rest(expected.empty() ? SIZE_MAX : 7);
    CHECK(tokens.size() == 500);
    if (expected.empty()) expected = tokens;
    CHECK(tokens == expected);
    CHECK(consumer.loop().end() == DecodeLoop::End::kLength);
    CHECK(consumer.loop().made() == 500);
    CHECK_FALSE(consumer.noticed());
  }
  CHECK(running(served) == 0);
  CHECK(served.model->statistics().loops().begun == 3);
  CHECK(served.model->statistics().loops().steps == 3 * 502);
}

TEST_CASE("token loop: it waits for whoever takes its tokens") {
  Served served;
  Consumer consumer(served);
  consumer.begin(1000);
  consumer.wait();
  until_paused(consumer);
  CHECK(consumer.made() == 64);
  std::vector<int64_t> tokens;
  CHECK(consumer.loop().take(tokens, 10) == DecodeLoop::Look::kTokens);
  CHECK(tokens.size() == 10);
  until_paused(consumer);
  CHECK(consumer.made() == 74);
  CHECK_FALSE(consumer.noticed());
  CHECK(running(served) == 1);
  CHECK(consumer.rest().size() == 990);
}

TEST_CASE("token loop: cancelled while it waits for room, it is over at once") {
  Served served;
  Consumer consumer(served);
  consumer.begin(1000);
  consumer.wait();
  std::vector<int64_t> tokens;
  CHECK(consumer.loop().take(tokens, 1) == DecodeLoop::Look::kTokens);
  until_paused(consumer);
  CHECK(consumer.loop().cancel());
  CHECK(running(served) == 0);
  CHECK_FALSE(consumer.noticed());
}

TEST_CASE("token loop: cancelled at any time, it ends, with at most one notice under way") {
  Served served;
  for (int i = 0; i < 200; ++i) {
    Consumer consumer(served);  // its end cancels, and waits for the loop
    consumer.begin(1000000);
    std::vector<int64_t> tokens;
    if (i % 4 > 0) {
      consumer.wait();
      consumer.loop().take(tokens, i % 4 > 1 ? static_cast<size_t>(i) : 1);
    }
    if (i % 4 > 2) std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
  }
  CHECK(running(served) == 0);
}

TEST_CASE("token loop: a deadline, and a model that is unloaded") {
  Served served;
  {
    Consumer consumer(served);
    consumer.begin(1000000, true, DecodeLoop::Clock::now() + 100ms);
    consumer.wait();
    CHECK(consumer.rest().size() > 10);
    CHECK(consumer.loop().end() == DecodeLoop::End::kDeadline);
  }
  Consumer consumer(served);
  consumer.begin(1000000, false);
  served.model->end_loops("the model was unloaded");
  consumer.wait();
  consumer.rest();
  CHECK(consumer.loop().end() == DecodeLoop::End::kFailed);
  const Failure failure = describe_failure(consumer.loop().problem());
  CHECK(failure.code == ErrorCode::kUnavailable);
  CHECK(failure.message.find("was unloaded") != std::string::npos);
}

TEST_CASE("token loop: tokens without memory for them stay, and their notice is no longer pending") {
  Served served;
  std::vector<int64_t> tokens;
  const auto take_without_memory = [&](Consumer& consumer) {
    const test::NoMemory none;
    return exception_of([&] { consumer.loop().take(tokens, 64); }) != nullptr;
  };
  SUBCASE("of a loop that has ended") {
    Consumer consumer(served);
    consumer.begin(500, false);
    consumer.wait();
    CHECK(take_without_memory(consumer));
    SUBCASE("taken later") { CHECK(consumer.rest().size() == 500); }
    SUBCASE("not taken") { CHECK(consumer.loop().cancel()); }
  }
  SUBCASE("of a loop that waits for room") {
    Consumer consumer(served);
    consumer.begin(1000);
    consumer.wait();
    until_paused(consumer);
    CHECK(take_without_memory(consumer));
    SUBCASE("taken later") { CHECK(consumer.rest().size() == 1000); }
    SUBCASE("not taken") { CHECK(consumer.loop().cancel()); }
  }
  SUBCASE("of a loop whose model runs") {
    Consumer consumer(served);
    consumer.begin(1000000);
    consumer.wait();
    CHECK(take_without_memory(consumer));  // its end cancels, and waits for the loop
  }
  CHECK(tokens.empty());
  CHECK(running(served) == 0);
}

TEST_CASE("token loop: a refused beginning leaves nothing") {
  Served full(0);
  full.model->set_replicas(0);
  Consumer refused(full);
  CHECK(error_from(ErrorCode::kQueueFull, [&] { refused.begin(5); }).find("maximum queue size") != std::string::npos);
  CHECK(running(full) == 0);
  full.model->set_replicas(1);
  refused.begin(5);
  refused.wait();
  CHECK(refused.rest().size() == 5);
}

}  // namespace sconce::server::scheduling
