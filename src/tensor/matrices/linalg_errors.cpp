#include "src/tensor/matrices/linalg_errors.h"

#include <algorithm>
#include <string>

#include "sconce/check.h"
#include "src/tensor/copy.h"

namespace sconce {

void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix) {
  SCONCE_CHECK(info.dtype() == DType::kInt32, kInvalidArgument, api_name, ": info is ", describe(info));
  const Tensor all = contiguous(info);
  const int32_t* const begin = all.data_as<int32_t>();
  const int32_t* const end = begin + all.numel();
  const int32_t* const first = std::find_if(begin, end, [](int32_t i) { return i != 0; });
  if (first == end) return;
  const int32_t code = *first;
  const std::string where = is_matrix ? "" : ": (Batch element " + std::to_string(first - begin) + ")";
  const auto is = [&](std::string_view name) { return api_name.find(name) != std::string_view::npos; };
  if (code < 0) {
    SCONCE_CHECK(!is("svd") || code != -4, kInvalidArgument, api_name, where,
                 ": The algorithm failed to converge because the input matrix contained non-finite values.");
    SCONCE_FAIL(kInternal, api_name, where, ": Argument ", -code, " has illegal value.");
  }
  if (is("inv"))
    SCONCE_FAIL(kInvalidArgument, api_name, where, ": The diagonal element ", code,
                " is zero, the inversion could not be completed because the input matrix is singular.");
  if (is("solve"))
    SCONCE_FAIL(kInvalidArgument, api_name, where, ": The solver failed because the input matrix is singular.");
  if (is("cholesky"))
    SCONCE_FAIL(kInvalidArgument, api_name, where,
                ": The factorization could not be completed because the input is not positive-definite (the leading "
                "minor of order ",
                code, " is not positive-definite).");
  if (is("svd"))
    SCONCE_FAIL(kInvalidArgument, api_name, where,
                ": The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                "repeated singular values (error code: ",
                code, ").");
  if (is("eig") || is("syevd"))
    SCONCE_FAIL(kInvalidArgument, api_name, where,
                ": The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                "repeated eigenvalues (error code: ",
                code, ").");
  if (is("lstsq"))
    SCONCE_FAIL(kInvalidArgument, api_name, where,
                ": The least squares solution could not be computed because the input matrix does not have full rank "
                "(error code: ",
                code, ").");
  if (is("lu_factor"))
    SCONCE_FAIL(kInvalidArgument, api_name, where, ": U[", code, ",", code,
                "] is zero and using it on lu_solve would result in a division by zero.");
  SCONCE_FAIL(kInvalidArgument, api_name, where, ": the factorization failed (error code: ", code, ")");
}

}  // namespace sconce
