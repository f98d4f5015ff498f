#include "server/base/json_document.h"

#include <cmath>

namespace sconce::server {

std::string dump(const OrderedJson& value) { return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

OrderedJson number_or_null(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

OrderedJson parse_document(std::string_view text) { return OrderedJson::parse(text); }

}  // namespace sconce::server
