// RequestReader: makes requests of the bytes of a connection, one after the other: first a head, then the body that
// belongs to it. It never waits. Its owner asks step() whether the bytes that were read are enough; if not, it reads
// more into room() and tells received() how many.
//
//   kNothing --bytes--> kHead --begin_body()--> kFixedBody or kChunkedBody --all bytes--> kWhole --inflate()--> kPlain
//      ^                                                                                    |                     |
//      +--------------------------------------- end() --------------------------------------+---------------------+
//
// What comes behind a request stays in the buffer until end(). Confined to the connection's thread, but for inflate().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/base/config.h"
#include "server/http/client_clock.h"
#include "server/http/input_buffer.h"
#include "server/http/request_parser.h"
#include "server/http/transport.h"
#include "server/http/upload.h"
#include "server/memory/request_memory.h"

namespace sconce::server {

class RequestBudget;

class RequestReader {
 public:
  // What the bytes that are here come to.
  enum class Step : int8_t {
    kMore,     // not enough: read into room()
    kHead,     // the head is here, which is said once: begin_body(), or an answer
    kBody,     // the body is here, which is said once
    kTooLong,  // the body is longer than limit_body() allows
    kRefused,  // the bytes are no request; see refusal()
  };
  struct Refusal {
    int status = 0;
    std::string_view message;  // as long as the request
  };

  // most_body: bytes that a body may have where limit_body() does not say otherwise. config, budget, transport and
  // clock outlive the reader.
  RequestReader(const ServerConfig& config, uint64_t most_body, RequestBudget& budget, Transport& transport,
                ClientClock& clock);
  RequestReader(const RequestReader&) = delete;

  Step step() { return part_ <= Part::kHead ? read_head() : read_body(); }
  // Where the next bytes of the request go; empty: there is no room for them, and refusal() says why. Not while another
  // read is under way. Throws what RequestBudget::take() does.
  std::span<char> room();
  void received(size_t bytes) noexcept;
  // Where bytes go that are read before anybody needs them, while the request is being answered; may be empty.
  std::span<char> room_ahead() noexcept { return buffer_.room(); }
  void received_ahead(size_t bytes) noexcept { buffer_.add(bytes); }
  // Where bytes go that nobody will look at.
  std::span<char> room_for_nothing() noexcept { return buffer_.all(); }
  const Refusal& refusal() const noexcept { return refusal_; }

  // No byte of the next request has come yet.
  bool idle() const noexcept { return part_ == Part::kNothing; }
  bool in_body() const noexcept { return part_ == Part::kFixedBody || part_ == Part::kChunkedBody; }
  // A request has begun whose end was not read: what follows is not the beginning of another one.
  bool unfinished() const noexcept { return part_ > Part::kNothing && part_ < Part::kWhole; }

  // Of the head. Its texts are valid until begin_body().
  const RequestHead& head() const noexcept { return parser_->head(); }
  bool keep_alive() const { return parser_->keep_alive(); }
  uint64_t content_length() const { return parser_->content_length().value_or(0); }
  uint64_t most_body() const noexcept { return most_body_; }
  // The whole body has come with the head.
  bool body_is_here() const { return !parser_->chunked() && content_length() <= buffer_.size(); }
  // For a body in chunks, whose length is seen only while it comes.
  void limit_body(uint64_t bytes) noexcept { parser_->limit_body(bytes); }
  // The request is admitted: invites its body, if the client waits for that, and takes memory for its first bytes.
  // False: the client does not take the invitation. Throws what RequestBudget::take() does.
  bool begin_body();
  // Instead of begin_body(): another thread reads the body. Nothing else may be called until it has, then end_upload().
  UploadSource begin_upload() noexcept { return {&transport_, &*parser_, &buffer_}; }
  void end_upload(bool whole) noexcept;

  // As it came; after inflate(), decompressed.
  const BodyBuffer& body() const noexcept { return part_ == Part::kPlain ? plain_ : body_; }
  // Decompresses the body, if it is compressed, to `most` bytes at most. Any thread.
  void inflate(uint64_t most);
  // The request is over.
  void end() noexcept;

  // Bytes of the largest body since the last trim().
  size_t largest() const noexcept { return largest_; }
  size_t capacity() const noexcept { return std::max(body_.capacity(), plain_.capacity()); }
  // Frees memory of bodies beyond `keep` bytes. No request is under way.
  void trim(size_t keep) noexcept;

 private:
  // How far the request was read. The order matters.
  enum class Part : int8_t {
    kNothing,      // nothing of it is here
    kHead,         // some of its head, or all of it but not all of its body
    kFixedBody,    // its body of known length is being read
    kChunkedBody,  // its body comes in chunks
    kWhole,        // to its end
    kPlain,        // so it was, and plain_ has its body decompressed
  };

  Step read_head();
  Step read_body();
  bool skip_empty_line() noexcept;
  Step refuse(int status, std::string_view message) noexcept;

  const ServerConfig& config_;
  const uint64_t most_body_;
  RequestBudget& budget_;
  Transport& transport_;
  ClientClock& clock_;
  InputBuffer buffer_;  // marked where the head begins that is being parsed
  std::optional<RequestParser> parser_;
  Part part_ = Part::kNothing;
  bool empty_line_ = false;  // one was skipped before this request; another one is an error
  size_t body_bytes_ = 0;    // of a fixed body, in the end
  BodyBuffer body_, plain_;
  size_t largest_ = 0;
  Refusal refusal_;
};

}  // namespace sconce::server
