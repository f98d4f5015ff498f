#include "server/upload.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "sconce/check.h"

namespace sconce {
namespace {

using Clock = std::chrono::steady_clock;

// Small enough for what looks at the bytes next to find them in the cache.
constexpr size_t kPiece = 1024 * 1024;
// How soon a cancellation is seen while nothing arrives.
constexpr std::chrono::milliseconds kSlice{50};
constexpr uint64_t kDiscardBytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds kDiscardTime{5};
constexpr int kDiscardIdleMs = 250;

}  // namespace

void Upload::invite() noexcept {
  if (!waited_for_) return;
  waited_for_ = false;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // A client that waits for this has room for it; one that does not take it will not send the body.
  (void)::send(socket_, kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

size_t Upload::read(std::span<std::byte> to, const std::function<void()>& check) {
  check();
  if (taken_ < first_.size()) {
    const size_t bytes = std::min(to.size(), first_.size() - static_cast<size_t>(taken_));
    std::memcpy(to.data(), first_.data() + taken_, bytes);
    taken_ += bytes;
    return bytes;
  }
  const size_t want = static_cast<size_t>(std::min<uint64_t>({to.size(), left(), kPiece}));
  const Clock::time_point end = Clock::now() + timeout_;
  for (;;) {
    const ssize_t got = ::recv(socket_, to.data(), want, MSG_DONTWAIT);
    if (got > 0) {
      taken_ += static_cast<uint64_t>(got);
      received_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      closed_ = true;
      SCONCE_FAIL(kCancelled, "the client closed the connection after ", taken_, " of ", length_, " bytes");
    }
    if (Clock::now() >= end) {
      timed_out_ = true;
      SCONCE_FAIL(kDeadlineExceeded, "nothing more of the body arrived after ", taken_, " of ", length_, " bytes");
    }
    pollfd wait{socket_, POLLIN, 0};
    (void)::poll(&wait, 1, kSlice.count());
    check();
  }
}

void Upload::discard() noexcept {
  if (closed_ || timed_out_ || waited_for_ || left() > kDiscardBytes) return;
  taken_ = std::max<uint64_t>(taken_, first_.size());
  const Clock::time_point end = Clock::now() + kDiscardTime;
  const std::unique_ptr<char[]> scratch(new (std::nothrow) char[65536]);
  while (scratch && left() > 0 && Clock::now() < end) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(left(), 65536));
    const ssize_t got = ::recv(socket_, scratch.get(), want, MSG_DONTWAIT);
    if (got > 0) {
      taken_ += static_cast<uint64_t>(got);
      received_ += static_cast<uint64_t>(got);
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd wait{socket_, POLLIN, 0};
      if (::poll(&wait, 1, kDiscardIdleMs) == 0) return;
    } else {
      closed_ = true;
      return;
    }
  }
}

}  // namespace sconce
