// ATen operators that Sconce refuses on purpose, and the reasons.
#pragma once

#include <string_view>

namespace sconce::custom_ops {

// "sparse tensors, ..." for "aten::_sparse_sum.dim"; empty if the operator is not refused.
std::string_view refusal_of_operator(std::string_view name) noexcept;

}  // namespace sconce::custom_ops
