#include "server/http/response_writer.h"

#include <algorithm>

namespace sconce::server::http {
namespace {

// Tensors of at most this total size become part of the text.
constexpr size_t kCopied = 2048;

}  // namespace

void ResponseWriter::begin(Response& response, Form form, std::string_view date, Pace pace, ClientClock::Time now) {
  pieces_.clear();
  if (!form.head_only) response.join(kCopied);
  const std::string_view head = response.finish(form.http11, form.close, form.head_only, date);
  pieces_.emplace_back(head.data(), head.size());
  bytes_ = head.size();
  if (!form.head_only) {
    for (const Response::Segment& segment : response.segments) {
      if (segment.bytes != 0) pieces_.emplace_back(segment.data, segment.bytes);
      bytes_ += segment.bytes;
    }
  }
  at_ = sent_ = 0;
  writes_ = 0;
  close_ = form.close;
  clock_.begin_phase(now);
  clock_.begin_pace(pace, now);
}

void ResponseWriter::go_on(Response& response, Pace pace) {
  pieces_.clear();
  pieces_.emplace_back(response.text().data() + Response::kHeadRoom, response.text_bytes());
  bytes_ += response.text_bytes();
  at_ = 0;
  clock_.begin_pace(pace);
}

size_t ResponseWriter::write(error_code& ec) {
  ++writes_;
  const size_t sent = transport_.write_some({pieces_.data() + at_, pieces_.data() + pieces_.size()}, ec);
  if (ec) return 0;
  sent_ += sent;
  if (sent_ < bytes_) clock_.keep_pace(sent);
  for (size_t left = sent; left > 0;) {
    boost::asio::const_buffer& piece = pieces_[at_];
    const size_t step = std::min(left, piece.size());
    piece += step;
    left -= step;
    if (piece.size() == 0) ++at_;
  }
  return sent;
}

}  // namespace sconce::server::http
