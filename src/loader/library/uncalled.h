// C++ names of libtorch that a model's code mentions but never calls. aot_inductor.allow_stack_allocation puts ATen's
// headers into a package, and a compiler that does not optimise (compile_wrapper_opt_level "O0", debug_compile) emits
// their inline functions. Names: c10/core/{SymInt,SymFloat,TensorImpl,UndefinedTensorImpl}.h, c10/util/SmallVector.h
// and ATen/core/ivalue.h, torch 2.15.
#pragma once

#include <span>
#include <string_view>

namespace sconce::loader {

struct Uncalled {
  const char* symbol;
  // The replacement for a model: a function that throws kModelFailed with the name, or an object of zeros.
  void* replacement;
};

// Immutable.
std::span<const Uncalled> uncalled_names() noexcept;
bool is_uncalled(std::string_view symbol) noexcept;

}  // namespace sconce::loader
