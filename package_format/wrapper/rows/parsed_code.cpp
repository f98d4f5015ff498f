#include "package_format/wrapper/rows/parsed_code.h"

#include "package_format/text/source_text.h"

namespace sconce::rows {

KernelLibrary& ParsedCode::kernels() {
  if (!kernels_) kernels_.emplace(texts_);
  return *kernels_;
}

const std::vector<Index>& ParsedCode::statements() {
  if (parsed_) return statements_;
  parsed_ = true;
  std::string_view body = source_.body;
  has_body_ = skip_to(body, ") {\n").has_value();
  if (has_body_) statements_ = syntax_.statements(body, problem_);
  return statements_;
}

}  // namespace sconce::rows
