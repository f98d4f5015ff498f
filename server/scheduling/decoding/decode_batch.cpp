#include "server/scheduling/decoding/decode_batch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "sconce/check.h"
#include "server/scheduling/batching/joined_rows.h"
#include "server/scheduling/decoding/row_tensors.h"
#include "server/support/failure.h"

namespace sconce::server::scheduling {
namespace {

// `spent` of a row whose state is useless: more steps than any row does.
constexpr int64_t kUsedUp = INT64_MAX / 2;
constexpr std::chrono::microseconds kPoll{50};

}  // namespace

// Its members are guarded by the owner's mutex.
struct DecodeBatch::Row {
  RowSlot* slot = nullptr;           // of the row's loop; null: no loop
  QueuedRequest* waiting = nullptr;  // a step of the next run
  uint64_t ticket = 0;               // of that step
  Clock::time_point submitted, deadline;
  bool begun = false;   // the loop's state exists: a run had its first step
  bool aside = false;   // the state is saved elsewhere
  bool filled = false;  // the inputs belong to a step
  int64_t spent = 0;    // steps since the row had its initial values
};

// The members up to `problem` are guarded by the owner's mutex. The others belong to the thread that runs the group:
// from launch() until go_on() has found no step.
class DecodeBatch::Group final : public QueuedRequest {
 public:
  enum class State : int8_t { kIdle, kQueued, kRunning, kTelling };
  struct Stepping {
    QueuedRequest* step = nullptr;
    size_t row = 0;
    Clock::time_point submitted;
  };

  Group(DecodeBatch& owner, std::string_view set_name, uint64_t set_version)
      : rows_of_loops(static_cast<size_t>(owner.plan_.rows)),
        set(set_name),
        weight_version(set_version),
        tensors(owner.interface_, owner.plan_),
        owner_(owner) {
    for (auto* list : {&set_aside, &bring_back, &reset}) list->reserve(rows_of_loops.size());
    stepping.reserve(rows_of_loops.size());
    dropped.reserve(rows_of_loops.size());
    admitted = true;  // its loops were admitted when they took rows
    parameters.id.own = true;
    parameters.rows = true;
  }

  bool wanted() const noexcept override { return owner_.any_wanted(*this); }
  void starting() override { owner_.gather(*this); }
  void ran() override { tensors.keep(); }
  void finished() noexcept override { owner_.ended(*this); }

  State state = State::kIdle;
  std::vector<Row> rows_of_loops;
  const std::string set;    // weight set; empty: the active one
  uint64_t weight_version;  // weight version of that set; 0: any
  size_t loops = 0;
  bool closed = false;         // its sequence has ended
  bool begun = false;          // the sequence had a run
  std::exception_ptr problem;  // why the state is lost

  SequenceParameters parameters;
  Sequences::Step step_of_sequence;
  RowTensors tensors;
  bool steps_run = false;  // gather() has put steps into the run
  std::vector<Stepping> stepping, dropped;
  std::vector<uint32_t> set_aside, bring_back, reset;
  SequenceRows moves;
  Clock::time_point started, gathered;

 private:
  DecodeBatch& owner_;
};

DecodeBatch::DecodeBatch(const ModelSignature& interface, const LoopPlan& plan, SequenceHost& host,
                         Sequences& sequences, const BatchPolicy& policy, bool follow, TimerQueue& clock)
    : Alarm(clock),
      interface_(interface),
      plan_(plan),
      host_(host),
      sequences_(sequences),
      policy_(policy),
      follow_(follow) {}

DecodeBatch::~DecodeBatch() {
  stop();
  const auto empty = [this] {
    const MutexLock lock(mutex_);
    return groups_.empty();
  };
  // A remaining group is notifying loops of its last results, which takes no time.
  while (!empty()) std::this_thread::sleep_for(kPoll);
}

// Chooses the group with the most loops, so that other groups become empty and their slots free.
void DecodeBatch::take_row(const QueuedRequest& step, std::string_view set, RowSlot& slot) {
  const uint64_t active = follow_ ? 0 : host_.weight_version();
  const uint64_t weight_version = step.weights ? step.weights->weight_version() : active;
  Group* best = nullptr;
  for (const auto& group : groups_) {
    if (group->closed || group->problem || group->weight_version != weight_version || group->set != set) continue;
    if (group->loops == group->rows_of_loops.size() || (best && group->loops <= best->loops)) continue;
    best = group.get();
  }
  if (!best) {
    groups_.push_back(std::make_unique<Group>(*this, set, weight_version));
    best = groups_.back().get();
    best->parameters.id.number = ++begun_;
  }
  const auto row = std::find_if(best->rows_of_loops.begin(), best->rows_of_loops.end(),
                                [](const Row& one) { return one.slot == nullptr; });
  row->slot = &slot;
  ++best->loops;
  slot = {best, static_cast<size_t>(row - best->rows_of_loops.begin())};
}

void DecodeBatch::free_row(RowSlot& slot) noexcept {
  Row& row = slot.group->rows_of_loops[slot.row];
  row.slot = nullptr;
  row.waiting = nullptr;
  row.aside = false;
  if (std::exchange(row.begun, false)) row.spent = kUsedUp;
  --slot.group->loops;
  slot = {};
}

bool DecodeBatch::close_if_empty(Group& group) noexcept {
  const bool between = group.state == Group::State::kIdle || group.state == Group::State::kTelling;
  return group.loops == 0 && between && !std::exchange(group.closed, true);
}

std::unique_ptr<DecodeBatch::Group> DecodeBatch::remove(Group& group) noexcept {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& one) { return one.get() == &group; });
  std::unique_ptr<Group> removed = std::move(*found);
  groups_.erase(found);
  return removed;
}

void DecodeBatch::submit(QueuedRequest& step, std::optional<std::string_view> set, RowSlot& slot) {
  const bool first = slot.group == nullptr;
  if (first) RowTensors::check(interface_, plan_, step.inputs);
  const Clock::time_point now = Alarm::now();
  const Clock::time_point deadline = waiting_deadline(policy_, step.timeout, now);
  Group* launched = nullptr;
  size_t index = 0;
  uint64_t ticket = 0;
  {
    const MutexLock lock(mutex_);
    if (first) take_row(step, set.value_or(""), slot);
    Group& group = *slot.group;
    if (group.problem) std::rethrow_exception(group.problem);
    index = slot.row;
    Row& row = group.rows_of_loops[index];
    row.waiting = &step;
    row.ticket = ticket = ++tickets_;
    row.submitted = now;
    row.deadline = deadline;
    if (group.state == Group::State::kIdle) {
      group.state = Group::State::kQueued;
      launched = &group;
    }
  }
  // From here on the step may have ended, and the loop may be gone, unless the group was not launched yet.
  if (deadline != Clock::time_point::max()) Alarm::set(deadline);
  if (!launched) return;
  const std::exception_ptr problem = launch(*launched);
  if (!problem) return;
  bool mine = false;  // the alarm may have notified the step that it is late
  {
    const MutexLock lock(mutex_);
    launched->problem = problem;
    Row& row = launched->rows_of_loops[index];
    mine = row.waiting == &step && row.ticket == ticket;
    if (mine) {
      row.waiting = nullptr;
      if (first) free_row(slot);
    }
  }
  go_on(*launched, problem);
  if (mine) std::rethrow_exception(problem);
}

void DecodeBatch::leave(RowSlot& slot) noexcept {
  if (!slot.group) return;
  std::unique_ptr<Group> over;
  std::optional<SequenceId> sequence;
  {
    const MutexLock lock(mutex_);
    Group& group = *slot.group;
    free_row(slot);
    if (close_if_empty(group)) {
      sequence = group.parameters.id;
      if (group.state == Group::State::kIdle) over = remove(group);
    }
  }
  if (sequence) sequences_.end_now(*sequence);
}

// Queues the group's next run. Null: the group may be gone.
std::exception_ptr DecodeBatch::launch(Group& group) noexcept {
  group.inputs = group.tensors.inputs();
  group.outputs = group.tensors.outputs();
  group.parameters.start = !group.begun;
  std::optional<std::string_view> set;
  if (!group.begun) set = group.set;
  return exception_of([&] { sequences_.submit(group, group.parameters, set, group.step_of_sequence); });
}

bool DecodeBatch::any_wanted(const Group& group) const noexcept {
  const MutexLock lock(mutex_);
  return std::any_of(group.rows_of_loops.begin(), group.rows_of_loops.end(),
                     [](const Row& row) { return row.waiting && row.waiting->wanted(); });
}

// Decides about a row in a run: steps it, or leaves its loop's state unchanged.
void DecodeBatch::place(Group& group, Row& row, uint32_t index, QueuedRequest* step) {
  if (step) {
    if (!row.begun) {
      if (row.spent > 0) group.reset.push_back(index);
      row.spent = 0;
      row.begun = true;
    } else if (std::exchange(row.aside, false)) {
      group.bring_back.push_back(index);
      row.spent = kUsedUp;
    }
    group.tensors.fill(index, step->inputs);
    row.filled = true;
  } else {
    const bool leaves = row.begun && !row.aside;
    if (leaves) {
      group.set_aside.push_back(index);
      row.aside = true;
    }
    if (leaves || row.spent >= plan_.idle_steps) {
      group.reset.push_back(index);
      row.spent = 0;
    }
    if (std::exchange(row.filled, false)) group.tensors.fill_idle(index);
  }
  row.spent = std::min(row.spent + 1, kUsedUp);
}

// Runs on the replica thread: all steps that arrived so far join the run.
void DecodeBatch::gather(Group& group) {
  group.started = now();
  for (auto* list : {&group.set_aside, &group.bring_back, &group.reset}) list->clear();
  group.dropped.clear();
  group.stepping.clear();
  bool all_on_device = true;
  {
    const MutexLock lock(mutex_);
    std::vector<Row>& rows = group.rows_of_loops;
    for (size_t i = 0; i < rows.size(); ++i) {
      QueuedRequest* const step = std::exchange(rows[i].waiting, nullptr);
      if (!step) continue;
      const bool stays = step->wanted() && group.started < rows[i].deadline;
      (stays ? group.stepping : group.dropped).push_back({step, i, rows[i].submitted});
    }
    if (!group.stepping.empty()) {
      group.state = Group::State::kRunning;
      group.steps_run = true;
      size_t next = 0;
      for (const Group::Stepping& one : group.dropped)  // their loops end, so the rows' state is useless
        if (std::exchange(rows[one.row].begun, false)) rows[one.row].spent = kUsedUp;
      for (size_t i = 0; i < rows.size(); ++i) {
        const bool steps = next < group.stepping.size() && group.stepping[next].row == i;
        place(group, rows[i], static_cast<uint32_t>(i), steps ? group.stepping[next++].step : nullptr);
      }
    }
  }
  for (const Group::Stepping& one : group.stepping) all_on_device = all_on_device && one.step->device_outputs;
  for (const Group::Stepping& one : group.dropped)
    tell(*one.step, one.step->wanted() ? late_error(interface_.name, group.started - one.submitted)
                                       : unwanted_error(interface_.name));
  SCONCE_CHECK(!group.stepping.empty(), kCancelled, "all decode loops of the group were abandoned");
  group.weights = group.begun ? nullptr : group.stepping.front().step->weights;
  group.device_outputs = all_on_device;
  group.last_rows = group.stepping.front().step->last_rows;
  for (const Group::Stepping& one : std::span(group.stepping).subspan(1))
    group.last_rows = joined(group.last_rows, one.step->last_rows);
  group.last_rows.rows.parts = plan_.rows;
  group.moves = {group.set_aside, group.bring_back, group.reset};
  const bool moves = !group.set_aside.empty() || !group.bring_back.empty() || !group.reset.empty();
  group.step.rows = moves ? &group.moves : nullptr;
  group.gathered = now();
}

void DecodeBatch::tell(QueuedRequest& step, std::exception_ptr error) const noexcept {
  step.error = std::move(error);
  step.info = {};
  step.run_rows = -1;
  step.gather = step.split = {};
  step.finished();
}

void DecodeBatch::ended(Group& group) noexcept {
  const std::exception_ptr problem = std::exchange(group.error, nullptr);
  sequences_.finish(group.step_of_sequence, problem);
  if (!std::exchange(group.steps_run, false)) return go_on(group, problem);
  {
    const MutexLock lock(mutex_);
    group.state = Group::State::kTelling;
    group.problem = problem;
    if (!problem && !std::exchange(group.begun, true) && group.weight_version != 0)
      group.weight_version = group.info.weight_version;
  }
  int64_t rows = problem ? -1 : static_cast<int64_t>(group.stepping.size());
  for (const Group::Stepping& one : group.stepping) {
    QueuedRequest& step = *one.step;
    step.info = group.info;
    step.info.queue = group.started - one.submitted;
    step.error = problem;
    step.gather = group.gathered - group.started;
    step.split = {};
    step.run_rows = std::exchange(rows, -1);
    if (!problem) group.tensors.show(one.row, step.outputs);
    step.finished();  // the loop may be gone
  }
  group.tensors.drop_outputs();
  go_on(group, nullptr);
}

void DecodeBatch::go_on(Group& group, std::exception_ptr not_run) noexcept {
  for (;;) {
    ErrorCode why = ErrorCode::kCancelled;
    if (not_run) succeeds([&] { why = describe_failure(not_run).code; });
    std::unique_ptr<Group> over;
    std::optional<SequenceId> sequence;
    QueuedRequest* step = nullptr;
    RowSlot* again = nullptr;
    std::exception_ptr problem;
    bool waits = false;
    {
      const MutexLock lock(mutex_);
      if (why != ErrorCode::kCancelled && !group.problem) group.problem = not_run;
      problem = group.problem ? group.problem : not_run;
      for (Row& row : group.rows_of_loops) {
        if (!row.waiting) continue;
        waits = true;
        if (!group.problem && (!not_run || row.waiting->wanted())) continue;
        step = std::exchange(row.waiting, nullptr);
        // A loop whose first step was in no run loses no state with the group: it starts again in another group.
        if (!not_run && !row.begun) again = row.slot;
        if (again) free_row(*again);
        break;
      }
      if (!step) {
        group.state = waits ? Group::State::kQueued : Group::State::kIdle;
        // This must be the last action, because the destructor waits for it.
        if (close_if_empty(group))
          sequence = group.parameters.id;
        else if (group.loops == 0 && !waits)
          over = remove(group);
      }
    }
    if (sequence) {
      sequences_.end_now(*sequence);
      continue;
    }
    if (step) {
      if (again) problem = exception_of([&] { submit(*step, group.set, *again); });
      if (problem) tell(*step, problem);
      continue;
    }
    if (!waits) return;
    not_run = launch(group);
    if (!not_run) return;
  }
}

void DecodeBatch::ring() noexcept {
  const Clock::time_point now = Alarm::now();
  for (;;) {
    QueuedRequest* step = nullptr;
    Clock::time_point submitted, next = Clock::time_point::max();
    {
      const MutexLock lock(mutex_);
      for (const auto& group : groups_) {
        for (Row& row : group->rows_of_loops) {
          if (!row.waiting || step) continue;
          if (row.deadline <= now) {
            step = std::exchange(row.waiting, nullptr);
            submitted = row.submitted;
          } else {
            next = std::min(next, row.deadline);
          }
        }
      }
    }
    if (!step) {
      if (next != Clock::time_point::max()) set(next);
      return;
    }
    tell(*step, late_error(interface_.name, now - submitted));
  }
}

}  // namespace sconce::server::scheduling
