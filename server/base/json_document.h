// JSON documents, built as values.
#pragma once

#include "package_format/text/json_value.h"

namespace sconce::server {

// The value as text. Bytes that are not UTF-8 (from a client or a package) become U+FFFD.
inline std::string dump(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace sconce::server
