#include "server/scheduling/sequences.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/errors.h"
#include "tests/server/queued_requests.h"
#include "tests/server/scheduling/scripted_model.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

struct World {
  explicit World(int64_t slots = 4, size_t replicas = 1, int64_t queue = 100)
      : model(slots, replicas),
        policy(policy_of(queue)),
        sequences("m", model, policy, 10s, clock, inline_policy, static_cast<int64_t>(replicas)) {}
  static BatchPolicy policy_of(int64_t queue) {
    BatchPolicy policy = up_to(1);
    policy.queue = queue;
    return policy;
  }
  // Runs the first submitted step. Returns its part of a sequence.
  SequenceStep run() {
    SequenceStep step;
    model.run_next([&](RunRequest& run) { step = run.step; });
    return step;
  }
  void fail(ErrorCode code) {
    model.run_next([&](RunRequest&) { throw Error(code, "told to fail"); });
  }
  Sequences::Counts counts() const { return sequences.counts(); }
  uint64_t live() const { return sequences.counts().live; }

  ScriptedModel model;
  TimerQueue clock{&StillTime::now};
  InlinePolicy inline_policy{0ns, false};
  const BatchPolicy policy;
  Sequences sequences;
};

enum Flags : uint8_t { kNone = 0, kStart = 1, kEnd = 2, kOwn = 4 };

// A request that is a step.
class Asked final : public TestRequest {
 public:
  Asked(World& world, uint64_t id, int flags, std::optional<std::string_view> set = std::nullopt)
      : TestRequest(1), world_(world) {
    SequenceParameters asked;
    asked.id.number = id;
    asked.id.own = (flags & kOwn) != 0;
    asked.start = (flags & kStart) != 0;
    asked.end = (flags & kEnd) != 0;
    world.sequences.submit(*this, asked, set, part);
  }
  void finished() noexcept override {
    world_.sequences.finish(part, error);
    TestRequest::finished();
  }
  Sequences::Step part;

 private:
  World& world_;
};

// The message of a step that is refused.
std::string refusal(World& world, uint64_t id, int flags, std::optional<std::string_view> set = std::nullopt,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  // If it is not refused, the queue has it.
  return error_from(code, [&] { (void)std::make_unique<Asked>(world, id, flags, set).release(); });
}

}  // namespace

TEST_CASE("sequences: a step needs a sequence that was started and has not ended") {
  World world;
  CHECK(contains(refusal(world, 0, kStart), "must specify a non-zero or non-empty correlation ID"));
  CHECK(contains(refusal(world, 7, kNone), "sequence 7 to model 'm' must specify the START flag"));
  const Asked first(world, 7, kStart);
  CHECK(world.run().begins);
  CHECK(first.done());
  CHECK(world.live() == 1);
  CHECK(contains(refusal(world, 8, kNone), "START flag"));
  const Asked last(world, 7, kEnd);
  // The step with `end` has arrived, although it has not run.
  CHECK(contains(refusal(world, 7, kNone), "START flag"));
  CHECK_FALSE(world.run().begins);
  CHECK(last.done());
  CHECK(world.live() == 0);
  CHECK(world.model.free == std::vector<int64_t>{4});
  CHECK(contains(refusal(world, 7, kNone), "START flag"));
  CHECK(world.counts().begun == 1);
  CHECK(world.counts().failed == 0);
}

TEST_CASE("sequences: steps run one by one, in order, on the replica of their sequence") {
  World world(1, 2);
  const Asked a(world, 1, kStart), b(world, 2, kStart), a2(world, 1, kNone), a3(world, 1, kEnd);
  REQUIRE(world.model.runs.size() == 2);
  CHECK(world.model.runs[0]->replica == 0);
  CHECK(world.model.runs[1]->replica == 1);
  CHECK(world.sequences.waiting() == 4);
  world.run();
  CHECK(a.done());
  CHECK_FALSE(a2.done());
  REQUIRE(world.model.runs.size() == 2);  // that of b, and the next step of the first sequence
  CHECK(world.model.runs[1]->replica == 0);
  world.run();
  CHECK(b.done());
  world.run();
  CHECK(a2.done());
  CHECK_FALSE(a3.done());
  world.run();
  CHECK(a3.done());
  CHECK(world.live() == 1);
  CHECK(world.sequences.waiting() == 0);
}

TEST_CASE("sequences: one without a step ends after the idle time, the longest idle first") {
  World world;
  const Asked a(world, 1, kStart);
  world.run();
  pass(world.clock, 4s);
  const Asked b(world, 2, kStart);
  world.run();
  pass(world.clock, 5999ms);
  CHECK(world.live() == 2);
  pass(world.clock, 1ms);
  CHECK(world.live() == 1);
  CHECK(contains(refusal(world, 1, kNone), "START flag"));
  CHECK(world.model.free == std::vector<int64_t>{3});
  pass(world.clock, 3999ms);
  CHECK(world.live() == 1);
  pass(world.clock, 1ms);
  CHECK(world.live() == 0);
  CHECK(world.counts().idle == 2);
  // The alarm was not set any more: the next idle sequence sets it again.
  const Asked c(world, 3, kStart);
  world.run();
  pass(world.clock, 10s);
  CHECK(world.counts().idle == 3);
}

TEST_CASE("sequences: a step in progress is no idle time, and its end begins a new one") {
  World world;
  const Asked first(world, 1, kStart);
  world.run();
  pass(world.clock, 9s);
  const Asked second(world, 1, kNone);
  pass(world.clock, 60s);
  CHECK(world.live() == 1);
  world.run();
  CHECK(second.done());
  pass(world.clock, 9999ms);
  CHECK(world.live() == 1);
  pass(world.clock, 1ms);
  CHECK(world.live() == 0);
}

TEST_CASE("sequences: a decode loop's own sequence ends only when the loop ends it") {
  World world;
  const Asked own(world, 1, kStart | kOwn), client(world, 1, kStart);
  CHECK(world.live() == 2);  // a client's number never names it
  world.run();
  world.run();
  pass(world.clock, 1h);
  CHECK(world.live() == 1);
  CHECK(world.counts().idle == 1);
  SequenceId id;
  id.number = 1;
  world.sequences.end_now(id);  // of the client: has ended
  CHECK(world.live() == 1);
  id.own = true;
  world.sequences.end_now(id);
  CHECK(world.live() == 0);
  CHECK(world.model.free == std::vector<int64_t>{4});
}

TEST_CASE("sequences: a restart has a new epoch, which failures of the old one do not end") {
  World world;
  const Asked first(world, 7, kStart), old(world, 7, kEnd), again(world, 7, kStart), next(world, 7, kNone);
  CHECK(world.live() == 1);
  CHECK(world.counts().begun == 2);
  world.fail(ErrorCode::kModelFailed);
  CHECK(first.done());
  CHECK(world.live() == 1);
  CHECK(world.counts().failed == 0);
  const uint64_t before = world.run().epoch;
  CHECK(old.done());
  CHECK(world.live() == 1);
  const SequenceStep begun = world.run();
  CHECK(begun.begins);
  CHECK(begun.epoch > before);
  CHECK(world.run().epoch == begun.epoch);
  CHECK(next.done());
  CHECK(world.live() == 1);
}

TEST_CASE("sequences: a step that fails in the model ends its sequence, a refused one does not") {
  World world;
  const Asked first(world, 7, kStart);
  world.run();
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kDeadlineExceeded, ErrorCode::kCancelled}) {
    const Asked refused(world, 7, kNone);
    world.fail(code);
    CHECK(refused.error);
    CHECK(world.live() == 1);
  }
  const Asked failed(world, 7, kNone);
  world.fail(ErrorCode::kModelFailed);
  CHECK(world.live() == 0);
  CHECK(world.counts().failed == 1);
  // A refused first step leaves no state either.
  const Asked bad(world, 8, kStart);
  world.fail(ErrorCode::kInvalidArgument);
  CHECK(world.live() == 0);
  CHECK(world.counts().failed == 2);
  CHECK(world.model.free == std::vector<int64_t>{4});
}

TEST_CASE("sequences: a step that its queue refuses changes nothing") {
  World world(4, 1, 0);
  const Asked first(world, 7, kStart);
  CHECK(contains(refusal(world, 8, kStart, {}, ErrorCode::kQueueFull), "maximum queue size"));
  CHECK(world.live() == 1);
  CHECK(world.model.free == std::vector<int64_t>{3});
  CHECK(contains(refusal(world, 7, kEnd, {}, ErrorCode::kQueueFull), "maximum queue size"));
  CHECK(contains(refusal(world, 7, kStart, {}, ErrorCode::kQueueFull), "maximum queue size"));
  const uint64_t epoch = world.run().epoch;
  const Asked next(world, 7, kNone);  // neither ended nor restarted
  CHECK(world.run().epoch == epoch);
  // A refused step is no use either: the sequence is idle.
  pass(world.clock, 10s);
  CHECK(world.live() == 0);
}

TEST_CASE("sequences: without a free slot, a start is refused and counted") {
  World world(1);
  const Asked first(world, 1, kStart);
  CHECK(refusal(world, 2, kStart, {}, ErrorCode::kQueueFull) == "model 'm': all slots are taken");
  CHECK(world.counts().refused == 1);
  CHECK(world.counts().begun == 1);
  world.run();
  const Asked last(world, 1, kEnd);
  world.run();
  const Asked second(world, 2, kStart);
  world.run();
  CHECK(second.done());
}

TEST_CASE("sequences: a cancelled first step ends its sequence, a later one leaves it") {
  World world;
  Asked other(world, 1, kStart), first(world, 2, kStart);
  CHECK(world.sequences.cancel(first));
  world.sequences.finish_cancelled(first.part);
  CHECK(first.times_finished() == 0);
  CHECK(world.live() == 1);
  Asked later(world, 1, kNone);
  CHECK(world.sequences.cancel(later));
  world.sequences.finish_cancelled(later.part);
  CHECK(world.live() == 1);
  world.run();
  CHECK(other.done());
  CHECK_FALSE(world.sequences.cancel(other));
  CHECK(world.model.runs.empty());
}

TEST_CASE("sequences: a step may name only the set with which its sequence began") {
  World world;
  const Asked first(world, 1, kStart, "v2"), active(world, 2, kStart);
  CHECK(contains(refusal(world, 1, kNone, "v3"), "began with set 'v2', the request names set 'v3'"));
  CHECK(contains(refusal(world, 1, kNone, ""), "the request names the active set"));
  CHECK(contains(refusal(world, 2, kNone, "v2"), "began with the active set, the request names set 'v2'"));
  const Asked same(world, 1, kNone, "v2"), any(world, 1, kNone);
  for (int i = 0; i < 4; ++i) world.run();
  CHECK(same.done());
  CHECK(any.done());
  CHECK(world.live() == 2);
}

TEST_CASE("sequences: new replicas get queues before they get sequences") {
  World world(1);
  const Asked first(world, 1, kStart);
  world.sequences.reserve(2);
  world.model.free.push_back(1);
  const Asked second(world, 2, kStart);
  REQUIRE(world.model.runs.size() == 2);
  CHECK(world.model.runs[1]->replica == 1);
  world.run();
  world.run();
  CHECK(second.done());
}

}  // namespace sconce::server::scheduling
