// `sconce weights diff A B`: the differences between the tensors of two weight files.
#pragma once

#include <string>

namespace sconce::server::cli {

struct DiffOptions {
  std::string a, b;
  std::string package_model;  // the model in a package; "" as in Package::model
  bool all = false;           // prints equal tensors, too
  bool json = false;
};

// Prints the comparison. Returns 0 if all tensors are equal, else 1. Throws for a file that cannot be read.
int diff_weights(const DiffOptions& options);

}  // namespace sconce::server::cli
