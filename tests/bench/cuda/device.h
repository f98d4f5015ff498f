// What programs that measure CUDA share: inputs made up for a model, and what they ask of the device and the process.
#pragma once

#include <dlfcn.h>

#include <vector>

#include "sconce/model.h"

namespace sconce {

// CUDA devices from numbers such as "0,1"; none where it is anything else.
std::vector<Device> devices_of(const char* numbers);

// Small numbers in the strides that the model was made for; on device 0 unless the model reads it on the host.
// dynamic: the size of dimensions that may have several.
Tensor input_of(const TensorSpec& spec, int64_t dynamic);

// A function of cudart, which libsconce_cuda has opened; -1 where it is not there.
template <class... Arguments>
int cudart(const char* name, Arguments... arguments) {
  void* library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  const auto function = library ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name)) : nullptr;
  return function ? function(arguments...) : -1;
}

// Megabytes of device memory that are taken, by whomever; -1 where the device does not answer.
double taken_mb();
// Megabytes of this process that are resident.
double resident_mb();

}  // namespace sconce
