#include "server/registry/remote/credentials/credential_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sconce/check.h"
#include "sconce/error.h"

namespace sconce::server::registry {
namespace {

using Time = CredentialCache::Time;

struct State {
  std::atomic<int> fetches{0}, at_once{0}, most_at_once{0};
  Time now{};
  std::chrono::system_clock::duration lifetime = std::chrono::hours(1);
  bool fails = false, none = false;
};

class Counting final : public CredentialProvider {
 public:
  explicit Counting(State& state) : state_(state) {}
  std::string name() const override { return "the test"; }
  std::optional<IssuedCredentials> fetch() override {
    state_.most_at_once = std::max(state_.most_at_once.load(), ++state_.at_once);
    std::this_thread::yield();
    --state_.at_once;
    const int number = ++state_.fetches;
    SCONCE_CHECK(!state_.fails, kForbidden, "it is refused");
    if (state_.none) return std::nullopt;
    return IssuedCredentials{"K" + std::to_string(number), "S", "", state_.now + state_.lifetime};
  }

 private:
  State& state_;
};

CredentialCache cache_of(State& state) {
  return CredentialCache(std::make_unique<Counting>(state), [&state] { return state.now; });
}

TEST_CASE("credentials are fetched again before they expire, and not sooner") {
  State state;
  CredentialCache cache = cache_of(state);
  CHECK(cache.get()->credentials.key == "K1");
  state.now += std::chrono::minutes(54);
  CHECK(cache.get()->credentials.key == "K1");
  state.now += std::chrono::minutes(2);
  CHECK(cache.get()->credentials.key == "K2");
  CHECK(state.fetches == 2);
}

TEST_CASE("a refresh that fails leaves the earlier credentials until they expire") {
  State state;
  CredentialCache cache = cache_of(state);
  cache.get();
  state.fails = true;
  state.now += std::chrono::minutes(56);
  CHECK(cache.get()->credentials.key == "K1");
  CHECK(cache.get()->credentials.key == "K1");
  CHECK(state.fetches == 2);
  state.now += std::chrono::minutes(5);
  std::string said;
  try {
    cache.get();
  } catch (const Error& error) {
    said = error.what();
    CHECK(error.code() == ErrorCode::kForbidden);
  }
  CHECK(said == "no credentials from the test: it is refused");
  state.fails = false;
  CHECK(cache.get()->credentials.key == "K4");
}

TEST_CASE("a provider that has none for a moment leaves the earlier credentials until they expire") {
  State state;
  CredentialCache cache = cache_of(state);
  cache.get();
  state.none = true;
  state.now += std::chrono::minutes(56);
  REQUIRE(cache.get());
  CHECK(cache.get()->credentials.key == "K1");
  CHECK(state.fetches == 2);
  state.now += std::chrono::seconds(11);  // it is asked again soon
  CHECK(cache.get()->credentials.key == "K1");
  CHECK(state.fetches == 3);
  state.now += std::chrono::minutes(5);
  CHECK_FALSE(cache.get());
}

TEST_CASE("credentials that a store calls expired are fetched once for all who used them") {
  State state;
  CredentialCache cache = cache_of(state);
  const uint64_t number = cache.get()->number;
  CHECK(cache.renew(number));
  CHECK(cache.renew(number));
  CHECK(state.fetches == 2);
  CHECK(cache.get()->credentials.key == "K2");
}

TEST_CASE("that there are none is remembered for a minute") {
  State state;
  state.none = true;
  CredentialCache cache = cache_of(state);
  CHECK_FALSE(cache.get());
  CHECK_FALSE(cache.get());
  CHECK(state.fetches == 1);
  CHECK(cache.describe() == "no credentials were found: the test");
  state.now += std::chrono::minutes(2);
  state.none = false;
  CHECK(cache.get()->credentials.key == "K2");
}

TEST_CASE("one thread fetches at a time") {
  State state;
  CredentialCache cache = cache_of(state);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) cache.get();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(state.fetches == 1);
  CHECK(state.most_at_once == 1);
}

}  // namespace
}  // namespace sconce::server::registry
