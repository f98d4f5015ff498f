// OpLibrary: a library of custom operators that uses PyTorch's stable ABI or include/sconce/custom_op.h, or a library
// of C functions that packages link to (aot_inductor.custom_ops_to_c_shims).
//
// It is loaded like a model (shared_library.h), with Sconce in place of libtorch. During the object's lifetime,
// find_operator() finds its operators, and models can call its C functions.
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
  // There is one object per file in the process. Thread-safe. kIo; kCorruptPackage; kIncompatible with every reason:
  // missing symbols (such as libtorch's C++ functions, which exist only with libtorch), and schemas that do not match
  // their kernels.
  static std::shared_ptr<const OpLibrary> open(const std::filesystem::path& path);

  static std::vector<std::shared_ptr<const OpLibrary>> open_all(std::span<const std::filesystem::path> paths);

  const std::string& name() const noexcept { return library_.name(); }
  size_t operators() const noexcept { return operators_.size(); }

 private:
  OpLibrary() = default;
  SharedLibrary library_;
  std::vector<std::unique_ptr<custom_ops::Registration>> operators_;  // destroyed before the code
};

}  // namespace sconce::loader
