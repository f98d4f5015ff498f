// `sconce weights diff A B`: how far the tensors of two files of weights are apart.
#pragma once

#include <string>

namespace sconce::server::commands {

struct DiffOptions {
  std::string a, b;
  std::string package_model;  // which model of a package; "" as in Package::model
  bool all = false;           // prints equal tensors, too
  bool json = false;
};

// Prints the comparison. Returns 0 if all tensors are equal, else 1. Throws for a file that cannot be read.
int diff_weights(const DiffOptions& options);

}  // namespace sconce::server::commands
