// Every interleaving of the protocol by which threads leave a parallel region (src/faults/parallel_region.h), for small
// teams: a model of each memory access, and a search of all states that it reaches.
#include <doctest/doctest.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace {

constexpr int kMost = 4;  // threads

enum class At : uint8_t {
  kBody,       // computes; may fail
  kArrive,     // has announced its next barrier
  kWait,       // in the barrier
  kLook,       // behind it: is the region broken?
  kBreak,      // leaves: marks the region broken
  kMark,       // marks itself
  kScan,       // reads another thread's announcement
  kScanState,  // reads another thread's progress
  kJoin,       // takes part in a barrier in order to leave
  kJoined,
  kEnd,
};
enum class Progress : uint8_t { kInside, kFinished, kLeft };

struct Thread {
  At at = At::kBody;
  Progress progress = Progress::kInside;
  uint8_t announced = 0;  // what others read
  uint8_t own = 0;        // its own count
  uint8_t scan = 0;       // whom it looks at next
  bool all_left = true;
  auto operator<=>(const Thread&) const = default;
};
struct State {
  std::array<Thread, kMost> threads{};
  uint8_t waiting = 0;  // threads in the barrier
  bool broken = false;
  auto operator<=>(const State&) const = default;
};

struct Rules {
  bool join = true, finished = true, all_left = true;
};

class Model {
 public:
  Model(int threads, int barriers, Rules rules) : threads_(threads), barriers_(barriers), rules_(rules) {}

  // Whether every state that is reached can end, with nobody in the barrier.
  bool always_ends() {
    index({});
    for (size_t i = 0; i < states_.size(); ++i) {
      const State state = states_[i];
      for (int t = 0; t < threads_; ++t) step(i, state, t);
    }
    std::vector<bool> ends(states_.size());
    std::deque<size_t> queue;
    for (size_t i = 0; i < states_.size(); ++i)
      if (is_end(states_[i])) ends[i] = true, queue.push_back(i);
    for (; !queue.empty(); queue.pop_front())
      for (const size_t before : before_[queue.front()])
        if (!ends[before]) ends[before] = true, queue.push_back(before);
    for (const bool end : ends)
      if (!end) return false;
    return true;
  }
  size_t states() const { return states_.size(); }

 private:
  size_t index(const State& state) {
    const auto [found, fresh] = known_.emplace(state, states_.size());
    if (fresh) {
      states_.push_back(state);
      before_.emplace_back();
    }
    return found->second;
  }
  bool is_end(const State& state) const {
    for (int t = 0; t < threads_; ++t)
      if (state.threads[static_cast<size_t>(t)].at != At::kEnd) return false;
    return state.waiting == 0;
  }
  void go(size_t from, State state, int t, const Thread& thread) {
    state.threads[static_cast<size_t>(t)] = thread;
    before_[index(state)].push_back(from);
  }
  // The last thread to come opens the barrier.
  void arrive(size_t from, State state, int t, At then) {
    state.threads[static_cast<size_t>(t)].at = then;
    if (++state.waiting == threads_) {
      state.waiting = 0;
      for (Thread& thread : state.threads)
        if (thread.at == At::kWait)
          thread.at = At::kLook;
        else if (thread.at == At::kJoined)
          thread.at = At::kEnd;
    }
    before_[index(state)].push_back(from);
  }

  void step(size_t from, const State& state, int t) {
    Thread next = state.threads[static_cast<size_t>(t)];
    switch (next.at) {
      case At::kBody: {
        Thread fails = next;
        fails.at = At::kBreak;
        go(from, state, t, fails);
        if (next.own == barriers_) {
          next.progress = Progress::kFinished;
          next.at = At::kEnd;
        } else {
          next.announced = ++next.own;
          next.at = At::kArrive;
        }
        return go(from, state, t, next);
      }
      case At::kArrive:
        return arrive(from, state, t, At::kWait);
      case At::kLook:
        next.at = state.broken ? At::kBreak : At::kBody;
        return go(from, state, t, next);
      case At::kBreak: {
        State broken = state;
        broken.broken = true;
        next.at = At::kMark;
        return go(from, broken, t, next);
      }
      case At::kMark:
        next.progress = Progress::kLeft;
        next.at = At::kScan;
        return go(from, state, t, next);
      case At::kScan:
        next.at = At::kScanState;
        if (rules_.join && state.threads[next.scan].announced > next.own) next.at = At::kJoin;
        return go(from, state, t, next);
      case At::kScanState: {
        const Progress other = state.threads[next.scan].progress;
        next.at = At::kScan;
        next.all_left = next.all_left && other == Progress::kLeft;
        if (rules_.finished && other == Progress::kFinished) {
          next.at = At::kEnd;
        } else if (++next.scan == threads_) {
          if (rules_.all_left && next.all_left) next.at = At::kEnd;
          next.scan = 0;
          next.all_left = true;
        }
        return go(from, state, t, next);
      }
      case At::kJoin:
        return arrive(from, state, t, At::kJoined);
      case At::kWait:
      case At::kJoined:
      case At::kEnd:
        return;
    }
  }

  int threads_, barriers_;
  Rules rules_;
  std::map<State, size_t> known_;
  std::vector<State> states_;
  std::vector<std::vector<size_t>> before_;
};

}  // namespace

TEST_CASE("region protocol: every interleaving of a small team ends, whoever fails and wherever") {
  for (const auto& [threads, barriers] : {std::pair{1, 2}, {2, 0}, {2, 1}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {4, 1}}) {
    CAPTURE(threads);
    CAPTURE(barriers);
    Model model(threads, barriers, {});
    CHECK(model.always_ends());
    CHECK(model.states() > 5);
  }
}

TEST_CASE("region protocol: each of its three rules is needed") {
  CHECK(!Model(2, 1, {.join = false}).always_ends());
  CHECK(!Model(2, 1, {.finished = false}).always_ends());
  CHECK(!Model(2, 1, {.all_left = false}).always_ends());
}
