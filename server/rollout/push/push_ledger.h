// PushLedger: the pushes of weights that have an id: those under way on this server, and what became of the last ones.
//
//   receiving -> staged -> prepared -> committed -> undone
//        \----------\----------\---> aborted, expired; or lost, when the model was reloaded after it was prepared
//
// A push that is under way has a lease, which its pusher prolongs. An expired lease frees a receiving or staged push at
// once. A prepared one may have been committed on another server of the push: what becomes of it is decided by asking
// (server/rollout/push_settler.h). Only the first server of a push decides for itself, since it commits before the
// others.
//
// A push that has ended is remembered, so that a late message of its pusher cannot bring it back; where sets are kept,
// over a restart too. Thread-safe. Times are given by the caller.
//
// The authorization of a push stays in memory as long as its weights may have to be rolled back everywhere, or are
// compared with the other servers': until the next push of the same set is committed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/weights/store/weight_journal.h"

namespace sconce::server {

enum class PushState : int8_t { kReceiving, kStaged, kPrepared, kCommitted, kUndone, kAborted, kExpired, kLost };
const char* push_state_name(PushState state) noexcept;  // "receiving"
std::optional<PushState> push_state_from(std::string_view name) noexcept;

// What a pusher says of its push when it stages.
struct PushTerms {
  std::string id;
  std::chrono::milliseconds lease{};
  std::vector<std::string> members;  // URLs of the servers' admin ports, the one that decides first; may be empty
  size_t member = 0;                 // which of them this server is
  std::string label;                 // of its set
  std::string set;                   // the named set that it fills; empty: the model's own weights
  std::string authorization;         // the field of the push's last request, for asking the other members; a secret
};

// A model's version and the object that is served for it: after a reload, what the earlier object had staged is gone.
struct PushPlace {
  std::string model;
  int64_t version = 0;
  std::shared_ptr<const void> served;
};

struct PushRecord {
  using Clock = std::chrono::steady_clock;
  std::string model;
  int64_t version = 0;
  std::weak_ptr<const void> served;
  PushTerms terms;
  PushState state = PushState::kReceiving;
  Clock::time_point deadline{};  // of a push under way: when its lease expires, or when the others are asked again
  bool in_doubt = false;         // prepared, and the lease has expired
  uint64_t generation = 0;       // which it got when it was committed or undone
  bool told = false;             // on_end() has heard of this end
  bool open() const noexcept { return state <= PushState::kPrepared; }
  // Whether another server of the push decides.
  bool follows() const noexcept { return terms.member != 0 && state == PushState::kPrepared; }
};

class PushLedger {
 public:
  using Clock = PushRecord::Clock;

  // Called, with no lock held, whenever a lease may expire earlier than all before.
  void on_deadline(std::function<void(Clock::time_point)> hook);
  // Called, with no lock held, for each push that has ended, and again when a committed one was undone. Must not throw.
  void on_end(std::function<void(const PushRecord&)> hook);
  // Pushes that had ended when the model was loaded. active: the generation that is active since then, if it was kept
  // under this number; 0: it was not. Those of named sets have the generation that their set got now.
  void restore(const PushPlace& place, std::span<const KeptPush> pushes, uint64_t active);

  // Each of these throws kNotFound for an id that is not known, and kBusy, with what became of it, for one that has
  // ended otherwise.

  // A new push begins to arrive. kBusy for an id that is known.
  void begin(const PushPlace& place, PushTerms terms, Clock::time_point now);
  // Prolongs the lease, because bytes arrived or the pusher asked for it. lease: a new one; zero: as before.
  void prolong(const PushPlace& place, std::string_view id, Clock::time_point now,
               std::chrono::milliseconds lease = {});
  void check_open(const PushPlace& place, std::string_view id) const;
  void check_committed(const PushPlace& place, std::string_view id) const;
  void staged(const PushPlace& place, std::string_view id, Clock::time_point now);
  // From now on the push does not expire by itself, unless this server decides. Repeating it prolongs the lease.
  void prepare(const PushPlace& place, std::string_view id, Clock::time_point now);
  void committed(const PushPlace& place, std::string_view id, uint64_t generation);
  void undone(const PushPlace& place, std::string_view id, uint64_t generation);
  // A request of the push came with this field: the other members are asked with it from now on. So a token that is
  // rotated while a push is under way serves. Does nothing for an empty field, or a push that is not known.
  void authorize(const PushPlace& place, std::string_view id, std::string_view authorization);
  // Ends an open push, and notes one that is not known, so that it cannot begin later. kBusy for a committed one.
  // Returns the state that it had.
  std::optional<PushState> abort(const PushPlace& place, std::string_view id);

  // Ends an open push of the model's own weights without its id: its set was dropped or published by a request without
  // one.
  void set_dropped(const PushPlace& place);
  void set_published(const PushPlace& place, uint64_t generation);
  // The active set, or a named one, has got another number.
  void renumbered(const PushPlace& place, std::string_view set, uint64_t from, uint64_t to) noexcept;
  // Removes a push that only checked its weights and that its pusher does not know of. Unlike the others, does nothing
  // if the push is not known.
  void forget(const PushPlace& place, std::string_view id) noexcept;

  // Ends the push if its lease has expired by now, and it may expire by itself: returns whether it did. Otherwise it
  // becomes one in doubt, if its lease has expired.
  bool expire(const PushPlace& place, std::string_view id, Clock::time_point now);
  // For a push that was due but could not be settled: it is due again at this time.
  void postpone(std::string_view model, int64_t version, std::string_view id, Clock::time_point now,
                Clock::time_point when) noexcept;

  std::optional<PushRecord> find(std::string_view model, int64_t version, std::string_view id) const;
  std::vector<PushRecord> list(const PushPlace& place);  // in the order they began
  std::vector<PushRecord> due(Clock::time_point now) const;
  std::optional<Clock::time_point> next_deadline() const;

 private:
  static constexpr size_t kKept = Journal::kMaxPushes;  // of a model, ended; as many again of its named sets

  PushRecord* look_up(std::string_view model, int64_t version, std::string_view id) SCONCE_REQUIRES(mutex_);
  PushRecord& known(const PushPlace& place, std::string_view id) SCONCE_REQUIRES(mutex_);
  PushRecord& under_way(const PushPlace& place, std::string_view id) SCONCE_REQUIRES(mutex_);
  static void notice_reload(PushRecord& record, const PushPlace& place) noexcept;
  PushRecord& add(const PushPlace& place, PushTerms terms) SCONCE_REQUIRES(mutex_);
  static void end(PushRecord& record, PushState state) noexcept;
  void forget_authorizations(const PushRecord& last) noexcept SCONCE_REQUIRES(mutex_);
  void tell_ends() noexcept;
  PushRecord* open_at(const PushPlace& place) noexcept SCONCE_REQUIRES(mutex_);
  void expect(Clock::time_point deadline) const;

  mutable Mutex mutex_;
  std::deque<PushRecord> records_ SCONCE_GUARDED_BY(mutex_);
  std::function<void(Clock::time_point)> hook_;
  std::function<void(const PushRecord&)> end_hook_;
};

// What is kept of a push that has ended.
KeptPush note_of(const PushRecord& record);

// 1 to 64 letters, digits, '.', '_' and '-'.
bool is_push_id(std::string_view text) noexcept;

}  // namespace sconce::server
