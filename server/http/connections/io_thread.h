// IoThread: one I/O thread with its event loop and its connections. Only this thread uses a connection, so it needs no
// lock. The exception is a thread that holds a request: until HttpConnection::notify() it may use the request's reader
// and transport.
//
// An iteration of the loop has three parts: received requests are read and run, results of replica threads are encoded,
// and the answers are sent together. A client that is faster than the server sleeps until an answer wakes it, and this
// wake-up costs the sender as much as a receive; of answers that are sent together, only the first one pays it. Longer
// pieces of kernel code and of server code also use the caches better.
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

#include "server/http/access/credentials.h"
#include "server/http/client_clock.h"
#include "server/http/connection_counters.h"
#include "server/http/connections/accepted.h"
#include "server/http/connections/busy_poll.h"
#include "server/http/connections/event_loop.h"
#include "server/http/connections/http_handler.h"
#include "server/http/open_connections.h"
#include "server/http/router.h"
#include "server/support/cached_snapshot.h"
#include "server/support/config.h"
#include "server/support/log_limit.h"
#include "server/support/memory/request_budget.h"

namespace sconce::server::http {

class Listener;
class HttpConnection;

// Objects that the connections of all I/O threads share. They outlive the threads.
struct HttpShared {
  const ServerConfig& config;
  std::vector<ConnectionCounters>& counters;  // one per I/O thread
  OpenConnections& connections;
  RequestBudget& request_memory;
  Credentials& credentials;
  LogLimit &refusals, &failures;  // limit log lines about requests
  NowFunction* now = &std::chrono::steady_clock::now;
};

class IoThread {
 public:
  using Clock = std::chrono::steady_clock;

  // index: selects the I/O thread's counters.
  IoThread(const HttpShared& shared, size_t index);
  ~IoThread();

  EventLoop& loop() noexcept { return loop_; }
  const HttpShared& shared() const noexcept { return shared_; }
  size_t index() const noexcept { return index_; }
  ConnectionCounters& counters() noexcept { return shared_.counters[index_]; }

  // Call this before start(), and with null after stop(), to let go of what the handler holds.
  void answer_by(std::unique_ptr<HttpHandler> handler) noexcept { handler_ = std::move(handler); }
  void start();  // runs the loop on a new thread
  // One iteration of the loop. The thread of start() repeats it; a test calls it instead of start().
  void run_once();
  // Ends the loop, joins the thread and drops the remaining connections.
  void stop();

  // Any thread.
  void serve(Accepted accepted);
  // On the I/O thread: there is work again, so deadlines are checked at every tick.
  void end_rest() noexcept;
  // Call this before start(). The loop calls the listener's look() periodically.
  void watch(Listener& listener) { watched_.push_back(&listener); }

  // On the I/O thread: the connection that has waited longest for its client. A connection between two requests
  // precedes one within a request; connections that were just opened or answered do not count.
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

  // On any thread: closes connections without a request in progress.
  void close_idle();
  // On any thread: closes connections that wait for their client.
  void end_clients(bool tell);

  // For connections, on the I/O thread.
  HttpHandler& handler() noexcept { return *handler_; }
  const CredentialSet& credentials();
  const TlsContext* tls_of(Listeners listener);  // null: no TLS
  std::string_view date() const noexcept { return {date_, 29}; }
  using Connections = std::list<std::unique_ptr<HttpConnection>>;
  void retire(Connections::iterator connection) noexcept;  // deletes it later, not within this call
  // Checks deadlines at this time, if it is before the next tick.
  void wake_by(Clock::time_point time) noexcept { wakes_at_ = std::min(wakes_at_, time); }
  // Calls the connection's go_on() after the events of this iteration, or in the next one.
  void again(HttpConnection& connection) noexcept { again_.push_back(&connection); }
  // The connection's answer is ready; its request began at `began`. True: send it. False: send_answer() will be called
  // soon.
  bool sends_now(HttpConnection& connection, Clock::time_point began, Clock::time_point ready) noexcept;
  // A request went to a replica thread (+1) or came back (-1).
  void lane_requests(int change) noexcept { lane_requests_ += change; }
  // A connection freed large blocks: the next tick returns them to the system.
  void freed_much() noexcept { freed_much_ = true; }

  // Makes the I/O thread call the connection's on_notice(). On any thread; cannot fail. At most one notice per
  // connection may be pending.
  void notify(HttpConnection& connection) noexcept;

 private:
  void run();
  void send_answers() noexcept;
  bool enough_answers() const noexcept;
  void begin(Accepted& accepted, const std::string& peer);
  HttpConnection* find_idlest(Listeners listener, Idle& idle) const noexcept;
  size_t pass_on_notices() noexcept;  // returns their number
  void tick();
  bool nothing_to_do() const noexcept;
  void rest() noexcept;
  void update_date();

  const HttpShared shared_;
  const size_t index_;
  EventLoop loop_;
  std::atomic<HttpConnection*> noticed_{nullptr};  // newest first
  std::atomic<bool> ends_{false};
  Clock::time_point now_{};       // when the last iteration ended
  Clock::time_point wakes_at_{};  // for the next tick
  bool rests_ = false;            // until a connection comes: no ticks wake the thread
  BusyPoll busy_poll_;
  int lane_requests_ = 0;
  bool freed_much_ = false;
  std::unique_ptr<HttpHandler> handler_;  // outlives the connections, whose streams use it
  Connections connections_, retired_;
  // They have capacity for all connections, so adding one does not fail.
  std::vector<HttpConnection*> again_, going_on_, answers_;
  bool sending_ = false;                                 // answers are sent at once
  bool passing_on_ = false;                              // results of replica threads
  bool long_runs_ = false;                               // the last run on this thread was long, so the next one may be
  Clock::time_point oldest_answer_{}, newest_answer_{};  // of answers_
  std::vector<Listener*> watched_;
  CachedSnapshot<CredentialSet> credentials_;
  std::chrono::seconds date_second_{-1};
  char date_[32] = {};
  std::thread thread_;
};

}  // namespace sconce::server::http
