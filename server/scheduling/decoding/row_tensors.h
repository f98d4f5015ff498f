// RowTensors: the inputs and outputs of runs in which each loop has a row (scheduling/decoding/row_plan.h). A row
// without a step gets inputs that every model accepts: token 0, the first position, zeros, and controls that say "not
// ready".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/tensor.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {

// Used by one thread at a time.
class RowTensors {
 public:
  // Both arguments outlive the object. Initially no row has a step. kOutOfMemory.
  RowTensors(const ModelSignature& model, const LoopPlan& plan);

  // kInvalidArgument unless `row` has the inputs of one row.
  static void check(const ModelSignature& model, const LoopPlan& plan, std::span<const Tensor> row);
  void fill(size_t row, std::span<const Tensor> inputs) noexcept;
  void fill_idle(size_t row);

  std::span<const Tensor> inputs() const noexcept { return inputs_; }
  std::span<Tensor> outputs() noexcept { return outputs_; }
  // Call this after a run. Drops outputs without rows, and copies outputs that the next run may overwrite. kModelFailed
  // if the logits have the wrong form.
  void keep();
  // Sets `outputs` to views of the row, in the form of a run of one row.
  void show(size_t row, std::span<Tensor> outputs) const;
  void drop_outputs() noexcept {
    for (Tensor& output : outputs_) output = Tensor();
  }

 private:
  Tensor row_of(size_t input, size_t row) const;

  const ModelSignature& model_;
  const LoopPlan& plan_;
  std::vector<StorageBlock> blocks_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace sconce::server::scheduling
