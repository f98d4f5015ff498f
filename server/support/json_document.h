// JSON documents, built as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "package_format/text/json_value.h"

namespace sconce::server {

// The value as text. Bytes that are not UTF-8 (from a client or a package) become U+FFFD.
std::string dump(const OrderedJson& value);
// null for infinity and NaN, which JSON does not have.
OrderedJson number_or_null(double value);
// A non-negative integer member of an object. The library's own conversion would wrap other numbers. kInvalidArgument
// names the member.
uint64_t unsigned_at(const OrderedJson& object, const char* name);
// Parses a text of the server's own, which must be valid JSON.
OrderedJson parse_document(std::string_view text);

}  // namespace sconce::server
