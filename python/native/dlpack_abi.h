// DLPack's C structures (version 1, and the unversioned capsules before it): the memory of a tensor, described so that
// libraries can share it. Names and layouts are those of the standard, https://dmlc.github.io/dlpack.
#pragma once

#include <cstdint>

namespace sconce::python {

struct DLDevice {
  int32_t type;
  int32_t id;
};
enum DLDeviceType : int32_t { kDLCpu = 1, kDLCuda = 2, kDLCudaHost = 3, kDLCudaManaged = 13 };

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {  // capsule "dltensor"
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLVersion {
  uint32_t major, minor;
};
inline constexpr uint64_t kDLReadOnly = 1;

struct DLManagedTensorVersioned {  // capsule "dltensor_versioned"
  DLVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

// What a tensor's type may offer as __dlpack_c_exchange_api__, a capsule "dlpack_exchange_api": functions that need no
// call of Python.
struct DLExchangeApi {
  DLVersion version;
  DLExchangeApi* previous;
  void* allocate;
  int (*managed_of_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_of_managed)(DLManagedTensorVersioned* tensor, void** out);  // takes the tensor
  int (*view_object)(void* object, DLTensor* out);  // valid while the object lives; null: not offered
  int (*current_stream)(int32_t device_type, int32_t device, void** out);
};

}  // namespace sconce::python
