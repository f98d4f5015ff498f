// The console's page: the files of server/console/page, which the build compresses and puts into the program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "server/http/compression.h"
#include "server/http/response.h"

namespace sconce::server {

struct PageFile {
  std::string_view name, type;
  std::string_view tag;  // of an ETag field; a weak one, because it is that of every coding
  std::span<const unsigned char> gzip;
  uint64_t bytes = 0;  // when it is not compressed
};

extern const std::span<const PageFile> kPageFiles;

const PageFile* find_page_file(std::string_view name) noexcept;  // null: there is none
// 200, or 304 if the client has it: known is the request's If-None-Match.
void answer_page_file(const PageFile& file, Coding accepts, std::string_view known, Response& response);

}  // namespace sconce::server
