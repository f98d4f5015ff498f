/* A plain C interface for custom operators, in C or C++, without PyTorch's headers.
 *
 * A library exports sconce_custom_ops(), which defines each operator by its schema (in PyTorch's form) and a function:
 *
 *   static int scale(void* context, SconceCall* call, const SconceHost* host) {
 *     SconceTensor x, y;
 *     if (host->tensor_argument(call, 0, &x) || host->new_result(call, 0, x.rank, x.sizes, x.dtype, &y)) return 1;
 *     ...
 *     return 0;
 *   }
 *   int sconce_custom_ops(const SconceHost* host, SconceRegistry* registry) {
 *     return host->define(registry, "mylib::scale(Tensor x, float by) -> Tensor", scale, NULL);
 *   }
 *
 * The setting `op_libraries` (LoadOptions, the conf file) loads the library. Every function returns 0, or another
 * number on failure; the kernel then returns that number, and the caller of the model gets the reason. Several threads
 * may execute a kernel at once. Pointers are valid until the kernel returns. An exception must not leave a kernel.
 */
#ifndef SCONCE_CUSTOM_OP_H
#define SCONCE_CUSTOM_OP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SconceCall SconceCall;
typedef struct SconceRegistry SconceRegistry;

/* dtype: PyTorch's numbers: uint8 0, int8 1, int16 2, int32 3, int64 4, float16 5, float32 6, float64 7, complex64 9,
 * complex128 10, bool 11, bfloat16 15. Strides are in elements. */
typedef struct SconceTensor {
  void* data;
  const int64_t* sizes;
  const int64_t* strides;
  int32_t rank;
  int32_t dtype;
  int32_t device_type; /* 0: CPU */
  int32_t device_index;
} SconceTensor;

typedef struct SconceHost SconceHost;
typedef int (*SconceKernel)(void* context, SconceCall* call, const SconceHost* host);

struct SconceHost {
  uint32_t version; /* 1; members are only ever added at the end */
  uint32_t size;    /* of this struct */

  int (*define)(SconceRegistry* registry, const char* schema, SconceKernel kernel, void* context);

  /* Arguments by their index in the schema. If an argument of an optional type is None, is_none writes 1 and the other
   * functions fail. Element types, layouts and memory formats are integers. */
  int (*is_none)(SconceCall* call, int argument, int* none);
  int (*tensor_argument)(SconceCall* call, int argument, SconceTensor* tensor);
  int (*int_argument)(SconceCall* call, int argument, int64_t* value); /* int, bool */
  int (*real_argument)(SconceCall* call, int argument, double* value); /* float, int, Scalar */
  int (*string_argument)(SconceCall* call, int argument, const char** text);
  int (*ints_argument)(SconceCall* call, int argument, const int64_t** values, size_t* count);
  int (*reals_argument)(SconceCall* call, int argument, const double** values, size_t* count);
  int (*list_length)(SconceCall* call, int argument, size_t* count);
  int (*list_tensor)(SconceCall* call, int argument, size_t item, SconceTensor* tensor);

  /* Results by their index in the schema. A new tensor is row-major and uninitialised. */
  int (*new_result)(SconceCall* call, int result, int32_t rank, const int64_t* sizes, int32_t dtype,
                    SconceTensor* tensor);
  int (*result_is_argument)(SconceCall* call, int result, int argument); /* of the schema's Tensor(a!) */
  int (*int_result)(SconceCall* call, int result, int64_t value);
  int (*real_result)(SconceCall* call, int result, double value);

  /* Sets the reason of the failure; returns 1. */
  int (*fail)(SconceCall* call, const char* reason);
};

/* The function that the library exports. */
int sconce_custom_ops(const SconceHost* host, SconceRegistry* registry);

#ifdef __cplusplus
}
#endif

#endif
