// A model's generated code, parsed once for all readers. One thread at a time.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/kernel_library.h"
#include "package_format/wrapper/rows/syntax.h"
#include "package_format/wrapper/wrapper_source.h"

namespace sconce::rows {

class ParsedCode {
 public:
  // kernels: the source before run_impl, and the sources of its kernels. All texts must outlive the object. Parsing
  // happens on demand.
  ParsedCode(const WrapperSource& source, std::span<const std::string_view> kernels)
      : source_(source), texts_(kernels) {}

  const WrapperSource& source() const noexcept { return source_; }
  Syntax& syntax() noexcept { return syntax_; }
  KernelLibrary& kernels();
  // The statements of run_impl, up to the first one that is not understood.
  const std::vector<Index>& statements();
  // The text that is not understood; empty if there is none. Set by statements().
  std::string_view problem() const noexcept { return problem_; }
  bool has_body() const noexcept { return has_body_; }

 private:
  const WrapperSource& source_;
  std::span<const std::string_view> texts_;
  Syntax syntax_;
  std::optional<KernelLibrary> kernels_;
  bool parsed_ = false, has_body_ = false;
  std::vector<Index> statements_;
  std::string_view problem_;
};

}  // namespace sconce::rows
