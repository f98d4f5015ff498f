/* dlpack.h after sconce.h: both are whole, and their structs have one layout. */
/* clang-format off */
#include "sconce.h"
#include "tests/c_api/dlpack/dlpack.h"
/* clang-format on */

#define SAME(ours, theirs, member) \
  _Static_assert(offsetof(ours, member) == offsetof(theirs, member), #theirs "." #member)

SAME(sconce_dtype, DLDataType, code);
SAME(sconce_dtype, DLDataType, bits);
SAME(sconce_dtype, DLDataType, lanes);
SAME(sconce_tensor, DLTensor, data);
SAME(sconce_tensor, DLTensor, device.device_type);
SAME(sconce_tensor, DLTensor, device.device_id);
SAME(sconce_tensor, DLTensor, ndim);
SAME(sconce_tensor, DLTensor, dtype);
SAME(sconce_tensor, DLTensor, shape);
SAME(sconce_tensor, DLTensor, strides);
SAME(sconce_tensor, DLTensor, byte_offset);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, version.major);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, version.minor);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, manager_ctx);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, deleter);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, flags);
SAME(sconce_managed_tensor, DLManagedTensorVersioned, dl_tensor);
_Static_assert(SCONCE_CUDA_HOST == (int)kDLCUDAHost && SCONCE_COMPLEX == (int)kDLComplex, "numbers");

size_t sizes_with_dlpack_after(const DLTensor* tensor, const DLManagedTensorVersioned* managed, DLDataType dtype) {
  const sconce_tensor* same = (const sconce_tensor*)tensor;
  const sconce_managed_tensor* managed_same = (const sconce_managed_tensor*)managed;
  return sizeof *same * 1000000 + sizeof *managed_same * 1000 + sizeof dtype;
}
