#include "server/cli/top/event_stream.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace sconce::server::cli {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events taken(const std::string& text, size_t piece) {
  Events events;
  EventStream stream([&](const std::string& name, const std::string& data) { events.emplace_back(name, data); });
  for (size_t at = 0; at < text.size(); at += piece) stream.take(std::string_view(text).substr(at, piece));
  return events;
}

}  // namespace

TEST_CASE("event stream: events in pieces of any size") {
  const std::string text =
      ": a comment\n\nevent: overview\ndata: {\"a\": 1}\n\nid: 7\r\nevent:line\r\ndata:x\r\ndata:  y\r\n\r\nevent: "
      "nothing\n\ndata: unnamed\n\ndata: not ended\n";
  const Events expected = {{"overview", "{\"a\": 1}"}, {"line", "x\n y"}, {"", "unnamed"}};
  for (size_t piece = 1; piece <= text.size(); ++piece) CHECK(taken(text, piece) == expected);
}

}  // namespace sconce::server::cli
