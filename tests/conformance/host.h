// What this host can run.
#pragma once

#include <string>

namespace sconce::conformance {

// Empty, or why code for this instruction set ("AVX2", "AVX512"; PyTorch's names) cannot run.
std::string reason_against_isa(const std::string& isa);
// Empty, or why code for this compute capability ("90") cannot run.
std::string reason_against_cuda(const std::string& sm);

}  // namespace sconce::conformance
