#include "sconce/model.h"

#include "sconce/check.h"
#include "src/runner/runner.h"

namespace sconce {

struct Model::Impl {
  Impl(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options)
      : runner(std::move(package), spec, options) {}
  Runner runner;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<Model> Model::load(std::shared_ptr<const Package> package, LoadOptions options) {
  SCONCE_CHECK(package, kInvalidArgument, "no package given");
  if (options.verify) package->verify();
  const ModelSpec& spec = package->model(options.model_name);
  return std::shared_ptr<Model>(new Model(std::make_unique<Impl>(std::move(package), spec, options)));
}

const ModelInfo& Model::info() const noexcept { return impl_->runner.info(); }
RunInfo Model::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  return impl_->runner.run(inputs, outputs);
}
void Model::submit(RunRequest& request) { impl_->runner.submit(request); }
void Model::check_inputs(std::span<const Tensor> inputs) const { impl_->runner.check_inputs(inputs); }
uint64_t Model::generation() const noexcept { return impl_->runner.generation(); }
std::vector<ConstantSpec> Model::constants() const { return impl_->runner.constants(); }
void Model::update_constants(Buffer buffer, const ConstantMap& constants, bool full, bool user_managed) {
  impl_->runner.update(buffer, constants, full, user_managed);
}
void Model::fold_constants(Buffer buffer) { impl_->runner.fold(buffer); }
void Model::swap_constants() { impl_->runner.swap(); }
void Model::free_inactive_constants() { impl_->runner.free_inactive(); }
ConstantMap Model::extract_constants(Buffer buffer) const { return impl_->runner.extract(buffer); }

}  // namespace sconce
