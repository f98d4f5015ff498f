// Listener: accepts connections on one address and assigns them to I/O threads round-robin. At its limit of connections
// it closes the idlest one for a new one; if descriptors or memory are short it waits. It never stops listening because
// of an error. Used only on its own I/O thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/http/connections/event_loop.h"
#include "server/http/connections/io_thread.h"
#include "server/support/config.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::http {

class Listener final : private EventLoop::Watcher {
 public:
  // Binds and listens. kIo with address and reason; kInvalidArgument for a host that cannot be resolved.
  Listener(IoThread& own, std::vector<IoThread*> io_threads, const Address& address, Listeners kind);

  std::string address() const;  // "127.0.0.1:8000", with the port that the system chose
  bool is_loopback() const noexcept;
  void start();  // call this before own's thread runs
  // On own's thread: accepts connections that are already queued, then no more.
  void stop();
  // On own's thread, periodically: resumes after a wait, if possible.
  void look() noexcept;
  // On own's thread: whether look() would do nothing, because the loop reports the next connection, or none is wanted.
  bool needs_no_look() const noexcept { return waiting_ || stopped_; }

 private:
  using Clock = IoThread::Clock;
  struct Search;

  void ready(uint32_t events) noexcept override;
  void accept() noexcept;
  bool accept_one();
  void wait_for_next();
  bool full() const noexcept;
  bool someone_waits() noexcept;
  void make_room();

  IoThread& own_;
  const std::vector<IoThread*> io_threads_;
  const Listeners kind_;
  Descriptor socket_;
  boost::asio::ip::tcp::endpoint endpoint_;  // with the port that the system chose
  size_t next_ = 0;
  bool waiting_ = false;    // the loop reports the next connection
  bool searching_ = false;  // for the idlest connection
  bool stopped_ = false;
  Clock::time_point search_end_{}, complain_again_{};
};

}  // namespace sconce::server::http
