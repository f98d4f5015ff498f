// RequestReader: turns the bytes of a connection into requests, each a header and a body. It never blocks. The owner
// calls step(), which reports whether there are enough bytes. If not, the owner reads more bytes into room() and
// reports them with received().
//
//   kNothing --bytes--> kHead --begin_body()--> kFixedBody or kChunkedBody --all bytes--> kWhole --inflate()--> kPlain
//      ^                                                                                    |                     |
//      +--------------------------------------- end() --------------------------------------+---------------------+
//
// Bytes after a request stay in the buffer until end(). Used only on the connection's thread or, until
// HttpConnection::notify(), by the thread that has the request (HttpCall).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/http/client_clock.h"
#include "server/http/input_buffer.h"
#include "server/http/repeated_head.h"
#include "server/http/request_parser.h"
#include "server/http/transport.h"
#include "server/http/upload.h"
#include "server/support/config.h"
#include "server/support/memory/request_budget.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::http {

class RequestReader {
 public:
  // State of the request by the bytes so far.
  enum class Step : int8_t {
    kMore,     // incomplete: read into room()
    kHead,     // the header is complete, reported once: call begin_body() or answer
    kBody,     // the body is complete, reported once
    kTooLong,  // the body exceeds the limit set by limit_body()
    kRefused,  // the bytes are not a valid request; see refusal()
  };
  struct Refusal {
    int status = 0;
    std::string_view message;  // valid during the request
  };

  // most_body: largest body, unless limit_body() lowers it. config, budget, transport and clock outlive the reader.
  // counts: whether the header buffer is counted by the budget as a small block.
  RequestReader(const ServerConfig& config, uint64_t most_body, RequestBudget& budget, Transport& transport,
                ClientClock& clock, bool counts = true);
  RequestReader(const RequestReader&) = delete;

  Step step() { return part_ <= Part::kHead ? read_head() : read_body(); }
  // Where to put the next bytes of the request. If empty, there is no room, and refusal() has the reason. Call this
  // only if no read is in progress. Throws the errors of RequestBudget::take().
  std::span<char> room();
  void received(size_t bytes) noexcept;
  // Where to put bytes that are read ahead while the request is answered; may be empty.
  std::span<char> room_ahead() { return buffer_.room(); }
  void received_ahead(size_t bytes) noexcept { buffer_.add(bytes); }
  // Where to put bytes that are discarded; never empty.
  std::span<char> room_for_nothing() noexcept;
  const Refusal& refusal() const noexcept { return refusal_; }

  // Whether no byte of the next request has arrived.
  bool idle() const noexcept { return part_ == Part::kNothing; }
  bool in_body() const noexcept { return part_ == Part::kFixedBody || part_ == Part::kChunkedBody; }
  // Whether a request was not read to its end, so that the following bytes do not start a new request.
  bool unfinished() const noexcept { return part_ > Part::kNothing && part_ < Part::kWhole; }

  // When the header's first byte was seen. A header that arrived in one piece was complete at that time.
  ClientClock::Time head_time() const noexcept { return head_time_; }
  bool head_in_one_piece() const noexcept { return looks_ == 1; }
  // The header's texts are valid until begin_body().
  const RequestHeader& head() const noexcept { return repeated_ ? last_.head() : parser_->head(); }
  bool keep_alive() const { return repeated_ ? last_.keep_alive() : parser_->keep_alive(); }
  uint64_t content_length() const { return repeated_ ? last_.content_length() : parser_->content_length().value_or(0); }
  // Whether the whole body arrived with the header.
  bool body_is_here() const { return !chunked() && content_length() <= buffer_.size(); }
  // For a chunked body, whose length is known only at its end.
  void limit_body(uint64_t bytes) noexcept {
    if (!repeated_) parser_->limit_body(bytes);
  }
  // Admits the request: sends "100 Continue" if the client waits for it, and reserves memory for the first bytes.
  // Returns false if the client does not accept "100 Continue". Throws the errors of RequestBudget::take().
  bool begin_body();
  // Instead of begin_body(), for a thread that reads the body itself. Until that thread is done, call no other
  // function; then call end_upload().
  UploadSource begin_upload();
  void end_upload(bool whole) noexcept;

  // The body as sent, or decompressed after inflate().
  const BodyBuffer& body() const noexcept { return part_ == Part::kPlain ? plain_ : body_; }
  // Decompresses a compressed body to at most `most` bytes.
  void inflate(uint64_t most);
  // Ends the request.
  void end() noexcept;

  // Bytes of the largest body since the last trim().
  size_t largest() const noexcept { return largest_; }
  size_t capacity() const noexcept { return std::max(body_.capacity(), plain_.capacity()); }
  // Frees body memory beyond `keep` bytes. No request may be in progress.
  void trim(size_t keep) noexcept;
  // Frees the header buffer until the next bytes arrive, if it is empty.
  void rest() noexcept;

 private:
  // How much of the request was read. The order of the values matters.
  enum class Part : int8_t {
    kNothing,      // nothing
    kHead,         // part of the header, or the whole header but not the whole body
    kFixedBody,    // reading a body of known length
    kChunkedBody,  // reading a chunked body
    kWhole,        // the whole request
    kPlain,        // the whole request; plain_ has the decompressed body
  };

  Step read_head();
  Step head_is_here() noexcept;
  Step read_body();
  bool chunked() const { return !repeated_ && parser_->chunked(); }
  bool skip_empty_line() noexcept;
  Step refuse(int status, std::string_view message) noexcept;
  bool open_buffer() noexcept;

  const ServerConfig& config_;
  const uint64_t most_body_;
  RequestBudget& budget_;
  Transport& transport_;
  ClientClock& clock_;
  const bool counts_;
  BudgetShare buffer_share_;             // of the next header buffer, if it counts
  InputBuffer buffer_;                   // the mark is the beginning of the current header
  std::optional<RequestParser> parser_;  // of a header that is not a repetition
  RepeatedHead last_;
  bool begun_ = false;     // the mark is set
  bool repeated_ = false;  // the header equals last_ byte for byte
  Part part_ = Part::kNothing;
  ClientClock::Time head_time_{};
  int looks_ = 0;            // number of times that bytes of the header were examined
  bool empty_line_ = false;  // skipped before this request; a second one is an error
  size_t body_bytes_ = 0;    // the full size of a fixed body
  BodyBuffer body_, plain_;
  size_t largest_ = 0;
  Refusal refusal_;
};

}  // namespace sconce::server::http
