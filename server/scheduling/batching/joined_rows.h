// The last rows of an output (RunRequest::last_rows) that the requests of one run need.
#pragma once

#include <algorithm>

#include "sconce/model.h"

namespace sconce::server::scheduling {

// The result for a run of both requests, with the parts of both: the longer list of the largest numbers; unreduced rows
// if one of them needs these; no last rows if one of them wants none or those of another output.
inline OutputRows joined(const OutputRows& a, const OutputRows& b) noexcept {
  if (a.output < 0 || a.output != b.output) return {};
  const bool whole = a.rows.largest == 0 || b.rows.largest == 0;
  return {a.output,
          {.parts = a.rows.parts + b.rows.parts, .largest = whole ? 0 : std::max(a.rows.largest, b.rows.largest)}};
}

}  // namespace sconce::server::scheduling
