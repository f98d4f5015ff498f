// The error code for a file that cannot be written.
#pragma once

#include <cerrno>

#include "sconce/error.h"

namespace sconce {

// problem: errno. kOutOfMemory for a full disk, which clients are told of as of full memory (507); else kIo.
inline ErrorCode write_error_code(int problem) noexcept {
  return problem == ENOSPC || problem == EDQUOT ? ErrorCode::kOutOfMemory : ErrorCode::kIo;
}

}  // namespace sconce
