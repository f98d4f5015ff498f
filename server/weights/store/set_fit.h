// Whether a weight set fits a model. Pure functions.
#pragma once

#include <span>
#include <string>

#include "sconce/package.h"
#include "sconce/weights.h"

namespace sconce::server::weights {

// Why a complete set with these entries does not fit a model with these constants: the first name, dtype or shape that
// differs. Empty: it fits. Constants that no update can replace are ignored.
std::string misfit(std::span<const WeightEntry> set, std::span<const ConstantSpec> constants);

}  // namespace sconce::server::weights
