#include "server/http/connections/listener.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstring>

#include "server/http/connections/listening.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::http {
namespace {

using tcp = boost::asio::ip::tcp;

// Number of connections that are accepted before other events are handled.
constexpr int kAcceptsInARow = 64;
// When to repeat the search for the idlest connection, if a busy I/O thread delays it or memory was short.
constexpr std::chrono::seconds kSearch{1};
constexpr std::chrono::seconds kComplain{10};
// From this number of connections on, their small blocks count in the budget (setting request_memory).
constexpr int64_t kManyConnections = 256;

}  // namespace

Listener::Listener(IoThread& own, std::vector<IoThread*> io_threads, const Address& address, Listeners kind)
    : own_(own), io_threads_(std::move(io_threads)), kind_(kind) {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context);
  endpoint_ = listen_on(acceptor, address);
  socket_ = Descriptor(acceptor.release());
  own_.watch(*this);
}

std::string Listener::address() const { return address_text(endpoint_); }

bool Listener::is_loopback() const noexcept { return http::is_loopback(endpoint_); }

void Listener::start() { accept(); }

// If this fails, the next look() retries.
void Listener::accept() noexcept {
  if (stopped_ || waiting_) return;
  succeeds([this] {
    for (int i = 0; i < kAcceptsInARow; ++i) {
      if (full() && someone_waits()) return make_room();
      if (full() || !accept_one()) return;
    }
    wait_for_next();
  });
}

void Listener::look() noexcept {
  accept();
  if (!waiting_ && !stopped_ && full()) succeeds([this] { wait_for_next(); });
}

bool Listener::full() const noexcept {
  const ServerConfig& config = own_.shared().config;
  return own_.shared().connections.of(kind_) >=
         (kind_ == kPublic ? config.max_connections : config.max_side_connections);
}

bool Listener::someone_waits() noexcept {
  pollfd one{socket_.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// Returns false if no connection is queued, or none can be accepted now.
bool Listener::accept_one() {
  tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  const int descriptor = ::accept4(socket_.get(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) {
    if (kind_ == kPublic)
      own_.shared().request_memory.count_small(own_.shared().connections.of(kPublic) >= kManyConnections);
    Accepted accepted(Descriptor(descriptor), peer, kind_, OpenConnections::Slot(own_.shared().connections, kind_));
    io_threads_[next_++ % io_threads_.size()]->serve(std::move(accepted));
    return true;
  }
  switch (errno) {
    case EAGAIN:
      if (!stopped_) wait_for_next();
      return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: {
      const int why = errno;
      if (const Clock::time_point now = own_.shared().now(); now >= complain_again_) {
        complain_again_ = now + kComplain;
        log_warn("connections wait to be accepted: {}", std::strerror(why));
      }
      if (!stopped_) make_room();
      return false;
    }
    default:
      return true;  // only this connection failed
  }
}

void Listener::wait_for_next() {
  own_.loop().watch_once(socket_.get(), *this);
  waiting_ = true;
}

void Listener::ready(uint32_t) noexcept {
  waiting_ = false;
  accept();
  if (!needs_no_look()) own_.end_rest();
}

// Asks each I/O thread, one after the other, for its idlest connection, then closes the idlest of all.
struct Listener::Search {
  Listener* listener;
  size_t asked = 0;
  IoThread* best = nullptr;
  IoThread::Idle idle{};

  void go_on() {
    const std::vector<IoThread*>& io_threads = listener->io_threads_;
    if (asked < io_threads.size()) {
      IoThread& io_thread = *io_threads[asked++];
      io_thread.loop().call([search = *this, &io_thread]() mutable {
        const IoThread::Idle here = io_thread.idlest(search.listener->kind_);
        if (here.before(search.idle)) {
          search.idle = here;
          search.best = &io_thread;
        }
        search.go_on();
      });
    } else if (best != nullptr) {
      best->loop().call([search = *this] {
        search.best->close_idlest(search.listener->kind_);
        search.end();
      });
    } else {
      end();
    }
  }
  void end() const {
    listener->own_.loop().call([listener = listener, closed = best != nullptr] {
      listener->searching_ = false;
      if (closed) listener->accept();
    });
  }
};

void Listener::make_room() {
  const Clock::time_point now = own_.shared().now();
  if (searching_ && now < search_end_) return;
  Search{this}.go_on();
  searching_ = true;
  search_end_ = now + kSearch;
}

void Listener::stop() {
  stopped_ = true;
  for (bool more = true; more && succeeds([&] { more = accept_one(); });) {
  }
  own_.loop().forget(socket_.get());
  socket_ = Descriptor();
}

}  // namespace sconce::server::http
