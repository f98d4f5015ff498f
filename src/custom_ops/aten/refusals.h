// ATen's operators that are refused on purpose, and why.
#pragma once

#include <string_view>

namespace sconce::custom_ops {

// "sparse tensors, ..." for "aten::_sparse_sum.dim"; empty for what is not refused.
std::string_view refusal_of_operator(std::string_view name) noexcept;

}  // namespace sconce::custom_ops
