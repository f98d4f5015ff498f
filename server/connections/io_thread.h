// IoThread: one I/O thread with its event loop and its connections. Everything about a connection happens on this
// thread, so connections need no locks.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
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

  boost::asio::io_context& context() noexcept { return context_; }
  Service& service() noexcept { return service_; }
  size_t index() const noexcept { return index_; }
  ConnectionCounters& counters() noexcept { return service_.counters[index_]; }

  void start();  // runs the loop on a new thread
  // Ends the loop, joins the thread and drops the connections that are left.
  void stop();

  // Any thread.
  void serve(Accepted accepted);
  // On the I/O thread: something is to be done again, so it looks at its deadlines every tick.
  void end_rest();
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
  void wake_by(Clock::time_point time) noexcept;
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
  void begin(Accepted& accepted, const std::string& peer);
  Session* find_idlest(Listeners listener, Idle& idle) const noexcept;
  void pass_on_notices() noexcept;
  void tick();
  bool nothing_to_do() const noexcept;
  void rest() noexcept;
  void sleep_until(Clock::time_point time);
  void update_date();

  Service& service_;
  const size_t index_;
  std::atomic<Session*> noticed_{nullptr};                // newest first
  alignas(16) std::array<std::byte, 128> notice_memory_;  // for the handler that passes on notices
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer timer_;
  Clock::time_point wakes_at_;
  bool sleeps_ = false;  // waits for the timer, which calls tick(), or rests
  bool rests_ = false;   // until a connection comes: no timer wakes the thread
  BusyPoll busy_poll_;
  int lane_requests_ = 0;
  bool freed_much_ = false;
  OverviewSource overview_{service_};  // outlives the sessions, which read it
  Sessions sessions_, retired_;
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
