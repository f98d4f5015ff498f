#include "server/support/memory/model_budget.h"

#include <doctest/doctest.h>

#include "sconce/error.h"

namespace sconce::server {
namespace {

using Bytes = ModelBudget::Bytes;
using Names = std::vector<std::string>;
constexpr int kHost = ModelBudget::kHost;

ModelBudget::Candidate used_at(std::string name, int second) {
  return {std::move(name), std::chrono::steady_clock::time_point(std::chrono::seconds(second))};
}

}  // namespace

TEST_CASE("model budget: counts what versions take, on each device") {
  ModelBudget budget(0, 0);
  CHECK(!budget.limited());
  budget.loaded("a", 1, {{kHost, 10}, {0, 100}});
  budget.loaded("a", 2, {{kHost, 20}});
  budget.loaded("b", 1, {{1, 5}});
  CHECK(budget.used() == Bytes{{kHost, 30}, {0, 100}, {1, 5}});
  CHECK(budget.of("a") == Bytes{{kHost, 30}, {0, 100}});
  budget.loaded("a", 1, {{kHost, 7}});  // it was replaced
  CHECK(budget.used() == Bytes{{kHost, 27}, {0, 0}, {1, 5}});
  budget.unloaded("a", 1);
  budget.unloaded("a", 1);
  budget.unloaded("c", 1);
  CHECK(budget.of("a") == Bytes{{kHost, 20}});
  CHECK(budget.of("c").empty());
}

TEST_CASE("model budget: a reservation holds until the model is loaded or it is released") {
  ModelBudget budget(100, 0);
  CHECK(budget.limited());
  CHECK(budget.reserve("a", {{kHost, 60}, {0, 1'000}}));
  CHECK(budget.reserve("a", {{kHost, 60}}));  // once for all
  CHECK(!budget.reserve("b", {{kHost, 41}}));
  CHECK(budget.reserve("b", {{kHost, 40}}));
  budget.release("b");
  budget.release("b");
  budget.loaded("a", 1, {{kHost, 50}});
  CHECK(budget.used().at(kHost) == 50);
  CHECK(!budget.exceeded());
  budget.loaded("c", 1, {{kHost, 51}});
  CHECK(budget.exceeded());
}

TEST_CASE("model budget: what never fits is refused") {
  const ModelBudget budget(100, 50);
  budget.check("a", {{kHost, 100}, {0, 50}, {1, 50}});
  CHECK_THROWS_WITH_AS(budget.check("a", {{kHost, 101}}), "model 'a' takes 101 bytes, setting memory_budget is 100",
                       Error);
  CHECK_THROWS_WITH_AS(budget.check("a", {{1, 51}}),
                       "model 'a' takes 51 bytes, setting device_memory_budget (device 1) is 50", Error);
}

TEST_CASE("model budget: the least recently used go first, and no more than must") {
  ModelBudget budget(100, 0);
  for (const char* name : {"a", "b", "c"}) budget.loaded(name, 1, {{kHost, 30}});
  const auto candidates = [] { return std::vector{used_at("a", 2), used_at("b", 1), used_at("c", 3)}; };
  CHECK(budget.victims({{kHost, 10}}, candidates()).empty());
  CHECK(budget.victims({{kHost, 11}}, candidates()) == Names{"b"});
  CHECK(budget.victims({{kHost, 41}}, candidates()) == Names{"b", "a"});
  CHECK(budget.victims({{kHost, 100}}, candidates()) == Names{"b", "a", "c"});
  // Without `b` there is not enough, and then nobody goes in vain.
  CHECK(budget.victims({{kHost, 100}}, {used_at("a", 1), used_at("c", 2)}).empty());
}

TEST_CASE("model budget: models that give nothing of what is short stay") {
  ModelBudget budget(100, 100);
  budget.loaded("host", 1, {{kHost, 50}});
  budget.loaded("first", 1, {{kHost, 1}, {0, 100}});
  budget.loaded("second", 1, {{kHost, 1}, {1, 100}});
  const std::vector all{used_at("host", 1), used_at("first", 2), used_at("second", 3)};
  CHECK(budget.victims({{1, 60}}, all) == Names{"second"});
  CHECK(budget.victims({{kHost, 60}}, all) == Names{"host"});
  CHECK(budget.victims({{kHost, 60}, {0, 1}}, all) == Names{"host", "first"});
}

TEST_CASE("model budget: what is above the limits already is brought down") {
  ModelBudget budget(100, 0);
  for (const char* name : {"a", "b"}) budget.loaded(name, 1, {{kHost, 80}});
  CHECK(budget.victims({}, {used_at("a", 2), used_at("b", 1)}) == Names{"b"});
}

}  // namespace sconce::server
