// The state machine of DecodeBatch, run by run, on a model that the test scripts.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/scheduling/decoding/decode_batch.h"
#include "server/support/failure.h"
#include "tests/errors.h"
#include "tests/server/queued_requests.h"
#include "tests/server/scheduling/scripted_model.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

using Numbers = std::vector<int64_t>;
using Rows = std::vector<uint32_t>;

constexpr int64_t kIdle = 0;    // the token of a row without a step
constexpr int64_t kAdds = 100;  // the "logits" of a row are its token plus this

// A run as the model saw it.
struct Seen {
  Numbers tokens;  // by row
  Rows set_aside, bring_back, reset;
  bool begins = false;
};

struct World {
  explicit World(int64_t rows = 2, int64_t slots = 2, bool follow = false)
      : interface("m", 1,
                  model_spec({tensor_spec("token", DType::kInt64, {fixed_dim(rows), fixed_dim(1)})},
                             {tensor_spec("logits", DType::kInt64, {fixed_dim(rows), fixed_dim(1)})})),
        plan(plan_of(rows)),
        model(slots),
        policy(up_to(1)),
        sequences("m", model, policy, 10s, clock, inline_policy, 1),
        batch(interface, plan, model, sequences, policy, follow, clock) {}

  static LoopPlan plan_of(int64_t rows) {
    LoopPlan plan;
    plan.token_rank = 2;
    plan.sequence = true;
    plan.rows = rows;
    plan.row_inputs = {{rows, 1}};
    plan.idle_steps = 3;
    return plan;
  }
  // during: called in place of the model.
  Seen run(const std::function<void()>& during = {}) {
    Seen seen;
    model.run_next([&](RunRequest& run) {
      const int64_t* const data = run.inputs[0].data_as<int64_t>();
      seen.tokens.assign(data, data + plan.rows);
      seen.begins = run.step.begins;
      if (run.step.rows) {
        const SequenceRows& moves = *run.step.rows;
        seen.set_aside.assign(moves.set_aside.begin(), moves.set_aside.end());
        seen.bring_back.assign(moves.bring_back.begin(), moves.bring_back.end());
        seen.reset.assign(moves.reset.begin(), moves.reset.end());
      }
      Tensor logits = Tensor::empty(Numbers{plan.rows, 1}, DType::kInt64);
      for (int64_t i = 0; i < plan.rows; ++i) logits.data_as<int64_t>()[i] = data[i] + kAdds;
      run.outputs[0] = std::move(logits);
      if (during) during();
    });
    return seen;
  }
  void fail(const std::function<void()>& during = {}) {
    model.run_next([&](RunRequest&) {
      if (during) during();
      SCONCE_FAIL(kModelFailed, "told to fail");
    });
  }
  uint64_t groups() const { return sequences.counts().live; }

  const ModelSignature interface;
  const LoopPlan plan;
  ScriptedModel model;
  TimerQueue clock{&StillTime::now};
  InlinePolicy inline_policy{0ns, false};
  const BatchPolicy policy;
  Sequences sequences;
  DecodeBatch batch;
};

// A decode loop, reduced to its steps.
class Loop final : public QueuedRequest {
 public:
  explicit Loop(World& world) : world_(world), outputs_(1) {
    input_.push_back(Tensor::empty(Numbers{1, 1}, DType::kInt64));
    inputs = input_;
    outputs = outputs_;
  }
  ~Loop() override { leave(); }

  void submit(int64_t token, std::optional<std::string_view> set = std::nullopt) {
    *input_[0].data_as<int64_t>() = token;
    error = nullptr;
    world_.batch.submit(*this, set, slot);
  }
  void leave() noexcept { world_.batch.leave(slot); }
  void finished() noexcept override {
    ++ended_;
    if (after) std::exchange(after, nullptr)();
  }
  // Whether one step has ended since the last call.
  bool stepped() { return std::exchange(ended_, 0) == 1; }
  int64_t answer() const { return *outputs_[0].data_as<int64_t>(); }
  std::optional<ErrorCode> code() const { return error ? std::optional(describe_failure(error).code) : std::nullopt; }

  DecodeBatch::RowSlot slot;
  std::function<void()> after;  // called when the next step has ended

 private:
  World& world_;
  std::vector<Tensor> input_, outputs_;
  int ended_ = 0;
};

}  // namespace

TEST_CASE("decode batch: loops share a run, a row each") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  b.submit(6);
  CHECK(world.model.rows_asked);
  REQUIRE(world.model.runs.size() == 1);
  world.model.active = 4;
  const Seen first = world.run();
  CHECK(first.begins);
  CHECK(first.tokens == Numbers{5, 6});
  CHECK(first.reset.empty());
  CHECK(a.stepped());
  CHECK(b.stepped());
  CHECK(a.answer() == 5 + kAdds);
  CHECK(b.answer() == 6 + kAdds);
  CHECK(a.info.weight_version == 4);
  CHECK(a.run_rows == 2);  // counted once for the run
  CHECK(b.run_rows == -1);
  CHECK(world.model.runs.empty());
  b.submit(8);
  a.submit(7);
  const Seen second = world.run();
  CHECK_FALSE(second.begins);
  CHECK(second.tokens == Numbers{7, 8});
  CHECK(world.groups() == 1);
}

TEST_CASE("decode batch: steps that loops submit when they are notified wait until all are") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  b.submit(6);
  a.after = [&] { a.submit(7); };
  b.after = [&] {
    CHECK(world.model.runs.empty());  // that of a has not been queued
    b.submit(8);
  };
  world.run();
  REQUIRE(world.model.runs.size() == 1);
  CHECK(world.run().tokens == Numbers{7, 8});
}

TEST_CASE("decode batch: a loop without a step keeps its state, although the run writes its row") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  b.submit(6);
  world.run();
  a.submit(7);
  const Seen alone = world.run();
  CHECK(alone.tokens == Numbers{7, kIdle});
  CHECK(alone.set_aside == Rows{1});
  CHECK(alone.reset == Rows{1});
  a.submit(8);
  const Seen again = world.run();  // it is aside already
  CHECK(again.set_aside.empty());
  CHECK(again.bring_back.empty());
  b.submit(9);
  const Seen back = world.run();
  CHECK(back.tokens == Numbers{kIdle, 9});
  CHECK(back.bring_back == Rows{1});
  CHECK(back.set_aside == Rows{0});
  a.submit(1);
  b.submit(2);
  const Seen both = world.run();
  CHECK(both.bring_back == Rows{0});
  CHECK(both.set_aside.empty());
  CHECK(both.reset.empty());
}

TEST_CASE("decode batch: a row without a loop is reset before it has done more steps than a loop may do") {
  World world;
  Loop a(world);
  std::vector<Rows> resets;
  for (int i = 0; i < 7; ++i) {
    a.submit(5);
    resets.push_back(world.run().reset);
  }
  CHECK(resets == std::vector<Rows>{{}, {}, {}, {1}, {}, {}, {1}});
}

TEST_CASE("decode batch: a new loop begins with initial values, whatever its row did before") {
  World world;
  Loop a(world);
  a.submit(5);
  world.run();
  {
    Loop idle_before(world);
    idle_before.submit(6);
    a.submit(5);
    CHECK(world.run().reset == Rows{1});  // the row stepped on dummy tokens
  }
  Loop after_another(world);
  after_another.submit(7);
  a.submit(5);
  const Seen seen = world.run();
  CHECK(seen.reset == Rows{1});
  CHECK(seen.tokens == Numbers{5, 7});
  CHECK(seen.bring_back.empty());
}

TEST_CASE("decode batch: without a free row or slot a first step is refused, and takes no row") {
  World world(2, 1);
  Loop a(world), b(world), c(world);
  a.submit(5);
  b.submit(6);
  CHECK(error_from(ErrorCode::kQueueFull, [&] { c.submit(7); }) == "model 'm': all slots are taken");
  CHECK(c.slot.group == nullptr);
  CHECK_FALSE(c.stepped());
  world.run();
  b.leave();
  c.submit(7);
  CHECK(c.slot.group == a.slot.group);
  a.submit(8);
  CHECK(world.run().tokens == Numbers{8, 7});
  CHECK(world.groups() == 1);
}

TEST_CASE("decode batch: a new loop joins the group with the most loops") {
  World world(3, 3);
  std::vector<std::unique_ptr<Loop>> loops;
  for (int i = 0; i < 5; ++i) {
    loops.push_back(std::make_unique<Loop>(world));
    loops.back()->submit(i);
  }
  world.run();
  world.run();
  CHECK(loops[3]->slot.group != loops[0]->slot.group);
  loops[1].reset();
  loops[2].reset();
  Loop more(world);
  more.submit(9);
  CHECK(more.slot.group == loops[4]->slot.group);
  world.run();
  // A group whose last loop leaves is removed, and its slot is free.
  CHECK(world.groups() == 2);
  loops[0].reset();
  CHECK(world.groups() == 1);
  CHECK(world.model.free == Numbers{2});
}

TEST_CASE("decode batch: loops of different weights share no group") {
  World world(3, 3);
  Loop a(world), b(world), c(world), d(world);
  a.submit(1);
  b.submit(2, "v2");
  c.submit(3, "v2");
  world.model.active = 2;
  d.submit(4);
  CHECK(b.slot.group != a.slot.group);
  CHECK(c.slot.group == b.slot.group);
  CHECK(d.slot.group != a.slot.group);
  for (int i = 0; i < 3; ++i) world.run();
  CHECK(d.stepped());
  World following(3, 3, true);
  Loop e(following), f(following);
  e.submit(1);
  following.model.active = 2;
  f.submit(2);
  CHECK(f.slot.group == e.slot.group);
  following.run();
}

TEST_CASE("decode batch: a step that waits too long ends, by the alarm or when the run starts") {
  World world(3);
  Loop a(world), late(world), later(world);
  a.submit(5);
  late.timeout = 1s;
  late.submit(6);
  later.timeout = 2s;
  later.submit(7);
  pass(world.clock, 999ms);
  CHECK_FALSE(late.stepped());
  pass(world.clock, 1ms);
  CHECK(late.stepped());
  CHECK(late.code() == ErrorCode::kDeadlineExceeded);
  CHECK_FALSE(later.stepped());
  StillTime::pass(1s);  // and the alarm is late itself
  CHECK(world.run().tokens == Numbers{5, kIdle, kIdle});
  CHECK(later.stepped());
  CHECK(later.code() == ErrorCode::kDeadlineExceeded);
  CHECK(a.stepped());
  CHECK_FALSE(a.code());
}

TEST_CASE("decode batch: abandoned steps are left out, and a run of nothing else does not run") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  b.submit(6);
  b.give_up();
  CHECK(world.run().tokens == Numbers{5, kIdle});
  CHECK(b.stepped());
  CHECK(b.code() == ErrorCode::kCancelled);
  CHECK_FALSE(a.code());
  b.leave();
  Loop only(world);
  a.submit(7);
  only.submit(8);
  a.give_up();
  only.give_up();
  CHECK(world.run().tokens.empty());
  CHECK(only.stepped());
  CHECK(only.code() == ErrorCode::kCancelled);
  CHECK(a.code() == ErrorCode::kCancelled);
  CHECK(world.model.runs.empty());
  // The first run of `only` was not run, so the group is as before.
  Loop next(world);
  only.leave();
  next.submit(9);
  CHECK(world.run().tokens == Numbers{kIdle, 9});
  CHECK_FALSE(next.code());
}

TEST_CASE("decode batch: a run that fails ends all loops of the group, and no others") {
  World world;
  Loop a(world), b(world), other(world);
  a.submit(5);
  b.submit(6);
  other.submit(7);
  world.fail();
  CHECK(a.code() == ErrorCode::kModelFailed);
  CHECK(b.code() == ErrorCode::kModelFailed);
  world.run();
  CHECK(other.stepped());
  CHECK_FALSE(other.code());
  CHECK(error_from(ErrorCode::kModelFailed, [&] { a.submit(8); }) == "told to fail");
  Loop fresh(world);
  fresh.submit(9);
  CHECK(fresh.slot.group == other.slot.group);
  a.leave();
  b.leave();
  CHECK(world.groups() == 1);
  world.run();
}

TEST_CASE("decode batch: a loop whose first step was in no run of a failed group starts again in another") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  world.fail([&] { b.submit(6); });
  CHECK(a.stepped());
  CHECK(a.code() == ErrorCode::kModelFailed);
  CHECK_FALSE(b.stepped());
  CHECK(b.slot.group != a.slot.group);
  const Seen seen = world.run();
  CHECK(seen.begins);
  CHECK(b.stepped());
  CHECK_FALSE(b.code());
  CHECK(b.answer() == 6 + kAdds);
}

TEST_CASE("decode batch: a loop that leaves while its group runs frees its row for the next run") {
  World world;
  Loop a(world), b(world), c(world);
  a.submit(5);
  b.submit(6);
  b.after = [&] {
    b.leave();
    c.submit(7);
  };
  world.run();
  CHECK(c.slot.row == 1);
  const Seen seen = world.run();
  CHECK(seen.tokens == Numbers{kIdle, 7});
  CHECK(seen.reset.size() == 2);  // the row of a, after it was set aside, and that of b
  CHECK(seen.set_aside == Rows{0});
  CHECK(c.stepped());
}

TEST_CASE("decode batch: if all loops leave when they are notified, the group ends") {
  World world;
  Loop a(world), b(world);
  a.submit(5);
  b.submit(6);
  a.after = [&] { a.leave(); };
  b.after = [&] { b.leave(); };
  world.run();
  CHECK(world.groups() == 0);
  CHECK(world.model.free == Numbers{2});
}

}  // namespace sconce::server::scheduling
