#include "src/runner/warm_up.h"

#include <algorithm>
#include <cstring>
#include <future>

#include "package_format/text/json_text.h"
#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/custom_ops/registry.h"
#include "src/device/dummy_run.h"
#include "src/runner/dummy_inputs.h"
#include "src/runner/runner.h"
#include "src/support/excerpt.h"
#include "src/support/hash.h"
#include "src/support/parse_number.h"
#include "src/tensor/fill.h"

namespace sconce::runner {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 24;  // of a made-up input, on average

std::vector<std::string> texts_of(const std::vector<std::filesystem::path>& paths) {
  return {paths.begin(), paths.end()};
}

}  // namespace

std::string why_no_dummy_run(const ModelSpec& spec) {
  const std::vector<std::string> known =
      spec.proxy_targets.empty() ? std::vector<std::string>() : custom_ops::aten_operators();
  for (const std::string& target : spec.proxy_targets) {
    std::string_view name = target;
    if (name.ends_with(".default")) name.remove_suffix(8);
    if (!std::binary_search(known.begin(), known.end(), name))
      return "it is not known what the operator " + target + " changes";
  }
  for (const std::string& name : spec.imports)
    if (name.ends_with("torch_call_dispatcher")) return "it calls operators by name";
  return {};
}

uint64_t digest_of_inputs(std::span<const Tensor> inputs) {
  uint64_t digest = kFnvStart;
  const auto add = [&](uint64_t word) { digest = mixed_bits(digest ^ word) + kGoldenStep; };
  for (const Tensor& input : inputs) {
    add(static_cast<uint64_t>(input.dtype()));
    for (const int64_t size : input.sizes()) add(static_cast<uint64_t>(size));
    const std::span bytes(static_cast<const std::byte*>(input.storage()->data()), input.storage()->bytes());
    size_t at = 0;
    for (uint64_t word = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
      add(word);
    }
    for (; at < bytes.size(); ++at) add(static_cast<uint64_t>(bytes[at]));
  }
  return digest == 0 ? 1 : digest;
}

std::vector<Tensor> warm_up_inputs(const ModelSpec& spec) {
  std::vector<Tensor> inputs = dummy_inputs(
      spec.inputs, {.most_elements = kMaxElements * static_cast<int64_t>(spec.inputs.size()), .bounds = spec.bounds});
  // Integers are ones: an index of most tables, and a divisor.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool whole = !is_floating(inputs[i].dtype());
    fill(inputs[i], spec.inputs[i].values.nearest(whole ? 1 : 0.5, whole));
  }
  return inputs;
}

WarmUpTrial::WarmUpTrial(const Package& package, const ModelSpec& spec, const LoadOptions& options)
    : child_(options.trial, package,
             SortedJson{{"model", spec.name},
                        {"threads", options.threads},
                        {"op_libraries", texts_of(options.op_libraries)},
                        {"warm_up", true}}
                 .dump(-1, ' ', true, SortedJson::error_handler_t::replace)) {}

WarmUp WarmUpTrial::wait() {
  const TrialEnd end = child_.wait();
  WarmUp learned;
  constexpr int kMaxLevels = 8;
  for (const std::string& line : end.lines) {
    // Deeper than parse_json() takes, or not: it is none of the lines that are looked for.
    const auto opens = std::count_if(line.begin(), line.end(), [](char c) { return c == '{' || c == '['; });
    if (opens > kMaxLevels) continue;
    const SortedJson report = parse_json(line, "a trial's report", kMaxLevels);
    if (!report.is_object() || !report.contains("warm_up")) continue;
    const SortedJson& run = report["warm_up"];
    const auto text = [&](const char* key) {
      return run.is_object() && run.contains(key) && run[key].is_string() ? run[key].get<std::string>() : std::string();
    };
    learned.problem = excerpt(text("problem"));
    if (!learned.problem.empty()) continue;
    learned.inputs = parse_number<uint64_t>(text("inputs")).value_or(0);
  }
  if (learned.inputs == 0 && learned.problem.empty())
    learned.problem = "its trial in a child process " + (end.problem.empty() ? "reports nothing" : end.problem);
  return learned;
}

WarmUp Runner::warm_up(std::optional<uint64_t> expected) {
  WarmUp result{.inputs = 0, .problem = why_no_dummy_run(code_.info.spec)};
  if (!result.problem.empty()) return result;
  ReplicaSlot& slot = pool_.slots()[0];
  const auto run = [&](const WeightVersion& active) {
    if (!slot.thread.cpus().empty()) stay_on(slot.thread.cpus());
    const SlotLock lock(slot);
    const bool failed = aoti_abi::guard("a run on made-up inputs", [&] {
      const std::vector<Tensor> inputs = warm_up_inputs(code_.info.spec);
      result.inputs = digest_of_inputs(inputs);
      SCONCE_CHECK(!expected || *expected == result.inputs, kFailedPrecondition,
                   "a child process has run other inputs than these");
      // What the model writes to its buffers must not stay.
      std::unique_ptr<ModelInstance> own;
      if (code_.table->any_mutated())
        own = slot.replica->instantiate(code_.module, *code_.table, *active.values, {}, nullptr, nullptr);
      ModelInstance& instance = own ? *own : *active.instances[slot.index];
      std::vector<Tensor> outputs(instance.container->num_outputs());
      const DummyRun dummy;
      slot.replica->run(instance, inputs, outputs, {});
    });
    const std::optional<aoti_abi::ShimError> error = aoti_abi::take_error();
    if (failed) result.problem = error ? error->text : "a run on made-up inputs: no memory is left";
  };
  versions_.with_active([&](const WeightVersion& active) {
    if (!active.missing.empty()) result.problem = "the package brings no weights";
    // Runs that take several threads are a replica's thread's. If this thread kept a team of OpenMP's for ever, there
    // would be more threads than cores, and libgomp's threads would sleep at each barrier instead of spinning.
    else if (pool_.runs_on_caller())
      run(active);
    else
      std::async(std::launch::async, [&] { run(active); }).get();
  });
  return result;
}

}  // namespace sconce::runner
