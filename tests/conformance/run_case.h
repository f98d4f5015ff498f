// Does the steps of a case on a Model and says what differs. Public API only.
#pragma once

#include <string>

#include "tests/conformance/case.h"

namespace sconce::conformance {

struct Outcome {
  enum class Status { kPassed, kFailed, kSkipped };
  Status status = Status::kPassed;
  std::string reason;
  double seconds = 0;
};

// Why the case cannot run on this host; empty where it can.
std::string reason_to_skip(const Case& c);
// Never throws for what the case or the model does; a model that crashes takes the process with it.
Outcome run_case(const Case& c);

}  // namespace sconce::conformance
