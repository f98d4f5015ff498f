// Calls operators whose kernels read host memory with tensors of a device: copies the arguments to the host, runs the
// kernel, and copies results and written arguments back. Slow, because each call waits for the device. Results that
// view an argument still view that argument.
#pragma once

#include <span>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// The device of the tensor arguments or of a device argument; else the CPU.
Device device_of(std::span<Value> arguments) noexcept;

// Calls the kernel with arguments on a device.
void call_on_host(const Schema& schema, BoxedKernel kernel, std::span<Value> arguments, std::span<Value> results);

}  // namespace sconce::custom_ops
