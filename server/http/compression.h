// gzip and zlib ("deflate") for whole bodies: Content-Encoding of requests, Accept-Encoding of responses. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/http/response.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::http {

enum class Coding : int8_t { kIdentity, kGzip, kDeflate };

// The coding of a Content-Encoding field; nullopt for an unknown coding or several codings.
std::optional<Coding> coding_from_name(std::string_view name) noexcept;

// The supported coding that an Accept-Encoding field prefers: the highest q, and the first of equals. kIdentity if the
// field names neither gzip nor deflate; '*' does not count.
Coding accepted_coding(std::string_view field) noexcept;

// aligned_at: as in BodyBuffer::prepare. kInvalidArgument if the data are corrupt, truncated or followed by other
// bytes. kTooLarge beyond `limit` bytes; no more than `limit` bytes are written.
void decompress(Coding coding, const BodyBuffer& body, size_t aligned_at, uint64_t limit, BodyBuffer& plain);

// Compresses text and segments into one text, unless the result is no smaller. json_length still counts uncompressed
// bytes.
void compress(Coding coding, Response& response);

}  // namespace sconce::server::http
