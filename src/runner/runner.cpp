#include "src/runner/runner.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "sconce/check.h"
#include "src/runner/code_load.h"
#include "src/runner/rehearsal.h"
#include "src/runner/update.h"

namespace sconce::runner {

Runner::Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
    : Runner(CodeLoad(std::move(package), spec, options), options) {}

Runner::Runner(CodeLoad&& load, const LoadOptions& options)
    : code_(std::move(load.code)),
      package_watch_(code_.package->archive()),
      pool_(code_, package_watch_, options, [this](ReplicaSlot& slot, RunRequest& request) { serve(slot, request); }),
      sequences_(code_, pool_, options),
      versions_(code_, package_watch_, pool_, sequences_, load.weights, std::move(load.first),
                [this] { sets_.reconcile(); }),
      sets_(code_, package_watch_, pool_, versions_, load.weights, options) {
  ModelInfo& info = code_.info;
  if (code_.warm_up && info.devices.front().type == DeviceType::kCpu && info.constant_bytes >= kWarmUpBytes)
    info.no_warm_up = warm_up_after_trial(load, options);
  info.load_time = std::chrono::steady_clock::now() - load.start;
}

std::string Runner::warm_up_after_trial(CodeLoad& load, const LoadOptions& options) {
  if (!load.may_try) return "no program was given that tries made-up inputs first";
  if (std::string why = why_no_dummy_run(code_.info.spec); !why.empty()) return why;
  if (!load.trial) load.trial.emplace(*code_.package, code_.info.spec, options);
  const WarmUp learned = load.trial->wait();
  return learned.problem.empty() ? warm_up(learned.inputs).problem : learned.problem;
}

void Runner::check_device_indices(ReplicaSlot& slot, std::span<const Tensor> inputs) const {
  // Entering a stream is a call of CUDA.
  if (!slot.replica->stream() || !code_.index_check.any_on_device(inputs)) return;
  const DeviceStream::Scope on_device(slot.replica->stream());
  code_.index_check.of_device(inputs);
}

void Runner::run_on(ReplicaSlot& slot, const WeightSet* weights, const SequenceStep& step, const RunCall& call) {
  const WeightVersions::Pin pin(versions_, slot);
  pool_.check_code();
  const WeightVersion& active = pin.version();
  const ReplicaPool::FaultScope faults(pool_, slot);
  const WeightsRef asked(active, weights);
  if (!step.sequence && !weights) [[likely]] {
    asked.check(&code_);
    ModelInstance* const instance = active.instances[slot.index].get();
    SCONCE_CHECK(instance, kUnavailable, "replica ", slot.index, " does not serve any more: ", slot.replica->failure());
    pool_.run(slot, *instance, active.reads_package, call);
    call.info.weight_version = asked.number();
    call.info.label = asked.label();
    return;
  }
  const uint64_t before = Storage::derivations();
  if (step.sequence) {
    sequences_.run(slot, active, asked, step, call);
  } else {
    asked.check(&code_);
    sets_.run(slot, active, *asked.set(), call);
  }
  if (call.info.set && Storage::derivations() != before) [[unlikely]]
    sets_.packed();
}

void Runner::serve(ReplicaSlot& slot, RunRequest& request) {
  {
    const SlotLock lock(slot);
    if (!request.starting()) return;
    const ReplicaPool::FaultScope faults(pool_, slot);  // waits for what was begun, if something fails
    {
      const DeviceStream::Scope on_device(slot.replica->stream());
      request.preparing();
    }
    check_inputs(request.inputs);
    check_device_indices(slot, request.inputs);
    const Delivery delivery{request.device_outputs, request.last_rows};
    run_on(slot, request.weights, request.step, {request.inputs, request.outputs, delivery, request.info});
    request.ran();
  }
  sets_.reconcile_packed();
}

RunInfo Runner::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity,
                    const WeightSet* weights, const SequenceStep& step, bool device_outputs) {
  check_inputs(inputs);
  if (pool_.inline_runs()) {
    std::exception_ptr error;
    ReplicaSlot* const own = step.sequence ? sequences_.slot_of(*step.sequence, error) : nullptr;
    if (error) std::rethrow_exception(error);
    ReplicaSlots& slots = pool_.slots();
    if (ReplicaSlot* slot = own ? slots.acquire_idle(*own) : slots.acquire_idle(affinity)) {
      RunInfo info;
      {
        const SlotLock lock(*slot, SlotLock::Adopt{});
        check_device_indices(*slot, inputs);
        const Delivery delivery{.device_outputs = device_outputs, .last_rows = {}};
        run_on(*slot, weights, step, {inputs, outputs, delivery, info});
      }
      sets_.reconcile_packed();
      return info;
    }
  }
  struct Waiting final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done.store(true, std::memory_order_release);
      done.notify_one();
    }
  } request;
  request.inputs = inputs;
  request.outputs = outputs;
  request.affinity = affinity;
  request.weights = weights;
  request.step = step;
  request.device_outputs = device_outputs;
  submit(request);
  request.done.wait(false, std::memory_order_acquire);
  if (request.error) std::rethrow_exception(request.error);
  return request.info;
}

void Runner::submit(RunRequest& request) noexcept {
  if (request.step.sequence || request.replica >= 0) {
    ReplicaSlot* const slot = request.step.sequence ? sequences_.slot_of(*request.step.sequence, request.error)
                                                    : pool_.open_slot(static_cast<size_t>(request.replica));
    if (slot && slot->thread.submit(request)) return;
    if (slot || !request.step.sequence) request.error = pool_.removed();
    return request.finished();
  }
  // A slot may close between the choice and the request's arrival. Then choose again, until the model is unloaded.
  ReplicaSlots& slots = pool_.slots();
  while (ReplicaSlot* slot = slots.choose(request.affinity, static_cast<const LoadedSet*>(request.weights)))
    if (slot->thread.submit(request)) return;
  request.error = pool_.unloading();
  request.finished();
}

std::unique_ptr<WeightUpdate> Runner::begin_update(UpdateOptions options, std::shared_ptr<void> owner) {
  return std::make_unique<StagedUpdate>(code_, pool_, versions_, sets_, std::move(options), std::move(owner));
}

std::unique_ptr<Rehearsal> Runner::rehearse(WeightState state, const WeightSet* set,
                                            std::shared_ptr<const void> owner) const {
  std::shared_ptr<const ConstantSet> values = versions_.values(state, set);
  return make_rehearsal(code_, package_watch_, pool_.first_device(), std::move(values), *versions_.active_values(),
                        std::move(owner));
}

}  // namespace sconce::runner
