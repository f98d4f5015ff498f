#include "server/rollout/push_reconciler.h"

#include <doctest/doctest.h>

namespace sconce::server::rollout {
namespace {

using Verdict = PushFinding::Verdict;

const PushAnswer kSilent{}, kUnknown{true, {}};
PushAnswer in(PushState state) { return {true, state}; }

Verdict verdict(const std::vector<PushAnswer>& answers, size_t self) { return judge_push(answers, self).verdict; }

}  // namespace

TEST_CASE("push reconciler: what one has committed, all commit") {
  using enum PushState;
  CHECK(verdict({in(kCommitted), {}, in(kPrepared)}, 1) == Verdict::kCommit);
  CHECK(verdict({kSilent, {}, in(kCommitted)}, 1) == Verdict::kCommit);
  // The first server was restarted after it had committed.
  CHECK(verdict({kUnknown, {}, in(kCommitted)}, 1) == Verdict::kCommit);
  CHECK(verdict({in(kLost), {}, in(kCommitted), kSilent}, 1) == Verdict::kCommit);
}

TEST_CASE("push reconciler: what was undone or ended is ended") {
  using enum PushState;
  CHECK(verdict({in(kUndone), {}, in(kCommitted)}, 1) == Verdict::kAbort);
  CHECK(verdict({in(kCommitted), {}, in(kUndone)}, 1) == Verdict::kAbort);
  CHECK(verdict({in(kExpired), {}, kSilent}, 1) == Verdict::kAbort);
  CHECK(verdict({in(kAborted), {}, in(kPrepared)}, 1) == Verdict::kAbort);
  CHECK(verdict({kSilent, {}, in(kAborted)}, 1) == Verdict::kAbort);
}

TEST_CASE("push reconciler: a server in doubt waits as long as the first one may have committed") {
  using enum PushState;
  CHECK(verdict({kSilent, {}, in(kPrepared)}, 1) == Verdict::kWait);
  CHECK(verdict({in(kPrepared), {}, in(kPrepared)}, 1) == Verdict::kWait);
  // The first server does not know the push any more, and a server that does not answer may have committed it.
  CHECK(verdict({kUnknown, {}, kSilent}, 1) == Verdict::kWait);
  CHECK(verdict({in(kLost), {}, kSilent}, 1) == Verdict::kWait);
  CHECK(verdict({kUnknown, {}, in(kPrepared), kUnknown}, 1) == Verdict::kAbort);
  CHECK(verdict({in(kLost), {}, in(kPrepared)}, 1) == Verdict::kAbort);
}

}  // namespace sconce::server::rollout
