/* A custom operator as a C function, which packages made with aot_inductor.custom_ops_to_c_shims link to directly:
 * geometry::scaled(Tensor points, float by) -> Tensor, contiguous float32. For op_library_test.cpp and
 * make_op_packages.py. */
#include <stddef.h>
#include <stdint.h>

typedef struct AtenTensorOpaque* AtenTensorHandle;
typedef int32_t AOTITorchError;

AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** ret);
AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret);
AOTITorchError aoti_torch_empty_strided(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                        int32_t device_type, int32_t device_index, AtenTensorHandle* ret);

enum { kFloat32 = 6 };

AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle points, double by, AtenTensorHandle* ret0) {
  void *in = NULL, *out = NULL;
  int64_t count = 0, rank = 0, *sizes = NULL, *strides = NULL;
  int32_t dtype = 0;
  if (aoti_torch_get_data_ptr(points, &in) || aoti_torch_get_numel(points, &count) ||
      aoti_torch_get_dim(points, &rank) || aoti_torch_get_sizes(points, &sizes) ||
      aoti_torch_get_strides(points, &strides) || aoti_torch_get_dtype(points, &dtype) || dtype != kFloat32)
    return 1;
  if (aoti_torch_empty_strided(rank, sizes, strides, dtype, 0, 0, ret0) || aoti_torch_get_data_ptr(*ret0, &out))
    return 1;
  for (int64_t i = 0; i < count; ++i) ((float*)out)[i] = (float)by * ((const float*)in)[i];
  return 0;
}
