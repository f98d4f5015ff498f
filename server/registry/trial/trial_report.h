// The report of a trial: a line of JSON for each step, written when the step ends. The parent trusts nothing: shapes,
// numbers and texts are bounded here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::registry {

struct TrialReport {
  std::optional<WarmUp> warm_up;
  std::optional<scheduling::OutputProbe> outputs;
  std::string outputs_problem;  // why the run for the outputs failed
  scheduling::InvarianceFinding rows;
  std::optional<std::string> inputs;  // empty: the run on dummy inputs succeeded; else the reason of its failure
};

// The line of one step.
std::string warm_up_line(const WarmUp& run);
std::string outputs_line(const scheduling::OutputProbe& probe);
std::string outputs_line(std::string_view problem);
std::string rows_line(const scheduling::InvarianceFinding& rows);
std::string inputs_line(std::string_view problem);

// Later lines of a step replace earlier lines. kInvalidArgument for an invalid report.
TrialReport read_trial_report(std::span<const std::string> lines);
// Reads the report of a child that has ended; an invalid report becomes empty. Returns the reason for which it may be
// incomplete, as a continuation of "its trial in a child process"; empty: it is complete.
std::string read_trial_end(const TrialEnd& end, TrialReport& report);

}  // namespace sconce::server::registry
