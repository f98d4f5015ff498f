#include <doctest/doctest.h>

#include "src/aoti_abi/guard.h"
#include "tests/aoti_abi/core_abi.h"

using namespace sconce;
using namespace sconce::aoti_abi;

extern "C" void aoti_torch_save_tensor_handle(AtenTensorHandle self, const char* tensor_name, const char* launch_prefix,
                                              const char* kernel_name);

// Packages compiled with aot_inductor.debug_intermediate_value_printer=1 call it around each kernel.
TEST_CASE("environment: a tensor that a package would save does not end its run") {
  const int64_t count = 3;
  AtenTensorHandle t = new_handle(Tensor::empty(IntSpan(&count, 1), DType::kFloat32));
  aoti_torch_save_tensor_handle(t, "buf0", "before_launch", "cpp_fused_relu_0");
  aoti_torch_save_tensor_handle(t, nullptr, nullptr, nullptr);
  aoti_torch_save_tensor_handle(nullptr, "buf1", "after_launch", "cpp_fused_relu_0");
  CHECK(!take_error().has_value());
  delete_handle(t);
}
