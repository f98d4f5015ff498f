// Numbers of devices, dtypes, layouts and memory formats. ABI: c/shim.h, torch 2.6 to 2.15.
#include "sconce/check.h"
#include "src/aoti_abi/abi_types.h"

extern "C" {

#define SCONCE_NUMBER(name, value) \
  int32_t aoti_torch_##name() { return value; }
SCONCE_NUMBER(device_type_cpu, 0)
SCONCE_NUMBER(device_type_cuda, 1)
SCONCE_NUMBER(device_type_xpu, 12)
SCONCE_NUMBER(device_type_mps, 13)
SCONCE_NUMBER(device_type_meta, 14)
SCONCE_NUMBER(device_type_privateuse1, 20)

#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip) SCONCE_DTYPE_NUMBER(enumerator, number)
#define SCONCE_DTYPE_NUMBER(enumerator, number) static_assert(static_cast<int>(sconce::DType::enumerator) == number);
SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
SCONCE_NUMBER(dtype_uint8, 0)
SCONCE_NUMBER(dtype_int8, 1)
SCONCE_NUMBER(dtype_int16, 2)
SCONCE_NUMBER(dtype_int32, 3)
SCONCE_NUMBER(dtype_int64, 4)
SCONCE_NUMBER(dtype_float16, 5)
SCONCE_NUMBER(dtype_float32, 6)
SCONCE_NUMBER(dtype_float64, 7)
SCONCE_NUMBER(dtype_complex32, 8)
SCONCE_NUMBER(dtype_complex64, 9)
SCONCE_NUMBER(dtype_complex128, 10)
SCONCE_NUMBER(dtype_bool, 11)
SCONCE_NUMBER(dtype_bfloat16, 15)
SCONCE_NUMBER(dtype_float8_e5m2, 23)
SCONCE_NUMBER(dtype_float8_e4m3fn, 24)
SCONCE_NUMBER(dtype_float8_e5m2fnuz, 25)
SCONCE_NUMBER(dtype_float8_e4m3fnuz, 26)
SCONCE_NUMBER(dtype_uint16, 27)
SCONCE_NUMBER(dtype_uint32, 28)
SCONCE_NUMBER(dtype_uint64, 29)
SCONCE_NUMBER(dtype_float8_e8m0fnu, 44)
SCONCE_NUMBER(dtype_float4_e2m1fn_x2, 45)

SCONCE_NUMBER(layout_strided, 0)
SCONCE_NUMBER(layout_sparse_coo, 1)
SCONCE_NUMBER(layout_sparse_csr, 2)
SCONCE_NUMBER(layout__mkldnn, 3)
SCONCE_NUMBER(layout_sparse_csc, 4)
SCONCE_NUMBER(layout_sparse_bsr, 5)
SCONCE_NUMBER(layout_sparse_bsc, 6)
SCONCE_NUMBER(layout_jagged, 7)

SCONCE_NUMBER(memory_format_contiguous_format, 0)
SCONCE_NUMBER(memory_format_preserve_format, 1)
SCONCE_NUMBER(memory_format_channels_last, 2)
SCONCE_NUMBER(memory_format_channels_last_3d, 3)

int32_t torch_dtype_float8_e8m0fnu() { return 44; }
int32_t torch_dtype_float4_e2m1fn_x2() { return 45; }

// The version of this ABI: 2.15.0 as major << 56 | minor << 48 | patch << 40.
uint64_t aoti_torch_abi_version() { return uint64_t{2} << 56 | uint64_t{15} << 48; }

// Generated checks use the result as an operand. An unknown number has size 0 and must not end the process.
size_t aoti_torch_dtype_element_size(int32_t dtype) {
  const auto known = sconce::dtype_from_number(dtype);
  return known ? sconce::dtype_bytes(*known) : 0;
}

}  // extern "C"
