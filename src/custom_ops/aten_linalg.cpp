// Linear algebra and Fourier transforms.
#include "src/custom_ops/aten.h"
#include "src/custom_ops/boxed.h"
#include "src/ops/linalg_errors.h"

namespace sconce::custom_ops {
namespace {

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", boxed<cpu::_linalg_check_errors>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_linalg_rows() { return kRows; }

}  // namespace sconce::custom_ops
