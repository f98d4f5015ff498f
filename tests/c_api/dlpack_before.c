/* dlpack.h before sconce.h: its types are the API's, without casts. */
/* clang-format off */
#include "tests/c_api/dlpack/dlpack.h"
#include "sconce.h"
/* clang-format on */

size_t sizes_with_dlpack_before(const DLTensor* tensor, const DLManagedTensorVersioned* managed, DLDataType dtype) {
  const sconce_tensor* same = tensor;
  const sconce_managed_tensor* managed_same = managed;
  sconce_dtype dtype_same = dtype;
  return sizeof *same * 1000000 + sizeof *managed_same * 1000 + sizeof dtype_same;
}
