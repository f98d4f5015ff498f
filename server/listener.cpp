#include "server/listener.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "sconce/check.h"
#include "server/log.h"

namespace sconce {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds kBackOff{50};

}  // namespace

Listener::Listener(Worker& own, std::vector<Worker*> workers, const Address& address, Listeners kind)
    : own_(own), workers_(std::move(workers)), kind_(kind), acceptor_(own.context()), timer_(own.context()) {
  boost::system::error_code ec;
  tcp::resolver resolver(own.context());
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  SCONCE_CHECK(!ec && !found.empty(), kInvalidArgument, "cannot listen on ", address.host, ":", address.port, ": ",
               ec.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(4096, ec);
  if (!ec) acceptor_.non_blocking(true, ec);
  SCONCE_CHECK(!ec, kIo, "cannot listen on ", address.host, ":", address.port, ": ", ec.message());
}

std::string Listener::address() const {
  boost::system::error_code ec;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(ec);
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

bool Listener::is_loopback() const noexcept {
  boost::system::error_code ec;
  const asio::ip::address address = acceptor_.local_endpoint(ec).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return !ec && address.is_loopback();
}

void Listener::start() { accept(); }

void Listener::accept() {
  if (stopped_) return;
  if (own_.service().connections.load(std::memory_order_relaxed) >= own_.service().config.max_connections)
    return wait();
  Worker& worker = *workers_[next_++ % workers_.size()];
  acceptor_.async_accept(worker.context(), [this, &worker](const boost::system::error_code& ec, tcp::socket socket) {
    if (!ec) {
      worker.serve(std::move(socket), kind_);
      return accept();
    }
    if (ec == asio::error::operation_aborted || stopped_) return;
    // Out of descriptors or memory: that may pass. Anything else concerned the one connection.
    if (ec == asio::error::no_descriptors || ec == boost::system::errc::too_many_files_open_in_system ||
        ec == asio::error::no_buffer_space || ec == asio::error::no_memory) {
      log_warn("connections wait to be accepted: {}", ec.message());
      return wait();
    }
    accept();
  });
}

void Listener::wait() {
  timer_.expires_after(kBackOff);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) accept();
  });
}

void Listener::stop() {
  stopped_ = true;
  timer_.cancel();
  for (;;) {
    boost::system::error_code ec;
    Worker& worker = *workers_[next_++ % workers_.size()];
    tcp::socket socket = acceptor_.accept(worker.context(), ec);
    if (ec) break;
    worker.serve(std::move(socket), kind_);
  }
  boost::system::error_code ec;
  acceptor_.close(ec);
}

}  // namespace sconce
