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

// How a case is run, beside what it says.
struct Manner {
  int graphs = 8;    // CUDA graphs that a replica keeps
  int replicas = 1;  // of the model
  int rounds = 1;    // how often the steps are done, one behind the other: of cases that only run
  int threads = 0;   // that do the same after that at once, each from another step on
};

// Why the case cannot run on this host; empty where it can.
std::string reason_to_skip(const Case& c);
// Never throws for what the case or the model does; a model that crashes takes the process with it.
Outcome run_case(const Case& c, const Manner& manner = {});

}  // namespace sconce::conformance
