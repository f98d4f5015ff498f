// The rule for whether requests may share runs, as far as their rows are concerned: it needs a proof or the user's
// assurance. A trial can only contradict a proof.
//
//   proof            | trial: same, unknown, none | trial: differs
//   export or source | share                      | alone, contradicted
//   setting          | share (nothing is tried)   | share
//   none             | alone                      | alone
//
// A trial that crashed, timed out or was inconclusive has no result, so the proof stands.
#pragma once

#include <cstdint>
#include <string>

#include "sconce/package.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"

namespace sconce::server::scheduling {

struct RowSharing {
  enum class By : int8_t { kNothing, kExport, kSource, kSetting };

  bool shared = false;
  By by = By::kNothing;       // source of the proof that rows are independent, also if a trial contradicts it
  bool contradicted = false;  // a trial found a dependence that the proof excludes
  std::string reason{};       // why rows are not shared
};

// batching: kOff counts as kAuto, because kOff is independent of rows.
RowSharing row_sharing(const RowProof& proof, const InvarianceFinding& found, Batching batching);

// "export", "source", "setting", "none".
const char* name_of(RowSharing::By by) noexcept;
// For the log: "proved by sconce.export".
const char* text_of(RowSharing::By by) noexcept;

}  // namespace sconce::server::scheduling
