#include "server/base/json_document.h"

namespace sconce::server {

std::string dump(const OrderedJson& value) { return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

OrderedJson parse_document(std::string_view text) { return OrderedJson::parse(text); }

}  // namespace sconce::server
