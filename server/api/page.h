// GET /: the served models, with requests that work when pasted, and links.
#pragma once

#include <string>
#include <string_view>

#include "server/api/examples.h"
#include "server/registry/repository.h"

namespace sconce::server::api {

struct PageFacts {
  Reach reach;
  std::string console;  // its URL; empty: the admin listener is off
  bool ready = false;
};

// url: of the listener, "http://0.0.0.0:8000". host: the client's name for this host, from its request; empty or
// unsuitable for an example: unknown. same: the client used that listener. Returns the URL that the client can use.
std::string url_for(std::string_view url, std::string_view host, bool same);

std::string page_text(const registry::Catalog& catalog, const PageFacts& facts);
std::string page_html(const registry::Catalog& catalog, const PageFacts& facts);

// Header fields of the page: it runs no scripts, loads only its stylesheet, and no other site can frame it.
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nVary: Accept\r\n"
    "Cache-Control: no-cache\r\n";

}  // namespace sconce::server::api
