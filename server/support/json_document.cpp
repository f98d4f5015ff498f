#include "server/support/json_document.h"

#include <cmath>

#include "sconce/check.h"

namespace sconce::server {

std::string dump(const OrderedJson& value) { return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

OrderedJson number_or_null(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

uint64_t unsigned_at(const OrderedJson& object, const char* name) {
  const auto found = object.find(name);
  SCONCE_CHECK(found != object.end() && found->is_number_unsigned(), kInvalidArgument, "'", name,
               "' must be an integer of 0 or more");
  return found->get<uint64_t>();
}

OrderedJson parse_document(std::string_view text) { return OrderedJson::parse(text); }

}  // namespace sconce::server
