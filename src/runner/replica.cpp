#include "src/runner/replica.h"

#include "src/device/threads.h"
#include "src/ops/copy.h"

namespace sconce {
namespace {

// Answers a container with the tensors of a set.
class FromSet final : public loader::ConstantSource {
 public:
  explicit FromSet(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  Tensor constant(size_t index, const Tensor&, bool) override { return tensors_.at(index); }

 private:
  const std::vector<Tensor>& tensors_;
};

}  // namespace

std::unique_ptr<BoundContainer> Replica::bind(const std::shared_ptr<const loader::Module>& module,
                                              const ConstantTable& table, const ConstantSet& set,
                                              const std::vector<bool>& reset, const BoundContainer* before) const {
  auto bound = std::make_unique<BoundContainer>();
  std::vector<Tensor> tensors = set.tensors();
  if (table.any_mutated()) {
    if (before) bound->buffers = before->buffers;
    bound->buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!table.stored()[i].spec.mutated || !tensors[i].defined()) continue;
      if (!bound->buffers[i].defined() || (i < reset.size() && reset[i]))
        bound->buffers[i] = clone_preserve_strides(tensors[i]);
      tensors[i] = bound->buffers[i];
    }
  }
  FromSet source(tensors);
  bound->container = std::make_unique<loader::Container>(module, device_, source);
  if (bound->container->constants_given() == 0 && !tensors.empty()) {
    std::vector<std::pair<std::string, Tensor>> pairs;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) pairs.emplace_back(table.stored()[i].spec.name, tensors[i]);
    if (!pairs.empty()) bound->container->set_constants(pairs);
  }
  // Without folded constants there is nothing to compute, and a container says so on std::cerr.
  if (table.any_folded() && set.missing(table).empty()) bound->container->fold();
  return bound;
}

void Replica::run(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const CpuArena::Scope scope(arena_.get());
  set_kernel_threads(threads_);
  container.run(inputs, outputs);
}

}  // namespace sconce
