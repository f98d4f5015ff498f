// A parser for server-sent events that arrive in pieces.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sconce::server::cli {

class EventStream {
 public:
  // event: called with its name and its data, whose lines are separated by '
  // '.
  using Event = std::function<void(const std::string& name, const std::string& data)>;
  explicit EventStream(Event event) : event_(std::move(event)) {}

  // kInvalidArgument if an event is larger than those of the server.
  void take(std::string_view piece);

 private:
  void line(std::string_view text);

  const Event event_;
  std::string line_, name_, data_;
  bool has_data_ = false;
};

}  // namespace sconce::server::cli
