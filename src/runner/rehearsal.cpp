#include "src/runner/rehearsal.h"

#include <utility>

#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"

namespace sconce::runner {
namespace {

Replica::Settings without_graphs(Replica::Settings settings) {
  settings.graphs = 0;  // a few runs do not pay for recording
  return settings;
}

class OwnReplica final : public Rehearsal {
 public:
  OwnReplica(const ModelCode& code, const PackageWatch& files, Device device, std::shared_ptr<const ConstantSet> values,
             const ConstantSet& served, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)),
        code_(code),
        files_(files),
        values_(std::move(values)),
        reads_package_(files_.is_read_by(*values_, *code_.table)),
        replica_(device, without_graphs(code_.replica_settings)),
        instance_(replica_.instantiate(code_.module, *code_.table, *values_, {}, nullptr, &served)) {
    files_.check(*values_);
  }
  ~OwnReplica() override {
    instance_.reset();
    if (replica_.device().type != DeviceType::kCpu) device_backend(replica_.device()).trim(replica_.device());
  }
  OwnReplica(const OwnReplica&) = delete;
  OwnReplica& operator=(const OwnReplica&) = delete;

  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    return aoti_abi::in_memory("rehearsal", [&] {
      code_.input_check(inputs);
      RunInfo info;
      const auto start = std::chrono::steady_clock::now();
      replica_.run(*instance_, inputs, outputs, {});
      const auto end = std::chrono::steady_clock::now();
      if (reads_package_) files_.check_outputs(outputs, end);
      info.compute = end - start;
      info.ended = end;
      return info;
    });
  }

 private:
  const std::shared_ptr<const void> owner_;  // destroyed last
  const ModelCode& code_;
  const PackageWatch& files_;
  const std::shared_ptr<const ConstantSet> values_;
  const bool reads_package_;
  Replica replica_;
  std::unique_ptr<ModelInstance> instance_;
};

}  // namespace

std::unique_ptr<Rehearsal> make_rehearsal(const ModelCode& code, const PackageWatch& files, Device device,
                                          std::shared_ptr<const ConstantSet> values, const ConstantSet& served,
                                          std::shared_ptr<const void> owner) {
  return std::make_unique<OwnReplica>(code, files, device, std::move(values), served, std::move(owner));
}

}  // namespace sconce::runner
