// The pickles in which PyTorch sends tensors to another process, and the formats in which trainers send many of them.
// The functions that PyTorch would call to rebuild a tensor are recognised by name.
//
// Pure functions. They append to `to`, also before a failure: the caller releases its memories in any case.
// kInvalidArgument names the tensor and the reason. The bytes must outlive `to`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/rollout/trainer_tensors/trainer_tensors.h"

namespace sconce::server::rollout {

// SGLang, load_format null or "direct": a list of (name, tensor).
void read_named_tensors(std::string_view pickle, TrainerTensors& to);
// SGLang, load_format "flattened_bucket": {"flattened_tensor": tensor, "metadata": [FlattenedTensorMetadata, ...]}.
void read_flat_bucket(std::string_view pickle, TrainerTensors& to);

// vLLM: the fields that accompany ipc_handles_pickled.
struct NamedHandles {
  std::vector<std::string> names, dtypes;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> bytes;  // tensor_sizes; empty: each tensor has its own handle
};
// A list of {UUID: (function, arguments)}, or one of these for a bucket that holds all tensors consecutively. One of
// the UUIDs must be in `uuids`.
void read_ipc_handles(std::string_view pickle, const NamedHandles& named, std::span<const std::string> uuids,
                      TrainerTensors& to);

}  // namespace sconce::server::rollout
