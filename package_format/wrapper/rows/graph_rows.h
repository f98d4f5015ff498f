// Follows the rows of a batch through a generated graph.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce::rows {

// Returns "" if every statement of run_impl is understood and every output has a row for each row of the batch that is
// computed from that row alone; else why that is not known. `batch` is the symbol of the inputs' first dimension.
// kernels: the source before run_impl, and the sources of its kernels.
std::string why_not_independent(const WrapperSource& source, std::span<const std::string_view> kernels,
                                std::string_view batch, const ModelSpec& spec);

}  // namespace sconce::rows
