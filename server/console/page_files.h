// The console's page: the files of server/console/page, which the build compresses and embeds in the program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "server/http/compression.h"
#include "server/http/response.h"

namespace sconce::server::console {

struct PageFile {
  std::string_view name, type;
  std::string_view tag;  // value of the ETag field; a weak tag, because it is the same for every coding
  std::span<const unsigned char> gzip;
  uint64_t bytes = 0;  // uncompressed size
};

extern const std::span<const PageFile> kPageFiles;  // empty: the build has no console

const PageFile* find_page_file(std::string_view name);  // null: unknown name
// 200, or 304 if the client has the file. known: the request's If-None-Match.
void answer_page_file(const PageFile& file, http::Coding accepts, std::string_view known, http::Response& response);

}  // namespace sconce::server::console
