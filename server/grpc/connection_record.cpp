#include "server/grpc/connection_record.h"

namespace sconce::server::rpc {

ConnectionRecord::Why ConnectionRecord::count(const ConnectionLook& now, Clock::time_point time,
                                              const Limits& limits) noexcept {
  const auto more = [](uint64_t after, uint64_t before) { return after > before ? after - before : 0; };
  const GrpcTraffic &traffic = now.traffic, &before = last_.traffic;
  const uint64_t messages = more(traffic.messages, before.messages);
  const auto streams = static_cast<double>(more(traffic.streams, before.streams));
  const auto failed = static_cast<double>(more(traffic.failed, before.failed));
  const auto succeeded = static_cast<double>(more(traffic.succeeded, before.succeeded));
  const uint64_t bytes = more(now.received, last_.received);
  const double seconds = std::chrono::duration<double>(time - looked_).count();
  last_ = now;
  looked_ = time;

  const auto most_empty = static_cast<double>(limits.empty_streams);
  const double forgiven = most_empty * seconds / std::chrono::duration<double>(kWindow).count();
  debt_.empty =
      std::max(0.0, debt_.empty - forgiven - succeeded + std::max(streams - static_cast<double>(messages), failed));

  const double free = static_cast<double>(kFreeRate) * seconds;
  debt_.bytes = messages > 0 ? 0 : std::max(0.0, debt_.bytes - free + static_cast<double>(bytes));

  if (messages > 0) useful_ = time;
  if (open() == 0) {
    stalls_ = Clock::time_point::max();
  } else if (messages > 0 || stalls_ == Clock::time_point::max()) {
    stalls_ = limits.pace.first(time);
  } else {
    stalls_ = limits.pace.next(stalls_, time, bytes);
  }
  if (time < stalls_) suspicions_ = 0;

  // Calls in progress have not sent their messages yet.
  if (debt_.empty > most_empty + static_cast<double>(open())) return Why::kEmptyStreams;
  const auto allowed =
      static_cast<double>(kFreeBytes) + static_cast<double>(1 + open()) * static_cast<double>(limits.message);
  return debt_.bytes > allowed ? Why::kBytes : Why::kNone;
}

}  // namespace sconce::server::rpc
