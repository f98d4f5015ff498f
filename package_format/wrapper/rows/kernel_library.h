// The CPU kernels in a package's sources.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/rows/kernel_rows.h"

namespace sconce::rows {

class KernelLibrary {
 public:
  explicit KernelLibrary(std::span<const std::string_view> sources);

  bool has(std::string_view name) const { return texts_.contains(name); }
  // Evaluates the kernel for these arguments, as run_kernel().
  std::string run(std::string_view name, const std::vector<KernelArgument>& arguments, RowState& state, int64_t& steps);

 private:
  struct Parsed {
    Syntax syntax;
    std::vector<Parameter> parameters;
    Index body = kNothing;
    std::string_view problem;
  };
  std::unordered_map<std::string_view, std::string_view> texts_;  // from the parameter list on
  std::unordered_map<std::string_view, Parsed> parsed_;
};

}  // namespace sconce::rows
