// IoThread: one I/O thread with its event loop and its connections. Everything about a connection happens on this
// thread, so connections need no locks.
//
// A turn of the loop has three parts: what came is read and run, what lanes return is encoded, and the answers are sent
// together. A client that is faster than the server sleeps until an answer wakes it, which costs the sender as much as
// a receive; of answers that are sent together, the first one does. The kernel's code and ours are also run in longer
// pieces, which their caches reward.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "server/admin/service.h"
#include "server/connections/accepted.h"
#include "server/connections/busy_poll.h"
#include "server/connections/event_loop.h"
#include "server/console/overview_source.h"
#include "server/http/router.h"

namespace sconce::server {

class Listener;
class Session;

class IoThread {
 public:
  using Clock = std::chrono::steady_clock;

  // index: selects the I/O thread's counters.
  IoThread(Service& service, size_t index);
  ~IoThread();

  EventLoop& loop() noexcept { return loop_; }
  Service& service() noexcept { return service_; }
  size_t index() const noexcept { return index_; }
  ConnectionCounters& counters() noexcept { return service_.counters[index_]; }

  void start();  // runs the loop on a new thread
  // Ends the loop, joins the thread and drops the connections that are left.
  void stop();

  // Any thread.
  void serve(Accepted accepted);
  // On the I/O thread: something is to be done again, so it looks at its deadlines every tick.
  void end_rest() noexcept;
  // Call this before start(): the loop calls the listener's look() now and then.
  void watch(Listener& listener) { watched_.push_back(&listener); }

  // On the I/O thread: the connection that has waited longest for its client. A connection between two requests comes
  // before one within a request; connections that opened or were answered just now do not count.
  struct Idle {
    bool any = false, between_requests = false;
    Clock::time_point since{};
    bool before(const Idle& other) const noexcept {
      if (!any || !other.any) return any;
      if (between_requests != other.between_requests) return between_requests;
      return since < other.since;
    }
  };
  Idle idlest(Listeners listener) const noexcept;
  void close_idlest(Listeners listener) noexcept;

  // On any thread: closes connections without a request under way.
  void close_idle();
  // On any thread: closes connections that wait for their client.
  void end_clients(bool tell);

  // For sessions, on the I/O thread.
  const Catalog& catalog();  // valid until the handler returns
  const CredentialSet& credentials();
  const TlsContext* tls_of(Listeners listener);  // null: no TLS
  OverviewSource& overview() noexcept { return overview_; }
  std::string_view date() const noexcept { return {date_, 29}; }
  using Sessions = std::list<std::unique_ptr<Session>>;
  void retire(Sessions::iterator session) noexcept;  // deletes it later, not within the call
  // Checks deadlines at this time, if that is before the next tick.
  void wake_by(Clock::time_point time) noexcept { wakes_at_ = std::min(wakes_at_, time); }
  // Calls the session's go_on() in the next turn, after what comes first.
  void again(Session& session) noexcept { again_.push_back(&session); }
  // The session's answer is ready; its request began at `began`. True: send it. False: send_answer() is called soon.
  bool sends_now(Session& session, Clock::time_point began, Clock::time_point ready) noexcept;
  // A session's request went to a lane (+1) or came back (-1).
  void lane_requests(int change) noexcept { lane_requests_ += change; }
  // A session freed large blocks: the next tick returns them to the system.
  void freed_much() noexcept { freed_much_ = true; }

  // Makes the I/O thread call the session's on_notice(). On any thread; cannot fail. At most one notice per session may
  // be under way.
  void notify(Session& session) noexcept;

 private:
  void run();
  void turn();
  void send_answers() noexcept;
  bool enough_answers() const noexcept;
  void begin(Accepted& accepted, const std::string& peer);
  Session* find_idlest(Listeners listener, Idle& idle) const noexcept;
  size_t pass_on_notices() noexcept;  // returns how many
  void tick();
  bool nothing_to_do() const noexcept;
  void rest() noexcept;
  void update_date();

  Service& service_;
  const size_t index_;
  EventLoop loop_;
  std::atomic<Session*> noticed_{nullptr};  // newest first
  std::atomic<bool> ends_{false};
  Clock::time_point now_{};       // when the last turn ended
  Clock::time_point wakes_at_{};  // for the next tick
  bool rests_ = false;            // until a connection comes: no tick wakes the thread
  BusyPoll busy_poll_;
  int lane_requests_ = 0;
  bool freed_much_ = false;
  OverviewSource overview_{service_};  // outlives the sessions, which read it
  Sessions sessions_, retired_;
  // There is room for all sessions, so adding one does not fail.
  std::vector<Session*> again_, going_on_, answers_;
  bool sending_ = false;                                 // answers go at once
  bool passing_on_ = false;                              // what lanes return
  bool long_runs_ = false;                               // the last run of this thread took long, and so may the next
  Clock::time_point oldest_answer_{}, newest_answer_{};  // of answers_
  std::vector<Listener*> watched_;
  std::shared_ptr<const Catalog> catalog_;
  uint64_t catalog_revision_ = 0;
  std::shared_ptr<const CredentialSet> credentials_;
  uint64_t credentials_revision_ = 0;
  std::chrono::seconds date_second_{-1};
  char date_[32] = {};
  std::thread thread_;
};

}  // namespace sconce::server
