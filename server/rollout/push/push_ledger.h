// PushLedger: the weight pushes that have an id: those in progress on this server, and the results of the last ones.
//
//   receiving -> staged -> prepared -> committed -> undone
//        \----------\----------\---> aborted, expired; or lost, when the model was reloaded after prepare
//
// A push in progress has a lease, which its coordinator renews. If the lease of a receiving or staged push expires, the
// push ends at once. A prepared push may have been committed on another server: this server asks the others and follows
// them (server/rollout/push_reconciler.h). Only the first server of a push decides alone, because it commits before the
// others.
//
// A push that has ended is remembered, so that a late message of its coordinator cannot restart it; with a store, also
// after a restart. Thread-safe. Callers pass the time.
//
// The authorization of a push stays in memory while its weights may have to be rolled back on all servers, or are
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

namespace sconce::server::rollout {

enum class PushState : int8_t { kReceiving, kStaged, kPrepared, kCommitted, kUndone, kAborted, kExpired, kLost };
const char* push_state_name(PushState state) noexcept;  // "receiving"
std::optional<PushState> push_state_from(std::string_view name) noexcept;

// The coordinator's parameters of a push, sent with the staging request.
struct PushTerms {
  std::string id;
  std::chrono::milliseconds lease{};
  std::vector<std::string> members;  // URLs of the servers' admin ports, the deciding one first; may be empty
  size_t member = 0;                 // index of this server in members
  std::string label;                 // of its set
  std::string set;                   // the named set that the push fills; empty: the model's own weights
  std::string authorization;  // the field of the push's last request, for requests to the other members; a secret
};

// A model's version and the object that serves it: after a reload, the set that the earlier object had staged is gone.
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
  Clock::time_point
      deadline{};         // of a push in progress: when its lease expires, or when the other servers are asked again
  bool in_doubt = false;  // prepared, and the lease has expired
  uint64_t weight_version = 0;  // the weight version after commit or undo
  bool told = false;            // on_end() was called for this end
  bool open() const noexcept { return state <= PushState::kPrepared; }
  // Whether another server of the push decides.
  bool follows() const noexcept { return terms.member != 0 && state == PushState::kPrepared; }
};

class PushLedger {
 public:
  using Clock = PushRecord::Clock;

  // Called, with no lock held, when a lease may expire earlier than all others.
  void on_deadline(std::function<void(Clock::time_point)> hook);
  // Called, with no lock held, for each push that has ended, and again when a committed push was undone. Must not
  // throw.
  void on_end(std::function<void(const PushRecord&)> hook);
  // Adds pushes that had ended when the model was loaded. active: the active weight version since the load, if the set
  // was stored under this version; 0: it was not. Pushes of named sets get the current version of their set.
  void restore(const PushPlace& place, std::span<const weights::StoredPush> pushes, uint64_t active);

  // All of the following throw kNotFound for an unknown id, and kBusy, with the result, for a push that has ended in
  // another way.

  // A new push starts to arrive. kBusy for a known id.
  void begin(const PushPlace& place, PushTerms terms, Clock::time_point now);
  // Renews the lease, because bytes arrived or the coordinator asked for it. lease: the new duration; zero: unchanged.
  void renew(const PushPlace& place, std::string_view id, Clock::time_point now, std::chrono::milliseconds lease = {});
  void check_open(const PushPlace& place, std::string_view id) const;
  void check_committed(const PushPlace& place, std::string_view id) const;
  void staged(const PushPlace& place, std::string_view id, Clock::time_point now);
  // From now on the push does not expire without asking the other servers, unless this server decides. A repeated call
  // renews the lease.
  void prepare(const PushPlace& place, std::string_view id, Clock::time_point now);
  void committed(const PushPlace& place, std::string_view id, uint64_t weight_version);
  void undone(const PushPlace& place, std::string_view id, uint64_t weight_version);
  // A request of the push came with this field; the other members are asked with it from now on. A token may therefore
  // be rotated during a push. Does nothing for an empty field or an unknown push.
  void authorize(const PushPlace& place, std::string_view id, std::string_view authorization);
  // Ends a push in progress, and records an unknown one, so that it cannot start later. kBusy for a committed push.
  // Returns the previous state.
  std::optional<PushState> abort(const PushPlace& place, std::string_view id);

  // Ends a push of the model's own weights that is in progress, because a request without its id dropped or published
  // its set.
  void set_dropped(const PushPlace& place);
  void set_published(const PushPlace& place, uint64_t weight_version);
  // The active set, or a named set, has a new weight version.
  void version_changed(const PushPlace& place, std::string_view set, uint64_t from, uint64_t to) noexcept;
  // Removes a push that only checked its weights and that its coordinator does not know. Does nothing if the push is
  // unknown.
  void forget(const PushPlace& place, std::string_view id) noexcept;

  // If the lease has expired: ends the push and returns true if it may expire without asking; otherwise the push is in
  // doubt.
  bool expire(const PushPlace& place, std::string_view id, Clock::time_point now);
  // For a push that was due but could not be reconciled: sets its next time.
  void postpone(std::string_view model, int64_t version, std::string_view id, Clock::time_point now,
                Clock::time_point when) noexcept;

  std::optional<PushRecord> find(std::string_view model, int64_t version, std::string_view id) const;
  std::vector<PushRecord> list(const PushPlace& place);  // in the order in which they started
  std::vector<PushRecord> due(Clock::time_point now) const;
  std::optional<Clock::time_point> next_deadline() const;

 private:
  static constexpr size_t kMaxEnded =
      weights::Journal::kMaxPushes;  // of a model, ended; the same number for its named sets

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

// The stored record of a push that has ended.
weights::StoredPush note_of(const PushRecord& record);

// 1 to 64 letters, digits, '.', '_' and '-'.
bool is_push_id(std::string_view text) noexcept;

}  // namespace sconce::server::rollout
