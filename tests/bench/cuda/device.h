// Shared by programs that measure CUDA: made-up inputs for a model, and memory figures of device and process.
#pragma once

#include <dlfcn.h>

#include <vector>

#include "sconce/model.h"

namespace sconce {

// Parses CUDA devices such as "0,1"; empty if the text is anything else.
std::vector<Device> devices_of(const char* numbers);

// Small numbers in the strides that the model was compiled for, on device 0 unless the model reads them on the host.
// dynamic: the size of dynamic dimensions.
Tensor input_of(const TensorSpec& spec, int64_t dynamic);

// Calls a function of cudart, which libsconce_cuda has opened; -1 if it is missing.
template <class... Arguments>
int cudart(const char* name, Arguments... arguments) {
  void* library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  const auto function = library ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name)) : nullptr;
  return function ? function(arguments...) : -1;
}

// Megabytes of device memory in use by any process; -1 if the device does not answer.
double taken_mb();
// Resident megabytes of this process.
double resident_mb();

}  // namespace sconce
