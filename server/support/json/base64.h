// Base64 with padding (RFC 4648 section 4), without line breaks. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/support/text_buffer.h"

namespace sconce::server {

// The maximum number of bytes that a text of this length decodes to.
constexpr size_t base64_decoded_bound(size_t text) noexcept { return text / 4 * 3; }

// Decodes to `out`, which must have room for base64_decoded_bound(text.size()) bytes, and returns the number of bytes.
// nullopt for characters outside the alphabet, bad padding, and bits set after the last byte.
std::optional<size_t> decode_base64(std::string_view text, std::byte* out) noexcept;
// Decodes to a new string.
std::optional<std::string> decode_base64(std::string_view text);

void append_base64(TextBuffer& out, const std::byte* data, size_t bytes);

}  // namespace sconce::server
