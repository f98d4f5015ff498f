// Feed: the events for one reader of an event stream. The connection's I/O thread calls it at every tick, and whenever
// the client has received the last piece. A slow reader therefore skips outdated events. Used only on that thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "server/support/text_buffer.h"

namespace sconce::server::console {

class OverviewSource;

class Feed {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Feed() = default;
  // Appends the events that are new at this time, if there are any. The first call always appends something.
  virtual void append(TextBuffer& text, Clock::time_point now) = 0;
};

// A handler that starts a stream. overview: of the I/O thread, outlives the feed. kInvalidArgument for the query.
using OpenFeed = std::unique_ptr<Feed>(OverviewSource& overview, std::string_view query);

namespace feeds {

OpenFeed overview, log_lines;

}  // namespace feeds

}  // namespace sconce::server::console
