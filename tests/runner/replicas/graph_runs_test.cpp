#include "src/runner/replicas/graph_runs.h"

#include <doctest/doctest.h>

using namespace sconce;
using namespace sconce::runner;

namespace {

struct CountedGraph final : DeviceGraph {
  explicit CountedGraph(int& alive) : alive_(alive) { ++alive_; }
  ~CountedGraph() override { --alive_; }
  void launch(std::span<const DeviceCopy>, std::span<const DeviceCopy>) override {}
  int& alive_;
};

Tensor rows(int64_t count, DType dtype = DType::kFloat32) {
  const int64_t sizes[] = {count, 2};
  return Tensor::empty(sizes, dtype);
}

}  // namespace

TEST_CASE("graph runs: a shape is recorded once it has been run a few times") {
  const auto report = std::make_shared<GraphReport>();
  int alive = 0;
  {
    GraphRuns runs(2, report);
    const Tensor input = rows(3), same = rows(3), other = rows(4), wide = rows(3, DType::kFloat64);
    GraphRuns::Shape* shape = nullptr;
    for (int i = 1; i <= GraphRuns::kRunsBefore + 1; ++i) {
      shape = runs.find({i % 2 ? &input : &same, 1});
      REQUIRE(shape);
      CHECK(runs.wants_graph(*shape) == (i > GraphRuns::kRunsBefore));
    }
    CHECK(runs.find({&other, 1}) != shape);
    CHECK(runs.find({&wide, 1}) != shape);
    CHECK(runs.find({}) != shape);
    const int64_t sizes[] = {3, 2}, turned[] = {1, 3};
    const Tensor transposed = Tensor::empty_strided(sizes, turned, DType::kFloat32);
    CHECK(runs.find({&transposed, 1}) != shape);
    runs.make_room(*shape);
    runs.keep(*shape, std::make_unique<CountedGraph>(alive));
    CHECK(report->count() == 1);
    CHECK(runs.find({&same, 1}) == shape);
    CHECK_FALSE(runs.wants_graph(*shape));
  }
  CHECK(alive == 0);
  CHECK(report->count() == 0);
}

TEST_CASE("graph runs: the graph used longest ago makes room, and shapes that came once do not push others out") {
  const auto report = std::make_shared<GraphReport>();
  int alive = 0;
  GraphRuns runs(2, report);
  const auto record = [&](int64_t count) {
    const Tensor input = rows(count);
    GraphRuns::Shape* shape = nullptr;
    do shape = runs.find({&input, 1});
    while (!shape->graph && !runs.wants_graph(*shape));
    if (!shape->graph) {
      runs.make_room(*shape);
      runs.keep(*shape, std::make_unique<CountedGraph>(alive));
    }
  };
  const auto has_graph = [&](int64_t count) {
    const Tensor input = rows(count);
    return runs.find({&input, 1})->graph != nullptr;
  };
  record(1);
  record(2);
  record(1);
  record(3);
  CHECK(alive == 2);
  CHECK(report->count() == 2);
  CHECK(has_graph(1));
  CHECK(has_graph(3));
  CHECK_FALSE(has_graph(2));
  for (int64_t count = 10; count < 200; ++count) CHECK_FALSE(has_graph(count));
  CHECK(has_graph(1));
  CHECK(has_graph(3));
}

TEST_CASE("graph runs: a recording that failed for what may pass is tried again, ever later, and not for ever") {
  const auto report = std::make_shared<GraphReport>();
  const Tensor input = rows(1), other = rows(2);
  const auto runs_until_wanted = [](GraphRuns& runs, const Tensor& of) {
    for (int count = 1; count < 10'000; ++count) {
      GraphRuns::Shape* const shape = runs.find({&of, 1});
      REQUIRE(shape);
      if (runs.wants_graph(*shape)) return count;
    }
    return 0;
  };
  int alive = 0;
  {
    GraphRuns runs(2, report);
    const int first = runs_until_wanted(runs, input);
    CHECK(first == GraphRuns::kRunsBefore + 1);
    runs.postpone(*runs.find({&input, 1}), "out of memory");
    CHECK(report->why_none() == "out of memory");
    CHECK(report->recordable());
    const int second = runs_until_wanted(runs, input);
    CHECK(second > first);
    runs.keep(*runs.find({&input, 1}), std::make_unique<CountedGraph>(alive));
    CHECK(report->why_none().empty());
    CHECK(runs.find({&input, 1})->graph);
    // Recording the other shape fails every time.
    for (int i = 0; i < GraphRuns::kTries; ++i) {
      REQUIRE(runs_until_wanted(runs, other) > 0);
      runs.postpone(*runs.find({&other, 1}), "out of memory");
    }
    CHECK(runs_until_wanted(runs, other) == 0);
    CHECK(runs.find({&input, 1})->graph);
    CHECK(report->why_none() == "out of memory");
  }
  // New weights begin anew.
  CHECK(report->recordable());
}

TEST_CASE("graph runs: what cannot be recorded is not tried again, and says why") {
  const auto report = std::make_shared<GraphReport>();
  GraphRuns runs(2, report);
  const Tensor input = rows(1);
  REQUIRE(runs.find({&input, 1}));
  CHECK(report->why_none().empty());
  runs.refuse("it draws random numbers");
  CHECK(runs.find({&input, 1}) == nullptr);
  CHECK(report->why_none() == "it draws random numbers");
  CHECK_FALSE(report->recordable());
}
