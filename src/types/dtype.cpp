#include "sconce/dtype.h"

namespace sconce {
namespace {

struct Row {
  DType dtype;
  int number;
  std::string_view name, safetensors, oip;
};
constexpr Row kRows[] = {
#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip) {DType::enumerator, number, name, safetensors, oip},
    SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
};

const Row* row(DType dtype) noexcept {
  for (const Row& r : kRows)
    if (r.dtype == dtype) return &r;
  return nullptr;
}

}  // namespace

std::string_view dtype_name(DType dtype) noexcept {
  const Row* r = row(dtype);
  return r ? r->name : "unknown";
}
std::string_view dtype_safetensors(DType dtype) noexcept {
  const Row* r = row(dtype);
  return r ? r->safetensors : "";
}
std::string_view dtype_oip(DType dtype) noexcept {
  const Row* r = row(dtype);
  return r ? r->oip : "";
}
std::optional<DType> dtype_from_name(std::string_view pytorch_name) noexcept {
  for (const Row& r : kRows)
    if (r.name == pytorch_name) return r.dtype;
  return std::nullopt;
}
std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept {
  for (const Row& r : kRows)
    if (!r.safetensors.empty() && r.safetensors == name) return r.dtype;
  return std::nullopt;
}
std::optional<DType> dtype_from_number(int64_t c10_number) noexcept {
  for (const Row& r : kRows)
    if (r.number == c10_number) return r.dtype;
  return std::nullopt;
}

}  // namespace sconce
