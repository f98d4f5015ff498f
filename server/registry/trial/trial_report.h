// What a trial reports: a line of JSON for each step, as soon as the step is over. The parent takes nothing on trust:
// shapes, numbers and texts are bounded here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

struct TrialReport {
  std::optional<WarmUp> warm_up;
  std::optional<OutputProbe> outputs;
  std::string outputs_problem;  // why the model did not run for them
  InvarianceFinding rows;
  std::optional<std::string> inputs;  // empty: the run on made-up inputs came to its end; else why not
};

// A line of one step.
std::string warm_up_line(const WarmUp& run);
std::string outputs_line(const OutputProbe& probe);
std::string outputs_line(std::string_view problem);
std::string rows_line(const InvarianceFinding& rows);
std::string inputs_line(std::string_view problem);

// Later lines of a step replace earlier ones. kInvalidArgument for what is no report.
TrialReport read_trial_report(std::span<const std::string> lines);
// Reads the report of a child that has ended, which is empty if it is nonsense. Returns why it may not be complete, in
// words that go on with "its trial in a child process"; empty: it is.
std::string read_trial_end(const TrialEnd& end, TrialReport& report);

}  // namespace sconce::server
