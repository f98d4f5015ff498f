// GET /: what is served, with requests that work when they are pasted, and where the rest is.
#pragma once

#include <string>
#include <string_view>

#include "server/api/examples.h"
#include "server/registry/repository.h"

namespace sconce::server {

struct PageFacts {
  Reach reach;
  std::string console;  // its URL; empty: the admin listener is off
  bool ready = false;
};

// url: as the listener has it, "http://0.0.0.0:8000". host: what the client calls this host, as in its request; empty
// or not fit for an example: unknown. same: the client asked that listener. Returns the URL that the client can use.
std::string url_for(std::string_view url, std::string_view host, bool same);

std::string page_text(const Catalog& catalog, const PageFacts& facts);
std::string page_html(const Catalog& catalog, const PageFacts& facts);

// Fields of the page's answer: it runs nothing, loads its stylesheet alone, and no other site can frame it.
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nVary: Accept\r\n"
    "Cache-Control: no-cache\r\n";

}  // namespace sconce::server
