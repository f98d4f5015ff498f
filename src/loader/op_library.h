// OpLibrary: a library of custom operators, written against PyTorch's stable ABI or include/sconce/custom_op.h, or one
// of C functions that packages link to (aot_inductor.custom_ops_to_c_shims).
//
// Loaded as models are (shared_library.h), so that libtorch among what it needs is sconce. Its operators are known to
// find_operator, and its C functions to models that call them directly, as long as the object lives.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/custom_ops/custom_library.h"
#include "src/loader/library/shared_library.h"

namespace sconce::loader {

class OpLibrary {
 public:
  // One object per file in the process. Thread-safe. kIo; kCorruptPackage; kIncompatible with every reason: symbols
  // that nobody has (C++ functions of libtorch among them, which no process without libtorch can have), schemas and
  // kernels that do not fit.
  static std::shared_ptr<const OpLibrary> open(const std::filesystem::path& path);

  static std::vector<std::shared_ptr<const OpLibrary>> open_all(std::span<const std::filesystem::path> paths);

  const std::string& name() const noexcept { return library_.name(); }
  size_t operators() const noexcept { return operators_.size(); }

 private:
  OpLibrary() = default;
  SharedLibrary library_;
  std::vector<std::unique_ptr<custom_ops::Registration>> operators_;  // go before the code
};

}  // namespace sconce::loader
