// Which requests a page in a browser may send to this server, and which answers it may read. A browser sends requests
// to any address on behalf of any page. Origin names the source of the page; Host is the name under which the page
// reached this server.
//
// Pure, and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::http {

// Whether no foreign page can have reached the server under this name: an address, localhost, or a name in `allowed`
// (without a port; "*": any name). In DNS rebinding, a foreign page points its own name at this server and sends that
// name in Host. host: of a request, may have a port; empty: HTTP/1.0 without the field, which no browser sends.
bool is_own_host(std::string_view host, std::span<const std::string> allowed);

// Whether the page was served by the host that the request's Host names, and that host is this server.
bool is_own_page(std::string_view origin, std::string_view host, std::span<const std::string> allowed);

// Cross-origin resource sharing (the Fetch standard): the origins whose pages may read answers.
class CorsRule {
 public:
  // origins: each SCHEME://HOST[:PORT], or "*" alone; empty: none. kInvalidArgument.
  explicit CorsRule(std::vector<std::string> origins);

  bool on() const noexcept { return !origins_.empty(); }
  bool allows(std::string_view origin) const noexcept;
  // Writes header fields, each with CRLF, that let a page of `origin` read an answer. An empty or refused origin gets
  // only Vary, which keeps caches from serving its answer to other origins.
  void write_fields(std::string_view origin, std::string& fields) const;
  // For the answer to a preflight of an allowed origin. requested: the preflight's Access-Control-Request-Headers; all
  // are allowed if the field is short. methods: "GET, POST".
  void write_preflight(std::string_view origin, std::string_view methods, std::string_view requested,
                       std::string& fields) const;
  // The most bytes that write_fields() or write_preflight() writes.
  static constexpr size_t kMaxBytes = 900;

 private:
  std::vector<std::string> origins_;
  bool any_ = false;
};

}  // namespace sconce::server::http
