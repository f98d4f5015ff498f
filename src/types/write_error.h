// The error code for a file that cannot be written.
#pragma once

#include <cerrno>

#include "sconce/error.h"

namespace sconce {

// Maps errno to an error code: kOutOfMemory for a full disk, which HTTP clients get as 507 like full memory; else kIo.
inline ErrorCode write_error_code(int problem) noexcept {
  return problem == ENOSPC || problem == EDQUOT ? ErrorCode::kOutOfMemory : ErrorCode::kIo;
}

}  // namespace sconce
