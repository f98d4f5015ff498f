// RequestParser: Beast's HTTP/1 parser for the header, reduced to the server's needs, and a ChunkDecoder for the body.
// It allocates nothing: texts are views of the parsed buffer until forget_texts(). It refuses ambiguous requests (two
// lengths, a length and chunks, unknown transfer codings, folded lines).
//
// One object parses one request. Used by one thread at a time.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/http/chunk_decoder.h"
#include "server/http/compression.h"
#include "server/http/router.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::http {

struct RequestHeader {
  Method method = Method::kOther;
  bool head_only = false;  // HEAD
  bool http11 = false;
  bool accepts_html = false;
  bool expects_continue = false;
  std::string_view method_text, target;
  std::optional<uint64_t> json_length;  // Inference-Header-Content-Length
  Coding coding = Coding::kIdentity;    // of the request body
  Coding accepts = Coding::kIdentity;   // for compression of the response
  std::string_view request_id, traceparent;
  std::string_view weights, affinity;  // Sconce-Weights, Sconce-Affinity
  // Fields for the admin port; empty: absent.
  std::string_view authorization, origin, host, content_type, content_digest, signature, user_agent, if_none_match;
  // Of a browser's preflight: Access-Control-Request-Method, Access-Control-Request-Headers.
  std::string_view page_method, page_fields;
};

// All texts of a header.
constexpr std::string_view RequestHeader::*kHeadTexts[] = {
    &RequestHeader::method_text,   &RequestHeader::target,         &RequestHeader::request_id,
    &RequestHeader::traceparent,   &RequestHeader::weights,        &RequestHeader::affinity,
    &RequestHeader::authorization, &RequestHeader::origin,         &RequestHeader::host,
    &RequestHeader::content_type,  &RequestHeader::content_digest, &RequestHeader::signature,
    &RequestHeader::user_agent,    &RequestHeader::if_none_match,  &RequestHeader::page_method,
    &RequestHeader::page_fields};

class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  using error_code = boost::beast::error_code;

  explicit RequestParser(uint64_t max_body_bytes);

  const RequestHeader& head() const noexcept { return head_; }
  // Call this before the buffer is reused; the header's texts are empty afterwards.
  void forget_texts() noexcept;
  // Parses the header and then, for a chunked body, the data for collect(). Returns the number of consumed bytes.
  size_t put(boost::asio::const_buffer bytes, error_code& ec);
  bool is_done() const noexcept { return basic_parser::is_done() || chunks_.done(); }
  // Sets the destination of a chunked body.
  void collect(BodyBuffer& body) noexcept { body_ = &body; }
  // Without collect(): decodes bytes of a chunked body from `here` to `room`. `used` bytes are consumed; if `used` is
  // 0, more bytes are needed.
  struct Decoded {
    size_t used = 0, bytes = 0;
  };
  Decoded decode_chunks(std::string_view here, std::span<std::byte> room, error_code& ec);
  // Lowers the constructor's limit; call it before a chunked body is read.
  void limit_body(uint64_t bytes) noexcept { max_body_bytes_ = bytes; }
  // Status and message for an error of put().
  int status(error_code ec) const noexcept;
  std::string_view problem(error_code ec) const noexcept;

 private:
  using string_view = boost::beast::string_view;
  using verb = boost::beast::http::verb;
  using field = boost::beast::http::field;

  void on_request_impl(verb, string_view, string_view, int, error_code&) override;
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field, string_view, string_view, error_code&) override;
  void on_header_impl(error_code&) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override { return body.size(); }
  void on_finish_impl(error_code&) override {}

  void refuse(int status, const char* problem, error_code& ec) noexcept;
  bool is_folded(string_view name, string_view value) const noexcept;
  size_t collect_chunks(std::string_view here, error_code& ec);

  RequestHeader head_;
  std::string_view parsed_;  // the buffer that put() parses
  BodyBuffer* body_ = nullptr;
  ChunkDecoder chunks_;
  uint64_t max_body_bytes_;
  const char* problem_ = nullptr;
  int status_ = 0;
  bool has_host_ = false, has_origin_ = false, has_length_ = false, has_coding_ = false;
};

}  // namespace sconce::server::http
