// BatchTensors: the tensors of a run that is made of several requests. Inputs are copied together, once each, into
// memory that is kept from run to run; outputs are taken apart as views. Confined to the lane that runs.
#pragma once

#include <span>
#include <vector>

#include "server/batching/request_queue.h"
#include "server/memory/request_memory.h"

namespace sconce::server {

class BatchTensors {
 public:
  // Requests that fit together (RequestQueue::take), two or more. kOutOfMemory.
  void gather(std::span<QueuedRequest* const> requests);
  std::span<const Tensor> inputs() const noexcept { return inputs_; }
  std::span<Tensor> outputs() noexcept { return outputs_; }
  int64_t rows() const noexcept { return rows_; }
  // Each request's outputs are its rows of the run's: no copies. kModelFailed where an output has not a row for each.
  void split(std::span<QueuedRequest* const> requests);
  void clear() noexcept;  // lets go of the tensors; frees memory that recent runs did not need

 private:
  int64_t rows_ = 0;
  std::vector<StorageBlock> blocks_;  // one per input
  std::vector<size_t> used_;          // most bytes of it in recent runs
  int runs_ = 0;                      // since used_ was looked at
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace sconce::server
