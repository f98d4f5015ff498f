#include "server/protocols/request_parameters.h"

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::server {
namespace {

// A century in microseconds, so that adding it to a clock does not overflow.
constexpr uint64_t kMaxTimeout = 100ULL * 366 * 24 * 3600 * 1'000'000;

}  // namespace

bool read_schedule_parameter(JsonCursor& json, std::string_view name, SchedulePolicy& policy) {
  SCONCE_CHECK(!name.starts_with("triton_"), kInvalidArgument, "parameter keys starting with 'triton_' are reserved: '",
               excerpt(name), "'");
  if (name == "priority") {
    policy.priority = json.unsigned_integer(name);
    return true;
  }
  if (name != "timeout") return false;
  const uint64_t timeout = json.unsigned_integer(name);
  SCONCE_CHECK(timeout <= kMaxTimeout, kInvalidArgument, "timeout is out of range: ", timeout, " microseconds");
  policy.timeout = std::chrono::microseconds(timeout);
  return true;
}

void skip_parameter(JsonCursor& json, std::string_view name) {
  const char first = json.peek();
  SCONCE_CHECK(first != '{' && first != '[' && first != 'n', kInvalidArgument, "parameter '", excerpt(name),
               "' must be a string, a number or a boolean");
  json.skip();
}

}  // namespace sconce::server
