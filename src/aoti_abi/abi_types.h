// Types of the C ABI that compiled models call. Source: aoti_torch/c/shim.h, torch 2.15.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "sconce/tensor.h"

extern "C" {
struct AtenTensorOpaque;
struct AtenGeneratorOpaque;
struct C10IValueOpaque;
struct CUDAGuardOpaque;
struct CUDAStreamGuardOpaque;
struct AOTIProxyExecutorOpaque;
struct AtenRecordFunctionOpaque;
using AtenTensorHandle = AtenTensorOpaque*;
using AtenGeneratorHandle = AtenGeneratorOpaque*;
using C10IValueHandle = C10IValueOpaque*;
using AOTIProxyExecutorHandle = AOTIProxyExecutorOpaque*;
using AtenRecordFunctionHandle = AtenRecordFunctionOpaque*;
using AOTITorchError = int32_t;
}

namespace sconce::aoti_abi {

// A handle owns a Tensor.
inline Tensor* tensor_of(AtenTensorHandle handle) noexcept { return reinterpret_cast<Tensor*>(handle); }
// Memory for handles. Each thread caches freed handles, so a run reuses the handles of the previous run.
void* take_handle_memory();
void keep_handle_memory(void* memory) noexcept;

inline AtenTensorHandle new_handle(Tensor tensor) {
  return reinterpret_cast<AtenTensorHandle>(new (take_handle_memory()) Tensor(std::move(tensor)));
}
inline void delete_handle(AtenTensorHandle handle) noexcept {
  if (!handle) return;
  tensor_of(handle)->~Tensor();
  keep_handle_memory(handle);
}

}  // namespace sconce::aoti_abi
