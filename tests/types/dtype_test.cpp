#include "sconce/dtype.h"

#include <doctest/doctest.h>

using namespace sconce;

TEST_CASE("dtype: names, numbers and sizes are PyTorch's") {
  CHECK(dtype_name(DType::kBFloat16) == "bfloat16");
  CHECK(dtype_from_name("float8_e4m3fn") == DType::kFloat8E4M3FN);
  CHECK(dtype_from_number(11) == DType::kBool);
  CHECK(!dtype_from_number(12));
  CHECK(!dtype_from_number(-1));
  CHECK(!dtype_from_name("float"));
  CHECK(dtype_bytes(DType::kComplex128) == 16);
  CHECK(dtype_safetensors(DType::kComplex32).empty());
  CHECK(!dtype_from_safetensors(""));
  CHECK(dtype_oip(DType::kComplex64) == "FP32");
}

TEST_CASE("dtype: classes") {
  CHECK(is_integral(DType::kBool, true));
  CHECK(!is_integral(DType::kBool, false));
  CHECK(is_integral(DType::kUInt64, false));
  CHECK(is_floating(DType::kFloat16));
  CHECK(!is_floating(DType::kFloat8E5M2));
  CHECK(is_complex(DType::kComplex32));
}
