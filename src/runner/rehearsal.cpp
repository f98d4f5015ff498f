// Runner: a constant set that runs beside the replicas that serve.
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"
#include "src/runner/runner.h"
#include "src/runner/sets/loaded_set.h"

namespace sconce::runner {

class Runner::OwnReplica final : public Rehearsal {
 public:
  // `served`: values that the device has already.
  OwnReplica(const Runner& runner, std::shared_ptr<const void> owner, Device device, const Replica::Settings& settings,
             std::shared_ptr<const ConstantSet> set, const ConstantSet& served)
      : owner_(std::move(owner)),
        runner_(runner),
        set_(std::move(set)),
        reads_package_(runner.package_watch_.is_read_by(*set_, *runner.table_)),
        replica_(device, settings),
        bound_(replica_.bind(runner.module_, *runner.table_, *set_, {}, nullptr, &served)) {
    runner.package_watch_.check(*set_);
  }
  ~OwnReplica() override {
    bound_.reset();
    if (replica_.device().type != DeviceType::kCpu) device_backend(replica_.device()).trim(replica_.device());
  }
  OwnReplica(const OwnReplica&) = delete;
  OwnReplica& operator=(const OwnReplica&) = delete;

  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    return aoti_abi::in_memory("rehearsal", [&] {
      runner_.check_(inputs);
      RunInfo info;
      const auto start = std::chrono::steady_clock::now();
      replica_.run(*bound_, inputs, outputs, {});
      const auto end = std::chrono::steady_clock::now();
      if (reads_package_) runner_.package_watch_.check_outputs(outputs, end);
      info.compute = end - start;
      info.ended = end;
      return info;
    });
  }

 private:
  const std::shared_ptr<const void> owner_;  // destroyed last: it owns the runner
  const Runner& runner_;
  const std::shared_ptr<const ConstantSet> set_;
  const bool reads_package_;
  Replica replica_;
  std::unique_ptr<ModelInstance> bound_;
};

std::unique_ptr<Rehearsal> Runner::rehearse(std::shared_ptr<const ConstantSet> values, const ConstantSet& served,
                                            std::shared_ptr<const void> owner) const {
  for (const ReplicaInfo& replica : slots_.describe()) {
    if (!replica.failure.empty()) continue;
    Replica::Settings settings = replica_settings_;
    settings.graphs = 0;  // a few runs do not pay for recording
    return std::make_unique<OwnReplica>(*this, std::move(owner), replica.device, settings, std::move(values), served);
  }
  SCONCE_FAIL(kUnavailable, "no replica is left whose device works");
}

std::unique_ptr<Rehearsal> Runner::rehearse(WeightState state, std::shared_ptr<const void> owner) const {
  std::shared_ptr<const ConstantSet> set, served;
  {
    const MutexLock lock(state_mutex_);
    const Generation& generation = find(state);
    SCONCE_CHECK(generation.missing.empty(), kFailedPrecondition, "constant '", generation.missing, "' has no value");
    set = generation.set;
    served = active_->set;
  }
  return rehearse(std::move(set), *served, std::move(owner));
}

std::unique_ptr<Rehearsal> Runner::rehearse(const std::shared_ptr<const WeightSet>& set,
                                            std::shared_ptr<const void> owner) const {
  const auto& held = static_cast<const LoadedSet&>(*set);
  SCONCE_CHECK(held.owner == this, kInvalidArgument, "set '", *held.name(), "' is another model's");
  SCONCE_CHECK(held.missing.empty(), kFailedPrecondition, "constant '", held.missing, "' has no value");
  return rehearse(held.values, *active_set(), std::move(owner));
}

}  // namespace sconce::runner
