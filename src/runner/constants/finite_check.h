// Finds NaN and infinity in a run of elements of any dtype. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sconce/dtype.h"

namespace sconce::runner {

// Index of the first element that is not finite, counting complex elements once; nullopt for dtypes without NaN.
// Elements may lie at any address.
std::optional<int64_t> first_not_finite(DType dtype, std::span<const std::byte> elements) noexcept;

}  // namespace sconce::runner
