// Feed: what one reader of an event stream gets. The connection's I/O thread asks it at every tick, and whenever the
// client has taken what it got, so a reader that is slow skips what became old meanwhile. Used only on that thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "server/support/text_buffer.h"

namespace sconce::server {

class OverviewSource;

class Feed {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Feed() = default;
  // Appends the events that are new at this time; if there are none, nothing. At first it always appends something.
  virtual void append(TextBuffer& text, Clock::time_point now) = 0;
};

// A handler that begins a stream. overview: the I/O thread's, outlives the feed. kInvalidArgument for the query.
using OpenFeed = std::unique_ptr<Feed>(OverviewSource& overview, std::string_view query);

namespace feeds {

OpenFeed overview, log_lines;

}  // namespace feeds

}  // namespace sconce::server
