// Listener: accepts connections on one address and hands them to I/O threads in turn. Where its allowance of
// connections is used up, the idlest one makes room for the next; where descriptors or memory are, it waits. Whatever
// fails, it goes on listening. Confined to one I/O thread, its own.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "server/base/config.h"
#include "server/connections/io_thread.h"

namespace sconce::server {

class Listener {
 public:
  // Binds and listens. kIo with address and reason; kInvalidArgument for a host that cannot be resolved.
  Listener(IoThread& own, std::vector<IoThread*> io_threads, const Address& address, Listeners kind);

  std::string address() const;  // "127.0.0.1:8000", with the port that was taken
  bool is_loopback() const noexcept;
  void start();  // before own's thread runs
  // On own's thread: takes what already waits to be accepted, then accepts no more.
  void stop();
  // On own's thread, now and then: goes on if it waits and no longer must.
  void look() noexcept;

 private:
  using Clock = IoThread::Clock;
  struct Search;

  void accept() noexcept;
  bool accept_one();
  void wait_for_next();
  bool full() const noexcept;
  bool someone_waits() noexcept;
  void make_room();

  IoThread& own_;
  const std::vector<IoThread*> io_threads_;
  const Listeners kind_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;  // with the port that was taken
  size_t next_ = 0;
  bool v6_ = false;
  bool waiting_ = false;    // for the next connection: asio will call
  bool searching_ = false;  // for the idlest connection
  bool stopped_ = false;
  Clock::time_point search_end_{}, complain_again_{};
};

}  // namespace sconce::server
