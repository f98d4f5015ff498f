// Whether a set of weights fits a model. Pure functions.
#pragma once

#include <span>
#include <string>

#include "sconce/package.h"
#include "sconce/weights.h"

namespace sconce::server {

// Why a complete set of these entries is not one of a model with these constants: the first name, dtype or shape that
// one has and the other has not. Empty: it fits. Constants that no update can replace do not count.
std::string misfit(std::span<const WeightEntry> set, std::span<const ConstantSpec> constants);

}  // namespace sconce::server
