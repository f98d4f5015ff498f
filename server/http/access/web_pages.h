// What a page in a browser may make it send here, and read of the answer. A browser sends requests to any address for
// any page; it says in Origin where the page is from, and in Host under which name the page knows this server.
//
// Pure, and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

// Whether this name of the server is one that no foreign page can give it: an address, localhost, or one of `allowed`
// (without a port; "*": any name). A page whose own name was made to point at this server (DNS rebinding) has that name
// in Host. host: of a request, may have a port; empty: HTTP/1.0 without the field, which no browser sends.
bool is_own_host(std::string_view host, std::span<const std::string> allowed);

// Whether the page came from the server that its request's Host names, and that is this one.
bool is_own_page(std::string_view origin, std::string_view host, std::span<const std::string> allowed);

// Cross-origin resource sharing (the Fetch standard): pages of which origins may read answers.
class CorsRule {
 public:
  // origins: SCHEME://HOST[:PORT] each, or "*" alone; empty: none. kInvalidArgument.
  explicit CorsRule(std::vector<std::string> origins);

  bool on() const noexcept { return !origins_.empty(); }
  bool allows(std::string_view origin) const noexcept;
  // Header fields, each with CRLF, that let a page of `origin` read an answer. An origin that is not allowed, or empty,
  // gets none but Vary, which keeps caches from giving its answer to others.
  void write_fields(std::string_view origin, std::string& fields) const;
  // For the answer to a preflight of an allowed origin. requested: its Access-Control-Request-Headers, which are all
  // allowed, if they are short. methods: "GET, POST".
  void write_preflight(std::string_view origin, std::string_view methods, std::string_view requested,
                       std::string& fields) const;
  // The most bytes that either writes.
  static constexpr size_t kMaxBytes = 900;

 private:
  std::vector<std::string> origins_;
  bool any_ = false;
};

}  // namespace sconce::server
