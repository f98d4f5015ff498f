// Shared by calls of LAPACK: its dtypes, and work memory.
#pragma once

#include "sconce/tensor.h"
#include "src/cpu/linalg/lapack.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {

// float, double, complex of both.
template <class F>
void dispatch_lapack(DType dtype, std::string_view name, F&& f) {
  require_lapack();
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(dtype, name, f);
}

// Uninitialised elements with the lifetime of the object.
template <class T>
class Workspace {
 public:
  explicit Workspace(int64_t count) : bytes_(make(count)) {}
  T* data() const noexcept { return static_cast<T*>(bytes_.data()); }

 private:
  static Tensor make(int64_t count) {
    const int64_t bytes = (count > 0 ? count : 1) * static_cast<int64_t>(sizeof(T));
    return Tensor::empty(IntSpan(&bytes, 1), DType::kUInt8);
  }
  Tensor bytes_;
};
// The best size of a workspace, which a query stored in the first element of a real or complex array.
template <class T>
int workspace_size(const T& answer) {
  if constexpr (kIsComplex<T>)
    return static_cast<int>(answer.real() + 1);
  else
    return static_cast<int>(answer + 1);
}

}  // namespace sconce
