#include "server/rollout/push/push_ledger.h"

#include <doctest/doctest.h>

#include <utility>

#include "sconce/error.h"

namespace sconce::server::rollout {

using namespace std::chrono_literals;

namespace {

// A ledger with one model, and a clock that the test moves.
struct World {
  PushLedger ledger;
  PushLedger::Clock::time_point now{};
  std::shared_ptr<const void> served = std::make_shared<int>(1);
  PushPlace place{"digits", 1, served};

  void begin(const std::string& id, std::chrono::milliseconds lease = 30s, size_t member = 0) {
    PushTerms terms;
    terms.id = id;
    terms.lease = lease;
    terms.members = {"http://a", "http://b"};
    terms.member = member;
    terms.authorization = "Bearer secret";
    ledger.begin(place, terms, now);
  }
  void stage(const std::string& id, std::chrono::milliseconds lease = 30s, size_t member = 0) {
    begin(id, lease, member);
    ledger.staged(place, id, now);
  }
  PushState state(const std::string& id) const { return ledger.find("digits", 1, id)->state; }
};

ErrorCode code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kIo;  // no function under test throws this
}

std::string words_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("push ledger: a push from its first byte to its way back") {
  World w;
  w.begin("p");
  CHECK(w.state("p") == PushState::kReceiving);
  CHECK(code_of([&] { w.ledger.prepare(w.place, "p", w.now); }) == ErrorCode::kFailedPrecondition);
  w.ledger.staged(w.place, "p", w.now);
  w.ledger.prepare(w.place, "p", w.now);
  w.ledger.prepare(w.place, "p", w.now);
  CHECK(code_of([&] { w.ledger.check_committed(w.place, "p"); }) == ErrorCode::kBusy);
  w.ledger.committed(w.place, "p", 7);
  w.ledger.check_committed(w.place, "p");
  CHECK(w.ledger.find("digits", 1, "p")->weight_version == 7);
  CHECK(code_of([&] { w.ledger.abort(w.place, "p"); }) == ErrorCode::kBusy);
  w.ledger.undone(w.place, "p", 8);
  CHECK(words_of([&] { w.ledger.check_open(w.place, "p"); }) == "push p is over: it was undone by weight version 8");
}

TEST_CASE("push ledger: the authorization stays while a push may have to be undone, and is that of its last request") {
  World w;
  const auto authorization = [&](const char* id) { return w.ledger.find("digits", 1, id)->terms.authorization; };
  w.stage("p");
  w.ledger.authorize(w.place, "p", "Bearer rotated");
  w.ledger.authorize(w.place, "p", "");
  w.ledger.authorize(w.place, "unknown", "Bearer rotated");
  w.ledger.prepare(w.place, "p", w.now);
  w.ledger.committed(w.place, "p", 7);
  CHECK(authorization("p") == "Bearer rotated");
  w.ledger.authorize(w.place, "p", "Bearer again");
  w.ledger.undone(w.place, "p", 8);
  CHECK(authorization("p") == "Bearer again");  // the others are told with it
  w.ledger.authorize(w.place, "p", "Bearer late");
  CHECK(authorization("p") == "Bearer again");
  w.stage("q");
  CHECK(authorization("p") == "Bearer again");
  w.ledger.committed(w.place, "q", 9);
  CHECK(authorization("p").empty());
  CHECK(authorization("q") == "Bearer secret");
  w.stage("r");
  w.ledger.abort(w.place, "r");
  CHECK(authorization("r").empty());
  w.stage("s");
  w.ledger.set_published(w.place, 10);
  CHECK(authorization("q").empty());
  CHECK(authorization("s") == "Bearer secret");
}

TEST_CASE("push ledger: an id that has ended does not begin again") {
  World w;
  CHECK(w.ledger.abort(w.place, "late") == std::nullopt);
  CHECK(words_of([&] { w.begin("late"); }) == "push late is over: it was aborted");
  CHECK(code_of([&] { w.ledger.committed(w.place, "late", 2); }) == ErrorCode::kBusy);
  CHECK(w.ledger.abort(w.place, "late") == PushState::kAborted);
  w.stage("p", 1s);
  w.now += 1s;
  CHECK(w.ledger.expire(w.place, "p", w.now));
  CHECK(words_of([&] { w.begin("p"); }) == "push p is over: it expired");
  CHECK(w.ledger.abort(w.place, "p") == PushState::kExpired);
  CHECK(w.state("p") == PushState::kExpired);
  w.begin("here");
  CHECK(words_of([&] { w.begin("here"); }) == "push here is under way");
  CHECK(code_of([&] { w.ledger.check_open(w.place, "never"); }) == ErrorCode::kNotFound);
}

TEST_CASE("push ledger: a lease ends unless it is renewed") {
  World w;
  PushLedger::Clock::time_point rung{};
  w.ledger.on_deadline([&](PushLedger::Clock::time_point time) { rung = time; });
  w.stage("p", 10s);
  CHECK(rung == w.now + 10s);
  w.now += 9s;
  w.ledger.renew(w.place, "p", w.now);
  w.now += 9s;
  CHECK(w.ledger.due(w.now).empty());
  CHECK_FALSE(w.ledger.expire(w.place, "p", w.now));
  w.ledger.renew(w.place, "p", w.now, 2s);
  CHECK(rung == w.now + 2s);
  w.now += 2s;
  REQUIRE(w.ledger.due(w.now).size() == 1);
  CHECK(w.ledger.expire(w.place, "p", w.now));
  CHECK(w.ledger.due(w.now).empty());
  CHECK_FALSE(w.ledger.next_deadline());
  CHECK(code_of([&] { w.ledger.renew(w.place, "p", w.now); }) == ErrorCode::kBusy);
}

TEST_CASE("push ledger: what is prepared does not expire, except where it is decided") {
  World w;
  w.stage("first", 1s, 0);
  w.stage("second", 1s, 1);
  w.stage("unprepared", 1s, 1);
  w.ledger.prepare(w.place, "first", w.now);
  w.ledger.prepare(w.place, "second", w.now);
  w.now += 1s;
  CHECK(w.ledger.expire(w.place, "first", w.now));
  CHECK(w.ledger.expire(w.place, "unprepared", w.now));
  CHECK_FALSE(w.ledger.expire(w.place, "second", w.now));
  CHECK(w.ledger.find("digits", 1, "second")->in_doubt);
  CHECK(w.ledger.find("digits", 1, "second")->terms.authorization == "Bearer secret");
  w.ledger.postpone("digits", 1, "second", w.now, w.now + 5s);
  CHECK(w.ledger.due(w.now).empty());
  CHECK(*w.ledger.next_deadline() == w.now + 5s);
  // A renewed lease ends the doubt.
  w.ledger.renew(w.place, "second", w.now);
  CHECK_FALSE(w.ledger.find("digits", 1, "second")->in_doubt);
  w.ledger.committed(w.place, "second", 3);
  CHECK(w.state("second") == PushState::kCommitted);
}

TEST_CASE("push ledger: a reload takes what was staged along") {
  World w;
  w.stage("staged");
  w.stage("prepared");
  w.ledger.prepare(w.place, "prepared", w.now);
  w.begin("committed");
  w.ledger.committed(w.place, "committed", 2);
  const PushPlace later{"digits", 1, std::make_shared<int>(2)};
  CHECK(w.ledger.list(later).size() == 3);
  CHECK(w.state("staged") == PushState::kExpired);
  CHECK(w.state("prepared") == PushState::kLost);  // a prepared push may have been committed
  CHECK(w.state("committed") == PushState::kCommitted);
  CHECK(words_of([&] { w.ledger.check_open(later, "prepared"); }) ==
        "push prepared is over: it was lost when the model was loaded again");
}

TEST_CASE("push ledger: requests without an id end the push whose set they touch") {
  World w;
  w.stage("p");
  w.ledger.set_published(w.place, 4);
  CHECK(w.state("p") == PushState::kCommitted);
  CHECK(w.ledger.find("digits", 1, "p")->weight_version == 4);
  w.stage("q");
  w.ledger.set_dropped(w.place);
  CHECK(w.state("q") == PushState::kAborted);
  w.begin("r");
  w.ledger.set_dropped(w.place);  // r has no staged set yet
  CHECK(w.state("r") == PushState::kReceiving);
  w.ledger.forget(w.place, "r");
  CHECK_FALSE(w.ledger.find("digits", 1, "r"));
}

TEST_CASE("push ledger: the last ids of each model are remembered, and all that are under way") {
  World w;
  w.stage("open");
  const PushPlace other{"other", 1, w.served};
  w.ledger.abort(other, "kept");
  for (int i = 0; i < 200; ++i) w.ledger.abort(w.place, "id" + std::to_string(i));
  const std::vector<PushRecord> list = w.ledger.list(w.place);
  CHECK(list.size() == 65);
  CHECK(list.front().terms.id == "open");
  CHECK(list.back().terms.id == "id199");
  CHECK(w.ledger.find("other", 1, "kept"));
  CHECK_FALSE(w.ledger.find("digits", 1, "id100"));
}

TEST_CASE("push ledger: each end is told once, and that a commit was undone") {
  World w;
  std::vector<std::string> told;
  w.ledger.on_end([&](const PushRecord& record) {
    told.push_back(record.terms.id + " " + push_state_name(record.state) + " " + std::to_string(record.weight_version));
    CHECK(w.ledger.find("digits", 1, record.terms.id));  // no lock is held
  });
  const auto take = [&] { return std::exchange(told, {}); };
  w.stage("p");
  CHECK(take().empty());
  w.ledger.committed(w.place, "p", 2);
  CHECK(take() == std::vector<std::string>{"p committed 2"});
  CHECK(code_of([&] { w.ledger.abort(w.place, "p"); }) == ErrorCode::kBusy);
  CHECK(take().empty());
  w.ledger.undone(w.place, "p", 3);
  CHECK(take() == std::vector<std::string>{"p undone 3"});
  w.ledger.abort(w.place, "never");
  w.ledger.abort(w.place, "never");
  CHECK(take() == std::vector<std::string>{"never aborted 0"});
  w.begin("late", 1s);
  CHECK(w.ledger.expire(w.place, "late", w.now + 2s));
  CHECK(take() == std::vector<std::string>{"late expired 0"});
  w.stage("lost");
  w.ledger.prepare(w.place, "lost", w.now);
  (void)w.ledger.list({"digits", 1, std::make_shared<int>(2)});
  CHECK(take() == std::vector<std::string>{"lost lost 0"});
  w.begin("checked");
  w.ledger.forget(w.place, "checked");
  CHECK(take().empty());
}

TEST_CASE("push ledger: what was known before a restart") {
  World w;
  w.stage("here");
  const auto push = [](const char* id, const char* state, uint64_t weight_version, bool stored) {
    weights::StoredPush made;
    made.id = id;
    made.state = state;
    made.weight_version = weight_version;
    made.stored = stored;
    made.label = "five";
    made.members = {"http://a", "http://b"};
    made.member = 1;
    return made;
  };
  const std::vector<weights::StoredPush> stored = {
      push("a", "aborted", 0, false),     push("old", "committed", 2, true), push("try", "committed", 3, false),
      push("good", "committed", 3, true), push("here", "aborted", 0, false), push("odd", "merged", 9, true),
      push("open", "staged", 0, false),   push("a/b", "aborted", 0, false)};
  bool told = false;
  w.ledger.on_end([&](const PushRecord&) { told = true; });
  w.ledger.restore(w.place, stored, 3);
  CHECK_FALSE(told);
  CHECK(w.state("here") == PushState::kStaged);  // what this process knows goes before
  for (const char* id : {"odd", "open", "a/b"}) CHECK_FALSE(w.ledger.find("digits", 1, id));
  const auto is_active = [&](const char* id) { return w.ledger.find("digits", 1, id)->served.lock() == w.served; };
  CHECK(is_active("good"));
  for (const char* id : {"a", "old", "try"}) CHECK_FALSE(is_active(id));
  const PushRecord good = *w.ledger.find("digits", 1, "good");
  CHECK(good.weight_version == 3);
  CHECK(note_of(good).members == stored[3].members);
  CHECK(note_of(good).label == "five");
  w.ledger.check_committed(w.place, "good");
  CHECK(words_of([&] { w.ledger.check_open(w.place, "good"); }) ==
        "push good is over: it was committed as weight version 3");
  CHECK(code_of([&] { w.begin("a"); }) == ErrorCode::kBusy);
  // Another load, which found other weights.
  const PushPlace later{"digits", 1, std::make_shared<int>(2)};
  w.ledger.restore(later, stored, 0);
  CHECK(is_active("good"));
  w.ledger.restore(later, stored, 3);
  CHECK(w.ledger.find("digits", 1, "good")->served.lock() == later.served);
}

TEST_CASE("push ledger: pushes of named sets are none of the model's own weights") {
  World w;
  PushTerms terms;
  terms.id = "s";
  terms.lease = 30s;
  terms.set = "tenant";
  w.ledger.begin(w.place, terms, w.now);
  w.ledger.staged(w.place, "s", w.now);
  // Requests without an id touch the staged set, which it is not.
  w.ledger.set_dropped(w.place);
  w.ledger.set_published(w.place, 3);
  CHECK(w.state("s") == PushState::kStaged);
  w.stage("p");
  w.ledger.set_published(w.place, 4);
  CHECK(w.state("p") == PushState::kCommitted);
  w.ledger.committed(w.place, "s", 4);
  w.ledger.version_changed(w.place, {}, 4, 9);
  CHECK(w.ledger.find("digits", 1, "p")->weight_version == 9);
  CHECK(w.ledger.find("digits", 1, "s")->weight_version == 4);
  CHECK(note_of(*w.ledger.find("digits", 1, "s")).set == "tenant");
  // As many of each kind are remembered.
  for (int i = 0; i < 200; ++i) {
    PushTerms more = terms;
    more.id = "s" + std::to_string(i);
    w.ledger.begin(w.place, more, w.now);
    w.ledger.abort(w.place, more.id);
  }
  CHECK(w.ledger.find("digits", 1, "p"));
  CHECK_FALSE(w.ledger.find("digits", 1, "s"));
  // After another load, a set has the push that filled it, under the number that it has now.
  weights::StoredPush stored;
  stored.id = "s199";
  stored.state = "committed";
  stored.set = "tenant";
  stored.weight_version = 2;
  stored.stored = true;
  const PushPlace later{"digits", 1, std::make_shared<int>(2)};
  w.ledger.restore(later, std::vector{stored}, 0);
  CHECK(w.state("s199") == PushState::kCommitted);
  CHECK(w.ledger.find("digits", 1, "s199")->weight_version == 2);
  CHECK(w.ledger.find("digits", 1, "s199")->served.lock() == later.served);
}

TEST_CASE("push ledger: ids") {
  for (const char* good : {"a", "step-1200", "A.b_c-9"}) CHECK(is_push_id(good));
  CHECK(is_push_id(std::string(64, 'x')));
  CHECK_FALSE(is_push_id(std::string(65, 'x')));
  for (const char* bad : {"", "a b", "a/b", "ä", "a\n", "a,b"}) CHECK_FALSE(is_push_id(bad));
}

}  // namespace sconce::server::rollout
