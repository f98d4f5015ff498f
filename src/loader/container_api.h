// The exports of a compiled model, resolved once per library. ABI: aoti_runtime/interface.h of torch 2.6 to 2.15;
// package-and-abi H2 lists which version exports what. Optional functions are null if the package is older.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/aoti_abi/abi_types.h"

extern "C" {
struct AOTInductorModelContainerOpaque;
struct AOTInductorStreamOpaque;
struct AOTInductorConstantMapEntry {
  const char* name;
  AtenTensorHandle handle;
};
}

namespace sconce::loader {

class SharedLibrary;

using ContainerHandle = AOTInductorModelContainerOpaque*;
using StreamHandle = AOTInductorStreamOpaque*;
using RuntimeError = int32_t;

// clang-format off
// member, exported name, parameters
#define SCONCE_CONTAINER_REQUIRED(X)                                                                        \
  X(create, AOTInductorModelContainerCreateWithDevice, (ContainerHandle*, size_t, const char*, const char*)) \
  X(destroy, AOTInductorModelContainerDelete, (ContainerHandle))                                            \
  X(num_inputs, AOTInductorModelContainerGetNumInputs, (ContainerHandle, size_t*))                          \
  X(input_name, AOTInductorModelContainerGetInputName, (ContainerHandle, size_t, const char**))             \
  X(num_outputs, AOTInductorModelContainerGetNumOutputs, (ContainerHandle, size_t*))                        \
  X(output_name, AOTInductorModelContainerGetOutputName, (ContainerHandle, size_t, const char**))           \
  X(num_constants, AOTInductorModelContainerGetNumConstants, (ContainerHandle, size_t*))                    \
  X(constant_name, AOTInductorModelContainerGetConstantName, (ContainerHandle, size_t, const char**))       \
  X(constant_fqn, AOTInductorModelContainerGetConstantOriginalFQN, (ContainerHandle, size_t, const char**)) \
  X(constant_folded, AOTInductorModelContainerGetConstantFromFolded, (ContainerHandle, size_t, bool*))      \
  X(constant_type, AOTInductorModelContainerGetConstantType, (ContainerHandle, size_t, int32_t*))           \
  X(constant_dtype, AOTInductorModelContainerGetConstantDtype, (ContainerHandle, size_t, int32_t*))         \
  X(fold, AOTInductorModelContainerRunConstantFolding, (ContainerHandle, bool, StreamHandle, AOTIProxyExecutorHandle)) \
  X(call_spec, AOTInductorModelContainerGetCallSpec, (ContainerHandle, const char**, const char**))         \
  X(run, AOTInductorModelContainerRun, (ContainerHandle, AtenTensorHandle*, size_t, AtenTensorHandle*, size_t, StreamHandle, AOTIProxyExecutorHandle))
#define SCONCE_CONTAINER_OPTIONAL(X)                                                                        \
  X(run_single_threaded, AOTInductorModelContainerRunSingleThreaded, (ContainerHandle, AtenTensorHandle*, size_t, AtenTensorHandle*, size_t, StreamHandle, AOTIProxyExecutorHandle)) \
  X(constant_data_size, AOTInductorModelContainerGetConstantDataSize, (ContainerHandle, size_t, size_t*))   \
  X(update_user_managed, AOTInductorModelContainerUpdateUserManagedConstantBuffer, (ContainerHandle, void*, bool, bool)) \
  X(update_user_managed_pairs, AOTInductorModelContainerUpdateUserManagedConstantBufferPairs, (ContainerHandle, const AOTInductorConstantMapEntry*, size_t, bool, bool)) \
  X(update_from_blob, AOTInductorModelUpdateConstantsFromBlob, (ContainerHandle, const uint8_t*))
// clang-format on

struct ContainerApi {
#define SCONCE_X(member, exported, parameters) RuntimeError(*member) parameters = nullptr;
  SCONCE_CONTAINER_REQUIRED(SCONCE_X)
  SCONCE_CONTAINER_OPTIONAL(SCONCE_X)
#undef SCONCE_X
  RuntimeError (*last_error)(const char** text) = nullptr;  // AOTInductorGetLastError, torch 2.13

  // kIncompatible names the missing exports.
  static ContainerApi resolve(const SharedLibrary& library);
};

}  // namespace sconce::loader
