#include "server/protocols/request_parameters.h"

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::server {
namespace {

// A century in microseconds, so that adding it to a clock does not overflow.
constexpr uint64_t kMaxTimeout = 100ULL * 366 * 24 * 3600 * 1'000'000;

}  // namespace

bool read_schedule_parameter(JsonCursor& json, std::string_view name, SchedulePolicy& policy) {
  if (!is_schedule_parameter(name)) return false;
  set_schedule_parameter(name, json.unsigned_integer(name), policy);
  return true;
}

bool is_schedule_parameter(std::string_view name) {
  SCONCE_CHECK(!name.starts_with("triton_"), kInvalidArgument, "parameter keys starting with 'triton_' are reserved: '",
               excerpt(name), "'");
  return name == "priority" || name == "timeout";
}

void set_schedule_parameter(std::string_view name, uint64_t value, SchedulePolicy& policy) {
  if (name == "priority") {
    policy.priority = value;
    return;
  }
  SCONCE_CHECK(value <= kMaxTimeout, kInvalidArgument, "timeout is out of range: ", value, " microseconds");
  policy.timeout = std::chrono::microseconds(value);
}

void skip_parameter(JsonCursor& json, std::string_view name) {
  const char first = json.peek();
  SCONCE_CHECK(first != '{' && first != '[' && first != 'n', kInvalidArgument, "parameter '", excerpt(name),
               "' must be a string, a number or a boolean");
  json.skip();
}

}  // namespace sconce::server
