// BatchTensors: the tensors of a batch. Inputs are copied once, into memory that is reused between runs, or on the
// device if all inputs are there. Outputs are split into views. Used only by the replica thread of the run.
#pragma once

#include <span>
#include <vector>

#include "server/scheduling/batching/request_queue.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {

class BatchTensors {
 public:
  // Joins the inputs of two or more compatible requests (RequestQueue::take), in RunRequest::preparing(). kOutOfMemory.
  void gather(std::span<QueuedRequest* const> requests);
  std::span<const Tensor> inputs() const noexcept { return inputs_; }
  std::span<Tensor> outputs() noexcept { return outputs_; }
  int64_t rows() const noexcept { return rows_; }
  // Gives each request views of its rows of the outputs. kModelFailed if an output does not have one row per row of the
  // inputs.
  void split(std::span<QueuedRequest* const> requests);
  void clear() noexcept;  // drops the tensors and frees memory that recent runs did not need

 private:
  int64_t rows_ = 0;
  std::vector<StorageBlock> blocks_;  // one per input
  std::vector<size_t> used_;          // for each block, the maximum bytes that a recent run used
  int runs_ = 0;                      // since used_ was last checked
  std::vector<Tensor> inputs_, outputs_;
};

// Copies outputs that the model's next run may overwrite, because they are buffers that the model writes.
void keep_outputs(std::span<Tensor> outputs);

}  // namespace sconce::server::scheduling
