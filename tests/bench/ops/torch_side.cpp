// Linked with PyTorch: as its loader runs a model.
#include <c10/core/InferenceMode.h>

#include "tests/bench/ops/calls.h"

extern "C" int32_t aoti_torch_layout__mkldnn();

namespace bench {

std::shared_ptr<void> enter_library() { return std::make_shared<c10::InferenceMode>(); }
T constant(T t) { return t; }

T opaque(void* data, size_t, DType dtype, const Sizes& sizes, const Sizes& strides,
         const std::vector<uint8_t>& description) {
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_create_tensor_from_blob_v2(data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), 0,
                                              dtype, 0, -1, &handle, aoti_torch_layout__mkldnn(), description.data(),
                                              static_cast<int64_t>(description.size())));
  return T(handle);
}

}  // namespace bench
