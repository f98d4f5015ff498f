// Parameters of a request that are the same in every form of it. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "server/base/json_cursor.h"

namespace sconce::server {

// What a request says about its turn.
struct SchedulePolicy {
  uint64_t priority = 0;                 // 0: the model's default, 1: the highest
  std::chrono::microseconds timeout{0};  // in the queue; 0: the model's default
};

// Reads the parameter's value, which the cursor stands at, if it is one of those; else leaves it. kInvalidArgument,
// also for the names that Triton reserves (triton_...).
bool read_schedule_parameter(JsonCursor& json, std::string_view name, SchedulePolicy& policy);

// Passes over a parameter that means nothing here. kInvalidArgument for what no parameter may be: the protocol has
// strings, numbers and booleans.
void skip_parameter(JsonCursor& json, std::string_view name);

}  // namespace sconce::server
