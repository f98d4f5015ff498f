#include "server/rollout/work/download.h"

#include <poll.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "sconce/check.h"
#include "server/http/transport.h"

namespace sconce::server::rollout {
namespace {

// Delay until a shutdown is noticed while the client reads nothing.
constexpr std::chrono::milliseconds kSlice{50};

}  // namespace

void Download::send(std::span<const std::byte> bytes, const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  check();
  Clock::time_point end = Clock::now() + idle_;
  while (!bytes.empty()) {
    boost::system::error_code ec;
    const boost::asio::const_buffer left(bytes.data(), bytes.size());
    const size_t sent = transport_.write_some({&left, &left + 1}, ec);
    if (!ec) {
      sent_ += sent;
      bytes = bytes.subspan(sent);
      end = Clock::now() + idle_;
      continue;
    }
    SCONCE_CHECK(ec == boost::asio::error::would_block || ec == boost::asio::error::try_again, kCancelled,
                 "the client closed the connection after ", sent_, " bytes");
    SCONCE_CHECK(Clock::now() < end, kDeadlineExceeded, "the client took nothing more after ", sent_, " bytes");
    check();
    pollfd one{transport_.descriptor(), transport_.poll_events(), 0};
    (void)::poll(&one, 1, static_cast<int>(kSlice.count()));
  }
}

}  // namespace sconce::server::rollout
