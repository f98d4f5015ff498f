// Reads a model's signature from the C++ that PyTorch generated for it (NAME.wrapper.cpp; NAME.cpp in torch 2.6).
// Forms of torch 2.6 to 2.15 (FORMAT.md). Facts that the text lacks stay unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sconce/package.h"

namespace sconce {

struct WrapperSource {
  bool found = false;           // whether the text defines an AOTInductor model
  bool include_weights = true;  // the .so has its weights, or their offsets in its own file
  std::string in_spec, out_spec;
  std::string_view body;     // from run_impl on
  std::string_view folding;  // the body of _const_run_impl; empty without runtime constant folding
};

// Fills inputs, outputs, constants (except ConstantSpec::mutated), march and isa_flags. The text comes from the
// package and may be hostile: counts above 65,536 are kCorruptPackage.
WrapperSource read_wrapper_source(std::string_view text, ModelSpec& spec);

// The largest N of `num_threads(N)`, or of a template's `num_thread = N`, which allocates scratch for N threads; 0 if
// none.
int kernel_threads(std::string_view text);

}  // namespace sconce
