// Operators called by name whose kernels read memory of the host, called with tensors of a device: the bytes their
// tensors view are fetched, the kernel runs, what it made or wrote is sent. Right, and slow: each call waits for the
// device. Views of an argument come back as views of that argument.
#pragma once

#include <span>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// The device of the arguments' tensors, or that a device argument asks for; the CPU where there is none.
Device device_of(std::span<Value> arguments) noexcept;

// Calls the kernel for arguments of a device.
void call_on_host(const Schema& schema, BoxedKernel kernel, std::span<Value> arguments, std::span<Value> results);

}  // namespace sconce::custom_ops
