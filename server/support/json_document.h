// JSON documents, built as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "package_format/text/json_value.h"

namespace sconce::server {

// The value as text. Bytes that are not UTF-8 (from a client or a package) become U+FFFD.
std::string dump(const OrderedJson& value);
// JSON has neither infinity nor NaN: null in their place.
OrderedJson number_or_null(double value);
// The member of an object, which must be an integer of 0 or more: a conversion by the library would wrap what is not.
// kInvalidArgument names the member.
uint64_t unsigned_at(const OrderedJson& object, const char* name);
// The value of a text of our own, which is JSON.
OrderedJson parse_document(std::string_view text);

}  // namespace sconce::server
