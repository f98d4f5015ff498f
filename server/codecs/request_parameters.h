// Parameters of requests in every form. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "server/scheduling/signature/controls.h"
#include "server/support/json_cursor.h"

namespace sconce::server::codecs {

// A request's priority and timeout.
struct SchedulePolicy {
  uint64_t priority = 0;                 // 0: the model's default, 1: the highest
  std::chrono::microseconds timeout{0};  // maximum time in the queue; 0: the model's default
};

// Reads the value at the cursor and returns true if the parameter is priority or timeout. kInvalidArgument, also for
// names that Triton reserves (triton_...).
bool read_schedule_parameter(JsonCursor& json, std::string_view name, SchedulePolicy& policy);

// Likewise for a value that is already a number. kInvalidArgument for reserved names.
bool is_schedule_parameter(std::string_view name);
void set_schedule_parameter(std::string_view name, uint64_t value, SchedulePolicy& policy);

// Reads the value at the cursor and returns true if the parameter identifies the sequence of the request.
bool read_sequence_parameter(JsonCursor& json, std::string_view name, scheduling::SequenceParameters& sequence);
// Sets the sequence's name from a text. kInvalidArgument if it is too long.
void set_sequence_text(std::string_view text, scheduling::SequenceParameters& sequence);

// Skips an unknown parameter. kInvalidArgument for a value other than a string, number or boolean.
void skip_parameter(JsonCursor& json, std::string_view name);

}  // namespace sconce::server::codecs
