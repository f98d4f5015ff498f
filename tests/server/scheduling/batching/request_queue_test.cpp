#include "server/scheduling/batching/request_queue.h"

#include <deque>

#include "doctest/doctest.h"
#include "tests/server/queued_requests.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

using Clock = RequestQueue::Clock;
const Clock::time_point kStart = Clock::time_point(1h);

struct Fixture {
  explicit Fixture(BatchPolicy p) : policy(std::move(p)), queue(policy) { run.reserve(64); }

  TestRequest& add(int64_t rows = 1, Clock::duration after = 0s, uint64_t priority = 0, Clock::duration timeout = 0s,
                   int64_t width = 2) {
    TestRequest& request = requests.emplace_back(static_cast<float>(requests.size()), rows, width);
    request.priority = priority;
    request.timeout = timeout;
    queue.classify(request, kStart + after);
    queue.add(request);
    return request;
  }
  // Numbers of the requests of the next run.
  std::vector<float> take(size_t share = 1000) {
    queue.take(share, run);
    std::vector<float> numbers;
    for (QueuedRequest* request : run) numbers.push_back(static_cast<TestRequest*>(request)->number());
    return numbers;
  }
  std::vector<float> late(Clock::duration at) {
    std::vector<float> numbers;
    for (QueuedRequest* r = queue.take_late(kStart + at); r; r = RequestQueue::next(*r))
      numbers.push_back(static_cast<TestRequest*>(r)->number());
    return numbers;
  }

  BatchPolicy policy;
  RequestQueue queue;
  std::deque<TestRequest> requests;
  std::vector<QueuedRequest*> run;
};

using Numbers = std::vector<float>;

}  // namespace

TEST_CASE("request queue: requests run in their order, up to the limit of rows") {
  Fixture f(up_to(4));
  for (int i = 0; i < 6; ++i) f.add();
  CHECK(f.take() == Numbers{0, 1, 2, 3});
  CHECK(f.take() == Numbers{4, 5});
  CHECK(f.queue.empty());
  CHECK(f.take().empty());
}

TEST_CASE("request queue: rows count, and a smaller request may pass one that does not fit") {
  Fixture f(up_to(8));
  f.add(5);
  f.add(4);
  f.add(2);
  f.add(1);
  CHECK(f.take() == Numbers{0, 2, 3});
  CHECK(f.take() == Numbers{1});
}

TEST_CASE("request queue: without batches each request runs by itself") {
  Fixture f(up_to(1));
  f.add();
  f.add();
  CHECK(f.take() == Numbers{0});
  CHECK(f.take() == Numbers{1});
}

TEST_CASE("request queue: shapes that differ beyond the rows do not share a run") {
  Fixture f(up_to(8));
  f.add(1, 0s, 0, 0s, 2);
  f.add(1, 0s, 0, 0s, 3);
  f.add(2, 0s, 0, 0s, 2);
  f.add(1, 0s, 0, 0s, 3);
  CHECK(f.take() == Numbers{0, 2});
  CHECK(f.take() == Numbers{1, 3});
}

TEST_CASE("request queue: dtypes that differ do not share a run") {
  Fixture f(up_to(8));
  TestRequest& other = f.add();
  f.add();
  f.add();
  const int64_t sizes[] = {1, 2};
  const std::vector<Tensor> doubles{Tensor::empty(sizes, DType::kFloat64)};
  other.inputs = doubles;
  CHECK(f.take() == Numbers{0});
  CHECK(f.take() == Numbers{1, 2});
}

TEST_CASE("request queue: no rows, rows with gaps and rows of transposed tensors run alone") {
  BatchPolicy policy = up_to(8);
  RequestQueue queue(policy);
  const auto takes_part = [&](const Tensor& tensor, int64_t rows) {
    TestRequest special(0), plain(1);
    const std::vector<Tensor> inputs{tensor};
    special.inputs = inputs;
    plain.inputs = inputs;
    special.rows = plain.rows = rows;
    queue.classify(special, kStart);
    queue.classify(plain, kStart);
    queue.add(special);
    queue.add(plain);
    std::vector<QueuedRequest*> run;
    run.reserve(8);
    queue.take(8, run);
    const bool both = run.size() == 2;
    if (!both) queue.take(8, run);
    CHECK(queue.empty());
    return both;
  };
  const int64_t two_rows[] = {2, 3}, none[] = {0, 3}, gaps[] = {4, 1}, columns[] = {1, 2}, blocks[] = {3, 1};
  const Tensor storage = Tensor::empty(std::array<int64_t, 1>{64}, DType::kFloat32);
  CHECK(takes_part(storage.as_strided(two_rows, blocks, 0), 2));
  CHECK_FALSE(takes_part(storage.as_strided(two_rows, gaps, 0), 2));
  CHECK_FALSE(takes_part(storage.as_strided(two_rows, columns, 0), 2));
  CHECK_FALSE(takes_part(storage.as_strided(none, blocks, 0), 0));
  CHECK_FALSE(takes_part(storage.as_strided(two_rows, blocks, 0), 3));  // rows that are not the first dimension
}

TEST_CASE("request queue: rows of channels-last images are blocks") {
  Fixture f(up_to(8));
  const int64_t sizes[] = {2, 3, 4, 5}, strides[] = {60, 1, 15, 3}, plain[] = {60, 20, 5, 1};
  const std::vector<Tensor> last{Tensor::empty_strided(sizes, strides, DType::kFloat32)};
  const std::vector<Tensor> first{Tensor::empty_strided(sizes, plain, DType::kFloat32)};
  std::deque<TestRequest> requests;
  for (const auto* inputs : {&last, &first, &last}) {
    TestRequest& request = requests.emplace_back(static_cast<float>(requests.size()), 2);
    request.inputs = *inputs;
    f.queue.classify(request, kStart);
    f.queue.add(request);
  }
  CHECK(f.take() == Numbers{0, 2});
  CHECK(f.take() == Numbers{1});
}

TEST_CASE("request queue: urgent requests come first, and unknown priorities are the default") {
  BatchPolicy policy = up_to(2);
  policy.priority_levels = 3;
  policy.default_priority = 2;
  Fixture f(policy);
  f.add(1, 0s, 3);
  f.add(1, 0s, 0);
  f.add(1, 0s, 7);
  f.add(1, 0s, 1);
  CHECK(f.take() == Numbers{3, 1});
  CHECK(f.take() == Numbers{2, 0});
  Fixture ignored(up_to(1));
  ignored.add(1, 0s, 9);
  ignored.add(1, 0s, 1);
  CHECK(ignored.take() == Numbers{0});
}

TEST_CASE("request queue: a share leaves the rest to others") {
  Fixture f(up_to(8));
  for (int i = 0; i < 5; ++i) f.add();
  CHECK(f.take(3) == Numbers{0, 1, 2});
  CHECK(f.take(0) == Numbers{3});
}

TEST_CASE("request queue: a request that leaves is in no run") {
  Fixture f(up_to(8));
  for (int i = 0; i < 4; ++i) f.add();
  f.queue.remove(f.requests[0]);
  f.queue.remove(f.requests[3]);
  CHECK(f.queue.size() == 2);
  CHECK(f.take() == Numbers{1, 2});
}

TEST_CASE("request queue: what comes back is first of its level, in halves that join nobody else") {
  Fixture f(up_to(8));
  for (int i = 0; i < 6; ++i) f.add();
  f.queue.take(5, f.run);
  f.queue.add_halves(f.run);
  CHECK(f.take() == Numbers{0, 1});
  CHECK(f.take() == Numbers{2, 3, 4});
  CHECK(f.take() == Numbers{5});
}

TEST_CASE("request queue: without a delay the next run is due at once") {
  Fixture f(up_to(8));
  CHECK(f.queue.due(0s, SIZE_MAX) == Clock::time_point::max());
  f.add();
  CHECK(f.queue.due(0s, SIZE_MAX) == Clock::time_point::min());
}

TEST_CASE("request queue: the first request waits for a delay, or until the run is full") {
  Fixture f(up_to(3));
  f.add(1, 5ms);
  f.add(1, 7ms);
  CHECK(f.queue.due(10ms, SIZE_MAX) == kStart + 15ms);
  f.add(1, 8ms, 0, 0s, 3);  // requests of another shape do not count
  CHECK(f.queue.due(10ms, SIZE_MAX) == kStart + 15ms);
  f.add(1, 9ms);
  CHECK(f.queue.due(10ms, SIZE_MAX) == Clock::time_point::min());
}

TEST_CASE("request queue: who cannot be joined does not wait") {
  Fixture f(up_to(4));
  f.add(4);
  CHECK(f.queue.due(10ms, SIZE_MAX) == Clock::time_point::min());
  Fixture alone(up_to(1));
  alone.add();
  CHECK(alone.queue.due(10ms, SIZE_MAX) == Clock::time_point::min());
}

TEST_CASE("request queue: nobody waits for more than are expected") {
  Fixture f(up_to(64));
  f.add();
  f.add();
  CHECK(f.queue.due(10ms, 3) == kStart + 10ms);
  CHECK(f.queue.due(10ms, 2) == Clock::time_point::min());
}

TEST_CASE("request queue: preferred sizes") {
  BatchPolicy policy = up_to(8);
  policy.preferred = {2, 4};
  Fixture f(policy);
  f.add();
  CHECK(f.queue.due(10ms, SIZE_MAX) == kStart + 10ms);
  CHECK(f.take() == Numbers{0});  // the delay is over
  for (int i = 0; i < 3; ++i) f.add();
  CHECK(f.queue.due(10ms, SIZE_MAX) == Clock::time_point::min());
  CHECK(f.take() == Numbers{1, 2});
  for (int i = 0; i < 4; ++i) f.add();
  CHECK(f.take() == Numbers{3, 4, 5, 6});
  CHECK(f.take() == Numbers{7});
}

TEST_CASE("request queue: timeouts, the policy's and a request's own where it is shorter") {
  BatchPolicy policy = up_to(8);
  policy.timeout = 100ms;
  Fixture f(policy);
  f.add();
  f.add(1, 0s, 0, 30ms);
  f.add(1, 0s, 0, 200ms);
  CHECK(f.queue.first_deadline() == kStart + 30ms);
  CHECK(f.late(29ms).empty());
  CHECK(f.late(30ms) == Numbers{1});
  CHECK(f.queue.first_deadline() == kStart + 100ms);
  CHECK(f.late(100ms) == Numbers{0, 2});
  CHECK(f.queue.empty());
  CHECK(f.late(200ms).empty());
}

TEST_CASE("request queue: timeouts of requests count only where they may") {
  BatchPolicy policy = up_to(8);
  policy.timeout_override = false;
  Fixture f(policy);
  f.add(1, 0s, 0, 1ms);
  CHECK(f.queue.first_deadline() == Clock::time_point::max());
  Fixture none(up_to(8));
  none.add(1, 0s, 0, Clock::duration::max());
  CHECK(none.queue.first_deadline() == Clock::time_point::max());
}

TEST_CASE("request queue: late requests may be put behind all others") {
  BatchPolicy policy = up_to(1);
  policy.reject_late = false;
  Fixture f(policy);
  f.add(1, 0s, 0, 10ms);
  f.add(1, 0s, 0, 10ms);
  f.add();
  CHECK(f.late(10ms).empty());
  CHECK(f.queue.size() == 3);
  CHECK(f.take() == Numbers{2});
  CHECK(f.take() == Numbers{0});
  CHECK(f.take() == Numbers{1});
}

TEST_CASE("request queue: all of them") {
  BatchPolicy policy = up_to(8);
  policy.priority_levels = 2;
  Fixture f(policy);
  f.add(1, 0s, 2);
  f.add(1, 0s, 1);
  int count = 0;
  for (QueuedRequest* r = f.queue.take_all(); r; r = RequestQueue::next(*r)) ++count;
  CHECK(count == 2);
  CHECK(f.queue.empty());
}

namespace {

struct SomeSet final : WeightSet {
  explicit SomeSet(std::string name) : WeightSet(std::move(name), 1) {}
};

}  // namespace

TEST_CASE("request queue: a run has requests of one set of weights, and the oldest request's set is next") {
  const SomeSet a("a"), b("b");
  Fixture f(up_to(4));
  const WeightSet* const sets[] = {&a, nullptr, &b, &a, nullptr, &a, &b, &a, &a};
  for (const WeightSet* set : sets) f.add().weights = set;
  CHECK(f.take() == Numbers{0, 3, 5, 7});
  CHECK(f.take() == Numbers{1, 4});
  f.add().weights = &b;  // later than all others
  CHECK(f.take() == Numbers{2, 6, 9});
  CHECK(f.take() == Numbers{8});
  CHECK(f.queue.empty());
}

TEST_CASE("request queue: sets under load take turns by age") {
  const SomeSet a("a"), b("b");
  Fixture f(up_to(8));
  f.add().weights = &b;
  // Requests for set a keep coming, but the older request for b must run first.
  for (int i = 0; i < 20; ++i) f.add().weights = &a;
  CHECK(f.take() == Numbers{0});
  CHECK(f.take().size() == 8);
  f.add().weights = &b;
  for (int i = 0; i < 20; ++i) f.add().weights = &a;
  size_t runs = 0;
  for (bool found = false; !found; ++runs) {
    const Numbers numbers = f.take();
    REQUIRE(!numbers.empty());
    found = numbers == Numbers{21};
  }
  CHECK(runs == 3);  // after the two runs of the 12 older requests
}

TEST_CASE("request queue: the halves of a failed run keep to their set") {
  const SomeSet a("a"), b("b");
  Fixture f(up_to(4));
  for (const WeightSet* set : {&a, &a, &b, &a}) f.add().weights = set;
  CHECK(f.take() == Numbers{0, 1, 3});
  f.queue.add_halves(f.run);
  CHECK(f.take() == Numbers{0});
  CHECK(f.take() == Numbers{1, 3});
  CHECK(f.take() == Numbers{2});
}

TEST_CASE("request queue: when sharing ends, requests that wait run alone too, also the halves of a failed run") {
  Fixture f(up_to(8));
  for (int i = 0; i < 4; ++i) f.add();
  f.queue.take(1000, f.run);
  REQUIRE(f.run.size() == 4);
  f.queue.add_halves(f.run);
  f.add();
  f.add();
  CHECK(f.queue.due(1h, SIZE_MAX) == Clock::time_point::min());  // a half waits for nobody
  f.queue.end_sharing();
  for (int i = 0; i < 6; ++i) {
    CHECK(f.queue.due(1h, SIZE_MAX) == Clock::time_point::min());
    CHECK(f.take() == Numbers{static_cast<float>(i)});
  }
  CHECK(f.queue.empty());
}

}  // namespace sconce::server::scheduling
