// gzip and zlib ("deflate") over whole bodies: Content-Encoding of requests, Accept-Encoding of answers. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/http/response.h"
#include "server/memory/request_memory.h"

namespace sconce::server {

enum class Coding : int8_t { kIdentity, kGzip, kDeflate };

// Of a Content-Encoding field; nullopt for a coding that is not known, or several.
std::optional<Coding> coding_from_name(std::string_view name) noexcept;

// The coding that an Accept-Encoding field likes best of ours: the highest q, the first of equals; kIdentity where
// neither gzip nor deflate is named. '*' names nothing.
Coding accepted_coding(std::string_view field) noexcept;

// aligned_at: see BodyBuffer::prepare. kInvalidArgument for what is damaged, cut short or followed by other bytes;
// kTooLarge beyond `limit` bytes, of which no more are ever written.
void decompress(Coding coding, const BodyBuffer& body, size_t aligned_at, uint64_t limit, BodyBuffer& plain);

// Text and segments become one compressed text, unless that is no smaller. json_length goes on counting plain bytes.
void compress(Coding coding, Response& response);

}  // namespace sconce::server
