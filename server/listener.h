// Listener: accepts connections on one address and hands them to workers in turn. Waits where file descriptors or the
// limit of connections are used up. Confined to the thread of its own worker.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "server/config.h"
#include "server/worker.h"

namespace sconce {

class Listener {
 public:
  // Binds and listens. kIo with address and reason; kInvalidArgument for a host that cannot be resolved.
  Listener(Worker& own, std::vector<Worker*> workers, const Address& address, Listeners kind);

  std::string address() const;  // "127.0.0.1:8000", with the port that was taken
  bool is_loopback() const noexcept;
  void start();  // before own's thread runs, or on it
  // On own's thread: takes what already waits to be accepted, then accepts no more.
  void stop();

 private:
  void accept();
  void wait();

  Worker& own_;
  const std::vector<Worker*> workers_;
  const Listeners kind_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  size_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace sconce
