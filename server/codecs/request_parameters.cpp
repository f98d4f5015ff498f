#include "server/codecs/request_parameters.h"

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
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

bool read_sequence_parameter(JsonCursor& json, std::string_view name, scheduling::SequenceParameters& sequence) {
  if (!name.starts_with("sequence_")) [[likely]]
    return false;
  if (name == "sequence_id") {
    if (json.peek() == '"') {
      set_sequence_text(json.string("'sequence_id'"), sequence);
    } else {
      sequence.id.number = json.unsigned_integer("'sequence_id'");
      sequence.id.text.clear();
    }
  } else if (name == "sequence_start") {
    sequence.start = json.boolean("'sequence_start'");
  } else if (name == "sequence_end") {
    sequence.end = json.boolean("'sequence_end'");
  } else {
    return false;
  }
  return true;
}

void set_sequence_text(std::string_view text, scheduling::SequenceParameters& sequence) {
  SCONCE_CHECK(text.size() <= scheduling::SequenceId::kMaxText, kInvalidArgument, "sequence_id: ", text.size(),
               " bytes are too many, ", scheduling::SequenceId::kMaxText, " is the most");
  sequence.id.text.assign(text);
  sequence.id.number = 0;
}

void skip_parameter(JsonCursor& json, std::string_view name) {
  const char first = json.peek();
  SCONCE_CHECK(first != '{' && first != '[', kInvalidArgument, "parameter '", excerpt(name),
               "' must be a string, a number or a boolean");
  json.skip();
}

}  // namespace sconce::server::codecs
