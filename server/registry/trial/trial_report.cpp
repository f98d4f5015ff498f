#include "server/registry/trial/trial_report.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kMaxOutputs = 65536;
constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxText = 2000;  // bytes

constexpr std::pair<scheduling::InvarianceFinding::Kind, const char*> kFound[] = {
    {scheduling::InvarianceFinding::Kind::kSame, "same"},
    {scheduling::InvarianceFinding::Kind::kDiffers, "differs"},
    {scheduling::InvarianceFinding::Kind::kUnknown, "unknown"}};

OrderedJson json_of(const scheduling::OutputProbe::Run& run) {
  OrderedJson outputs = OrderedJson::array();
  for (const scheduling::OutputProbe::Output& output : run.outputs) {
    if (output.none)
      outputs.push_back(nullptr);
    else
      outputs.push_back({{"dtype", dtype_name(output.dtype)}, {"sizes", output.sizes}});
  }
  return {{"batch", run.batch}, {"outputs", std::move(outputs)}};
}

std::string text_of(JsonCursor& json) {
  return shortened(printable(json.string("a text of a trial's report")), kMaxText);
}

int64_t size_of(JsonCursor& json) {
  const uint64_t size = json.unsigned_integer("a size in a trial's report");
  SCONCE_CHECK(size <= uint64_t{INT64_MAX}, kInvalidArgument, "a size in a trial's report is too large: ", size);
  return static_cast<int64_t>(size);
}

scheduling::OutputProbe::Output read_output(JsonCursor& json) {
  scheduling::OutputProbe::Output output;
  if (json.consume_null()) return output;
  output.none = false;
  json.object("an output", [&](std::string_view key) {
    if (key == "dtype") {
      const std::string_view name = json.string("a dtype");
      const std::optional<DType> dtype = dtype_from_name(name);
      SCONCE_CHECK(dtype, kInvalidArgument, "a trial reports an unknown dtype: ", excerpt(name));
      output.dtype = *dtype;
    } else if (key == "sizes") {
      json.array("sizes", [&](size_t index) {
        SCONCE_CHECK(index < kMaxDimensions, kInvalidArgument, "a trial reports an output of too many dimensions");
        output.sizes.push_back(size_of(json));
      });
    } else {
      fail_member("an output", key);
    }
  });
  return output;
}

scheduling::OutputProbe::Run read_run(JsonCursor& json) {
  scheduling::OutputProbe::Run run;
  json.object("a run", [&](std::string_view key) {
    if (key == "batch") {
      run.batch = size_of(json);
    } else if (key == "outputs") {
      json.array("outputs", [&](size_t index) {
        SCONCE_CHECK(index < kMaxOutputs, kInvalidArgument, "a trial reports too many outputs");
        run.outputs.push_back(read_output(json));
      });
    } else {
      fail_member("a run", key);
    }
  });
  return run;
}

void read_outputs(JsonCursor& json, TrialReport& report) {
  scheduling::OutputProbe probe;
  bool ran = false;
  json.object("outputs", [&](std::string_view key) {
    if (key == "problem") {
      report.outputs_problem = text_of(json);
    } else if (key == "first" || key == "second") {
      (key == "first" ? probe.first : probe.second) = read_run(json);
      ran = true;
    } else {
      fail_member("outputs", key);
    }
  });
  if (ran) report.outputs = std::move(probe);
}

void read_warm_up(JsonCursor& json, TrialReport& report) {
  WarmUp& run = report.warm_up.emplace();
  json.object("warm_up", [&](std::string_view key) {
    if (key == "inputs")
      run.inputs = parse_number<uint64_t>(std::string(json.string("a digest"))).value_or(0);
    else if (key == "problem")
      run.problem = text_of(json);
    else
      fail_member("warm_up", key);
  });
}

scheduling::InvarianceFinding::Kind found_from_name(std::string_view name) {
  for (const auto& [kind, known] : kFound)
    if (known == name) return kind;
  SCONCE_FAIL(kInvalidArgument, "a trial reports an unknown finding of rows: ", excerpt(name));
}

void read_rows(JsonCursor& json, TrialReport& report) {
  scheduling::InvarianceFinding& rows = report.rows;
  rows = {};
  json.object("rows", [&](std::string_view key) {
    if (key == "found")
      rows.kind = found_from_name(json.string("found"));
    else if (key == "reason")
      rows.reason = text_of(json);
    else
      fail_member("rows", key);
  });
  SCONCE_CHECK(rows.kind != scheduling::InvarianceFinding::Kind::kNone &&
                   (rows.kind == scheduling::InvarianceFinding::Kind::kSame) == rows.reason.empty(),
               kInvalidArgument, "a trial reports rows without a reason, or with one too many");
}

}  // namespace

std::string warm_up_line(const WarmUp& run) {
  // A 64-bit number is not safe in JSON.
  return dump(OrderedJson{{"warm_up", {{"inputs", std::to_string(run.inputs)}, {"problem", run.problem}}}});
}

std::string outputs_line(const scheduling::OutputProbe& probe) {
  return dump(OrderedJson{{"outputs", {{"first", json_of(probe.first)}, {"second", json_of(probe.second)}}}});
}

std::string outputs_line(std::string_view problem) { return dump(OrderedJson{{"outputs", {{"problem", problem}}}}); }

std::string rows_line(const scheduling::InvarianceFinding& rows) {
  for (const auto& [kind, name] : kFound)
    if (kind == rows.kind) return dump(OrderedJson{{"rows", {{"found", name}, {"reason", rows.reason}}}});
  SCONCE_FAIL(kInternal, "a trial of rows ends without a finding");
}

std::string inputs_line(std::string_view problem) { return dump(OrderedJson{{"inputs", problem}}); }

TrialReport read_trial_report(std::span<const std::string> lines) {
  TrialReport report;
  for (const std::string& line : lines) {
    JsonCursor json(line);
    json.object("a trial's report", [&](std::string_view key) {
      if (key == "warm_up")
        read_warm_up(json, report);
      else if (key == "outputs")
        read_outputs(json, report);
      else if (key == "rows")
        read_rows(json, report);
      else if (key == "inputs")
        report.inputs = text_of(json);
      else
        fail_member("a trial's report", key);
    });
    json.finish();
  }
  return report;
}

std::string read_trial_end(const TrialEnd& end, TrialReport& report) {
  const std::string nonsense = problem_of([&] { report = read_trial_report(end.lines); });
  if (!nonsense.empty()) report = {};
  return !end.problem.empty() ? end.problem : nonsense.empty() ? std::string() : "reports nonsense: " + nonsense;
}

}  // namespace sconce::server::registry
