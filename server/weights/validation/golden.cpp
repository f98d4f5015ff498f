#include "server/weights/validation/golden.h"

#include <fmt/core.h>

#include <cmath>
#include <exception>
#include <utility>

#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/failure.h"
#include "server/support/memory/request_memory.h"
#include "server/support/time_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxGoldenFailures = 8;

// Copies the inputs, because a model may write them.
std::vector<Tensor> inputs_of(const GoldenRequest& request, const scheduling::ModelSignature& interface,
                              TensorScratch& scratch) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Tensor& recorded = request.inputs[i];
    inputs.push_back(scheduling::copy_in_recorded_strides(static_cast<const std::byte*>(recorded.data()),
                                                          recorded.sizes(), recorded.dtype(), interface.spec.inputs[i],
                                                          scratch));
  }
  return inputs;
}

bool is_of_the_set(ErrorCode code) noexcept {
  return code == ErrorCode::kModelFailed || code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnsupported;
}

std::optional<GoldenVerdict::Failure> judge_one(const GoldenRequest& request,
                                                const scheduling::ModelSignature& interface, Rehearsal& rehearsal,
                                                const GoldenTolerance& tolerance) {
  TensorScratch scratch;
  std::vector<Tensor> outputs(interface.outputs.size());
  const std::exception_ptr problem =
      exception_of([&] { rehearsal.run(inputs_of(request, interface, scratch), outputs); });
  if (problem) {
    Failure failure = describe_failure(problem);
    if (!is_of_the_set(failure.code)) std::rethrow_exception(problem);
    GoldenMismatch mismatch;
    mismatch.problem = std::move(failure.message);
    return GoldenVerdict::Failure{request.name, "", std::move(mismatch)};
  }
  for (const GoldenRequest::Output& output : request.outputs)
    if (auto mismatch = compare_golden(output.expected, outputs[output.index], tolerance))
      return GoldenVerdict::Failure{request.name, interface.output_names.name(output.index), std::move(*mismatch)};
  return std::nullopt;
}

std::string text_of(const GoldenVerdict::Failure& failure) {
  std::string text = "request '" + excerpt(failure.request) + "'";
  if (!failure.output.empty()) text += ", output '" + failure.output + "'";
  return text + ": " + failure.mismatch.problem;
}

}  // namespace

GoldenVerdict Golden::judge(const scheduling::ModelSignature& interface, Rehearsal& rehearsal, GoldenVerdict verdict,
                            const std::function<void()>& check) {
  verdict.requests = file_.requests.size();
  // The share is a decimal fraction, and its double may exceed it in the last place.
  verdict.needed = static_cast<size_t>(std::ceil(file_.pass * static_cast<double>(verdict.requests) - 1e-9));
  const Clock::time_point start = Clock::now();
  for (const GoldenRequest& request : file_.requests) {
    check();
    std::optional<GoldenVerdict::Failure> failure = judge_one(request, interface, rehearsal, file_.tolerance);
    if (!failure)
      ++verdict.passed;
    else if (verdict.failures.size() < kMaxGoldenFailures)
      verdict.failures.push_back(std::move(*failure));
  }
  verdict.seconds = Clock::now() - start;
  verdict.time = std::chrono::system_clock::now();
  (verdict.good() ? passed_ : failed_).fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  last_ = verdict;
  return verdict;
}

std::optional<GoldenVerdict> Golden::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

std::string refusal_of(const GoldenVerdict& verdict) {
  return fmt::format("the weights pass {} of {} golden requests, {} must pass: {}", verdict.passed, verdict.requests,
                     verdict.needed, verdict.failures.empty() ? "" : text_of(verdict.failures.front()));
}

OrderedJson verdict_json(const GoldenVerdict& verdict) {
  OrderedJson json = {{"verdict", verdict.good() ? "passed" : "failed"},
                      {"passed", verdict.passed},
                      {"failed", verdict.requests - verdict.passed},
                      {"needed", verdict.needed},
                      {"label", verdict.label}};
  if (!verdict.set.empty()) json["set"] = verdict.set;
  if (!verdict.digest.empty()) json["digest"] = verdict.digest;
  json["time"] = time_text(verdict.time);
  json["seconds"] = verdict.seconds.count();
  json["failures"] = OrderedJson::array();
  for (const GoldenVerdict::Failure& failure : verdict.failures) {
    OrderedJson one = {{"request", failure.request}};
    if (!failure.output.empty()) one["output"] = failure.output;
    one["problem"] = failure.mismatch.problem;
    if (!failure.mismatch.at.empty()) one["at"] = parse_document(failure.mismatch.at);
    if (!failure.mismatch.expected.empty()) {
      one["expected"] = failure.mismatch.expected;
      one["got"] = failure.mismatch.got;
    }
    json["failures"].push_back(std::move(one));
  }
  return json;
}

OrderedJson golden_json(const Golden& golden) {
  const GoldenFile& file = golden.file();
  OrderedJson json = {{"file", file.path.string()},  {"requests", file.requests.size()},
                      {"rtol", file.tolerance.rtol}, {"atol", file.tolerance.atol},
                      {"pass", file.pass},           {"argmax", file.tolerance.argmax}};
  const std::optional<GoldenVerdict> last = golden.last();
  json["last"] = last ? verdict_json(*last) : OrderedJson(nullptr);
  return json;
}

}  // namespace sconce::server::weights
