#include "server/cli/top/event_stream.h"

#include "sconce/check.h"

namespace sconce::server::cli {

void EventStream::take(std::string_view piece) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  for (;;) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    SCONCE_CHECK(line_.size() + data_.size() <= kMaxBytes, kInvalidArgument, "the server sends an event without end");
    if (end == std::string_view::npos) return;
    piece.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    line(line_);
    line_.clear();
  }
}

void EventStream::line(std::string_view text) {
  if (text.empty()) {
    if (has_data_) event_(name_, data_);
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field != "data") return;
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace sconce::server::cli
