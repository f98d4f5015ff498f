#include "tests/conformance/run_case.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

#include "sconce/device_memory.h"
#include "sconce/random.h"
#include "sconce/weight_sources.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/data_file.h"
#include "tests/conformance/host.h"

namespace sconce::conformance {
namespace {

class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect_agreement(const std::string& difference, const std::string& where) {
  if (!difference.empty()) throw Failure(where + ": " + difference);
}

// An expected error passes if its text matches, or if it is a refusal of the caller's tensors that names one of them.
void expect_refusal(const Error& error, const StepCase& step) {
  const std::string text = error.what();
  const bool refused_by_us = error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kNotFound;
  const bool names_constant = std::any_of(step.constants.begin(), step.constants.end(), [&](const auto& constant) {
    return text.find(constant.first) != std::string::npos;
  });
  const char* subject = step.what == StepCase::Do::kRun ? "input" : "constant";
  if (refused_by_us && (names_constant || text.find(subject) != std::string::npos)) return;
  const std::regex message(step.message.empty() ? std::string(".*") : step.message);
  if (!std::regex_search(text, message))
    throw Failure(std::string("failed with the wrong error: ") + wire_name(error.code()) + ": " + text +
                  "; expected a match of: " + step.message);
}

// Empty if what is recorded of a constant is true of ours.
std::string difference_of(const ConstantSpec& got, const ConstantCase& want) {
  if (want.dtype && got.dtype != want.dtype)
    return "got " + std::string(got.dtype ? dtype_name(*got.dtype) : "no dtype") + ", expected " +
           std::string(dtype_name(*want.dtype));
  if (want.shape && got.shape != *want.shape)
    return "got shape " + to_string(IntSpan(got.shape)) + ", expected " + to_string(IntSpan(*want.shape));
  // Ours may be padded to the alignment of storages; on CUDA it is what torch 2.11 stores, whole storages twice.
  const bool on_device = got.device && got.device->type != DeviceType::kCpu;
  // Recorded where the exporter's storage held more than the constant, a periodic window's say; a package does not.
  uint64_t packed = got.dtype ? dtype_bytes(*got.dtype) : 0;
  for (const int64_t size : got.shape) packed *= static_cast<uint64_t>(size);
  const bool fits =
      want.data_size &&
      ((got.data_size == packed && packed < *want.data_size) || got.data_size == *want.data_size ||
       got.data_size == (*want.data_size + 63) / 64 * 64 || (on_device && got.data_size >= *want.data_size));
  if (want.data_size && !fits)
    return "got " + std::to_string(got.data_size) + " bytes, expected " + std::to_string(*want.data_size);
  return {};
}

class CaseRun {
 public:
  CaseRun(const Case& c, const Manner& manner)
      : case_(c), manner_(manner), data_(c.folder / "data.bin"), package_(Package::open(c.package)) {}

  void load() { model(false); }

  void check_constants() {
    if (!case_.constants) return;
    const std::vector<ConstantSpec> all = model(false).constants();
    const auto key_of = [](const auto& c) -> const std::string& { return c.fqn.empty() ? c.name : c.fqn; };
    std::vector<bool> wanted(all.size());
    for (const ConstantCase& want : *case_.constants) {
      // The compiler may make several constants of one FQN; their own names tell them apart, but PyTorch reports the
      // values of one of them for all.
      std::string difference = "missing";
      bool same = false;
      for (size_t i = 0; i < all.size(); ++i) {
        if (key_of(all[i]) != key_of(want)) continue;
        if (want.name.empty() || all[i].name == want.name) wanted[i] = true;
        const std::string d = difference_of(all[i], want);
        same |= d.empty();
        if (!d.empty()) difference = d;
      }
      if (!same) throw Failure("constants: " + key_of(want) + ": " + difference);
    }
    for (size_t i = 0; i < all.size(); ++i)
      if (!wanted[i]) throw Failure("constants: not recorded: " + all[i].name);
  }

  // All steps by several threads at once, each from another one on. Every answer must be that of its own inputs.
  void do_steps_at_once() {
    const size_t count = case_.steps.size(), all = count * static_cast<size_t>(manner_.rounds);
    std::mutex mutex;
    std::string wrong;
    const auto work = [&](size_t first) {
      for (size_t i = 0; i < all; ++i) {
        const size_t number = (first + i) % count;
        try {
          run(case_.steps[number]);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          if (wrong.empty()) wrong = "step " + std::to_string(number) + ": " + error.what();
          return;
        }
      }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < manner_.threads; ++t)
      threads.emplace_back(work, static_cast<size_t>(t) * count / static_cast<size_t>(manner_.threads));
    for (std::thread& thread : threads) thread.join();
    if (!wrong.empty()) throw Failure(wrong);
  }

  void do_step(const StepCase& step) {
    if (!step.fails) return act(step);
    try {
      act(step);
    } catch (const Error& error) {
      return expect_refusal(error, step);
    }
    throw Failure("succeeded, expected an error that matches: " + step.message);
  }

 private:
  // Steps that need the package's input checks have a model of their own: the option is one of loading, and such
  // steps leave no trace, since they fail before the model runs.
  Model& model(bool checks) {
    std::shared_ptr<Model>& model = checks ? checked_ : unchecked_;
    if (!model) {
      LoadOptions options;
      options.model_name = case_.model;
      options.devices = {parse_device(case_.device)};
      options.check_inputs = checks;
      options.host_outputs = false;
      options.cuda_graphs = manner_.graphs;
      options.replicas = manner_.replicas;
      model = Model::load(package_, options);
    }
    return *model;
  }

  void act(const StepCase& step) {
    using Do = StepCase::Do;
    switch (step.what) {
      case Do::kRun:
        return run(step);
      case Do::kUpdate:
        return update(step);
      case Do::kFold:
        return;  // every update folds
      case Do::kSwap:
        return swap();
      case Do::kFreeInactive:
        inactive_.reset();
        return model(false).release_previous();
      case Do::kExtract:
        return extract(step);
    }
  }

  // AOTInductor's container has an active and an inactive set. Here the inactive one is either the previous set, or
  // `inactive_`: the values in which it differs from the active one.
  void update(const StepCase& step) {
    ConstantMap constants;
    for (const auto& [fqn, tensor] : step.constants) constants[fqn] = data_.load(tensor);
    if (!step.inactive) return publish(constants, step.full);
    stage(constants, step.full);  // refuses what does not fit
    model(false).abort_weights();
    if (step.full || !inactive_) inactive_.emplace();
    for (const auto& [fqn, tensor] : constants) (*inactive_)[fqn] = tensor;
  }

  void swap() {
    if (!inactive_) {
      model(false).rollback_weights();
      return;
    }
    publish(*inactive_, false);
    inactive_.reset();
  }

  void stage(const ConstantMap& constants, bool full) {
    std::vector<NamedTensor> tensors;
    for (const auto& [fqn, tensor] : constants) tensors.push_back({fqn, tensor});
    const auto update = model(false).begin_update({.full = full});
    stage_tensors(*update, tensors);
    update->finish();
  }

  void publish(const ConstantMap& constants, bool full) {
    stage(constants, full);
    model(false).commit_weights();
  }

  void extract(const StepCase& step) {
    ConstantMap got =
        model(false).extract_constants(step.inactive && !inactive_ ? WeightState::kPrevious : WeightState::kActive);
    if (step.inactive && inactive_)
      for (const auto& [fqn, tensor] : *inactive_) got[fqn] = tensor;
    for (const auto& [fqn, want] : step.constants) {
      const auto it = got.find(fqn);
      if (it == got.end()) throw Failure("constant " + fqn + ": not extracted");
      // Strides are not part of what is extracted: PyTorch's own extraction gives the constant as it is stored.
      TensorCase expected = want;
      if (it->second.defined()) expected.stride.assign(it->second.strides().begin(), it->second.strides().end());
      expect_agreement(compare_meta(it->second, expected), "constant " + fqn);
      expect_agreement(compare_bits(moved(it->second, Device{}), want, data_.storage(want)), "constant " + fqn);
    }
  }

  void run(const StepCase& step) {
    std::vector<Tensor> inputs;
    for (const TensorCase& input : step.inputs) {
      if (input.same_as && *input.same_as >= inputs.size())
        throw std::runtime_error("case.json: same_as is not an earlier input");
      inputs.push_back(input.same_as ? view(input, inputs[*input.same_as].storage())
                                     : moved(data_.load(input), parse_device(input.device)));
    }
    std::vector<Tensor> outputs(step.fails ? model(step.checks).info().spec.outputs.size() : step.outputs.size());
    if (step.seed) manual_seed(*step.seed);
    model(step.checks).run(inputs, outputs);
    if (step.fails) return;
    check_outputs(step, inputs, outputs);
    for (Tensor& input : inputs) input = moved(input, Device{});
    check_inputs(step, inputs);
  }

  // The same view of a copy of the whole storage on that device; the tensor itself where it is there.
  static Tensor moved(const Tensor& tensor, Device device) {
    if (!tensor.defined() || tensor.device().type == device.type) return tensor;
    if (device.type == DeviceType::kCuda && device.index < 0) device.index = 0;
    const auto bytes = static_cast<int64_t>(tensor.storage()->bytes());
    const int64_t one = 1;
    const Tensor flat(tensor.storage(), DType::kUInt8, IntSpan(&bytes, 1), IntSpan(&one, 1));
    return copy_to(flat, device).view_as(tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.storage_offset());
  }

  // Names every output that differs, one a line.
  void check_outputs(const StepCase& step, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    std::string differences;
    for (size_t i = 0; i < outputs.size(); ++i) {
      try {
        check_output(step, i, inputs, outputs);
      } catch (const Failure& failure) {
        differences += std::string(differences.empty() ? "" : "\n") + failure.what();
      }
    }
    if (!differences.empty()) throw Failure(differences);
  }

  void check_output(const StepCase& step, size_t i, const std::vector<Tensor>& inputs,
                    const std::vector<Tensor>& outputs) {
    const std::string where = "output " + std::to_string(i);
    const Tensor& got = outputs[i];
    if (!step.outputs[i]) {
      if (got.defined()) throw Failure(where + ": got " + describe(got) + ", expected None");
      return;
    }
    const TensorCase& want = *step.outputs[i];
    expect_agreement(compare_meta(got, want), where);
    if (step.compare_values)
      expect_agreement(compare_values(moved(got, Device{}), want, data_.storage(want), step.rtol, step.atol), where);
    if (!want.alias) return;
    const std::vector<Tensor>& others = want.alias->of_input ? inputs : outputs;
    if (want.alias->index >= others.size()) throw std::runtime_error("case.json: alias of no tensor");
    const Tensor& other = others[want.alias->index];
    if (!other.defined() || got.storage()->data() != other.storage()->data())
      throw Failure(where + ": does not share the storage of " + (want.alias->of_input ? "input " : "output ") +
                    std::to_string(want.alias->index));
  }

  void check_inputs(const StepCase& step, const std::vector<Tensor>& inputs) {
    std::vector<const Storage*> written;
    for (const auto& [i, after] : step.mutated) {
      const std::string where = "input " + std::to_string(i) + " after the run";
      expect_agreement(compare_meta(inputs.at(i), after), where);
      expect_agreement(compare_values(inputs[i], after, data_.storage(after), step.rtol, step.atol), where);
      written.push_back(inputs[i].storage().get());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Storage* storage = inputs[i].storage().get();
      if (std::find(written.begin(), written.end(), storage) != written.end()) continue;
      const TensorCase* owner = &step.inputs[i];
      while (owner->same_as) owner = &step.inputs[*owner->same_as];
      const std::span<const std::byte> before = data_.storage(*owner);
      if (!before.empty() && std::memcmp(storage->data(), before.data(), before.size()) != 0)
        throw Failure("input " + std::to_string(i) + " was changed by the run");
    }
  }

  const Case& case_;
  const Manner& manner_;
  const DataFile data_;
  std::shared_ptr<const Package> package_;
  std::shared_ptr<Model> checked_, unchecked_;
  std::optional<ConstantMap> inactive_;
};

Outcome failed(const std::string& reason) { return {Outcome::Status::kFailed, reason, 0}; }

// Whether its steps may be done again and at once: they leave no trace.
bool only_runs(const Case& c) {
  return std::all_of(c.steps.begin(), c.steps.end(), [](const StepCase& step) {
    return step.what == StepCase::Do::kRun && !step.fails && !step.seed && step.mutated.empty();
  });
}

Outcome do_steps(const Case& c, const Manner& manner) {
  std::string where = "load";
  try {
    CaseRun run(c, manner);
    run.load();
    where = "constants";
    run.check_constants();
    const bool again = only_runs(c);
    for (int round = 0; round < (again ? manner.rounds : 1); ++round)
      for (size_t i = 0; i < c.steps.size(); ++i) {
        where = "step " + std::to_string(i) + " (" + c.steps[i].what_name + ")" +
                (round ? " of round " + std::to_string(round) : "");
        run.do_step(c.steps[i]);
      }
    where = "at once";
    if (again && manner.threads > 0) run.do_steps_at_once();
    return {};
  } catch (const Failure& failure) {
    return failed(where + ": " + failure.what());
  } catch (const Error& error) {
    return failed(where + ": " + wire_name(error.code()) + ": " + error.what());
  } catch (const std::exception& error) {
    return failed(where + ": " + error.what());
  }
}

}  // namespace

std::string reason_to_skip(const Case& c) {
  if (c.device == "cuda") return reason_against_cuda(c.sm);
  if (const auto isa = c.metadata.find("AOTI_CPU_ISA"); isa != c.metadata.end()) return reason_against_isa(isa->second);
  return "";
}

Outcome run_case(const Case& c, const Manner& manner) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = do_steps(c, manner);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace sconce::conformance
