#include "server/weights/validation/answer_tap.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/errors.h"

namespace sconce::server::weights {
namespace {

class Count final : public AnswerWatcher {
 public:
  void saw(const SeenAnswer& answer) noexcept override { runs += static_cast<int>(answer.info.weight_version); }
  std::atomic<int> runs{0};
};

void show(const AnswerTap& tap) {
  RunInfo info;
  info.weight_version = 1;
  tap.show({{}, {}, info, {}});
}

}  // namespace

TEST_CASE("answer tap: each watcher sees each answer until it is removed") {
  AnswerTap tap;
  CHECK(!tap.watched());
  show(tap);
  const auto first = std::make_shared<Count>(), second = std::make_shared<Count>();
  tap.add(first);
  CHECK(tap.watched());
  show(tap);
  tap.add(second);
  show(tap);
  tap.remove(*first);
  CHECK(tap.watched());
  show(tap);
  tap.remove(*first);  // nothing
  tap.remove(*second);
  CHECK(!tap.watched());
  show(tap);
  CHECK(first->runs == 2);
  CHECK(second->runs == 2);
  CHECK(first.use_count() == 1);
}

TEST_CASE("answer tap: one watcher too many is refused") {
  AnswerTap tap;
  for (int i = 0; i < 4; ++i) tap.add(std::make_shared<Count>());
  CHECK(code_of([&] { tap.add(std::make_shared<Count>()); }) == ErrorCode::kBusy);
}

TEST_CASE("answer tap: watchers come and go while threads show answers") {
  AnswerTap tap;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stop) show(tap);
    });
  for (int i = 0; i < 200; ++i) {
    const auto watcher = std::make_shared<Count>();
    tap.add(watcher);
    while (watcher->runs == 0) std::this_thread::yield();
    tap.remove(*watcher);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(!tap.watched());
}

}  // namespace sconce::server::weights
