#include "server/rollout/work/model_claims.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tests/errors.h"
#include "tests/server/one_model_rollout.h"

namespace sconce::server::rollout {
namespace {

using By = ModelClaims::By;

struct ClaimedModel : test::OneModelRollout {
  ClaimedModel() : OneModelRollout("fake_model") {}
  std::string claim(By by) {
    return error_from(ErrorCode::kBusy, [&] { const ModelClaims::Claim claim(claims, *served, "new", {}, by); });
  }
  const std::shared_ptr<registry::ServedModel> served = repository->snapshot()->ready("fake", "");
  ModelClaims claims;
};

// Whether the thread of this process sleeps, as while it waits for something.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(") S ") != std::string::npos;
}

}  // namespace

TEST_CASE("model claims: a request waits for the server's own work") {
  ClaimedModel model;
  std::atomic<pid_t> request{0};
  std::atomic<bool> over{false};
  std::string answer;
  std::optional<ModelClaims::Claim> own;
  own.emplace(model.claims, *model.served, "its push has expired", std::chrono::milliseconds(), By::kServer);
  std::thread thread([&] {
    request = gettid();
    answer = model.claim(By::kRequest);
    over = true;
  });
  while (!over && (request == 0 || !is_asleep(request))) std::this_thread::yield();
  CHECK_FALSE(over);
  own.reset();
  thread.join();
  CHECK(answer == "no error");
  CHECK_FALSE(model.claims.claimed(*model.served));
}

TEST_CASE("model claims: nobody else waits") {
  ClaimedModel model;
  for (const By first : {By::kRequest, By::kServer}) {
    const ModelClaims::Claim held(model.claims, *model.served, "held", {}, first);
    CHECK(model.claim(By::kServer) == "the model is busy: held");
    if (first == By::kRequest) CHECK(model.claim(By::kRequest) == "the model is busy: held");
  }
}

}  // namespace sconce::server::rollout
