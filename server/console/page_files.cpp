#include "server/console/page_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "server/support/memory/request_memory.h"

namespace sconce::server::console {
namespace {

// The page runs only its own scripts and sends requests only to its own server.
constexpr std::string_view kPolicies =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-cache\r\n"
    "Vary: Accept-Encoding\r\n";

// Header fields to which a response refers.
struct Fields {
  std::string plain, gzip;
};

const Fields& fields_of(const PageFile& file) {
  static const std::vector<Fields> all = [] {
    std::vector<Fields> made;
    for (const PageFile& one : kPageFiles) {
      Fields& fields = made.emplace_back();
      fields.plain.append(kPolicies).append("ETag: ").append(one.tag).append("\r\n");
      fields.gzip = fields.plain + "Content-Encoding: gzip\r\n";
    }
    return made;
  }();
  return all[static_cast<size_t>(&file - kPageFiles.data())];
}

}  // namespace

const PageFile* find_page_file(std::string_view name) {
  const auto* const found = std::find_if(kPageFiles.data(), kPageFiles.data() + kPageFiles.size(),
                                         [&](const PageFile& file) { return file.name == name; });
  return found != kPageFiles.data() + kPageFiles.size() ? found : nullptr;
}

void answer_page_file(const PageFile& file, http::Coding accepts, std::string_view known, http::Response& response) {
  const Fields& fields = fields_of(file);
  response.type = file.type;
  response.fields = fields.plain;
  if (known.find(file.tag) != std::string_view::npos) {
    response.status = 304;
    return;
  }
  if (accepts == http::Coding::kGzip) {
    response.fields = fields.gzip;
    response.segments.push_back({file.gzip.data(), file.gzip.size()});
    return;
  }
  BodyBuffer compressed, plain;
  compressed.append(reinterpret_cast<const char*>(file.gzip.data()), file.gzip.size());
  http::decompress(http::Coding::kGzip, compressed, 0, file.bytes, plain);
  response.set_text({reinterpret_cast<const char*>(plain.begin()), plain.size()});
}

}  // namespace sconce::server::console
