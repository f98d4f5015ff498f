#include "server/batching/row_sharing.h"

namespace sconce::server {

RowSharing row_sharing(const RowProof& proof, const RowFinding& found, Batching batching) {
  using By = RowSharing::By;
  if (batching == Batching::kOn) return {.shared = true, .by = By::kSetting};
  if (!proof.independent())
    return {.reason = "it is not proved that rows do not influence each other: " +
                      (proof.reason.empty() ? std::string("it was not tried") : proof.reason)};
  const By by = proof.by == RowProof::By::kExport ? By::kExport : By::kSource;
  if (found.kind == RowFinding::Kind::kDiffers) return {.by = by, .contradicted = true, .reason = found.reason};
  return {.shared = true, .by = by};
}

const char* name_of(RowSharing::By by) noexcept {
  switch (by) {
    case RowSharing::By::kExport:
      return "export";
    case RowSharing::By::kSource:
      return "source";
    case RowSharing::By::kSetting:
      return "setting";
    case RowSharing::By::kNothing:
      break;
  }
  return "none";
}

const char* text_of(RowSharing::By by) noexcept {
  switch (by) {
    case RowSharing::By::kExport:
      return "proved by sconce.export";
    case RowSharing::By::kSource:
      return "proved by the generated source";
    case RowSharing::By::kSetting:
      return "set by batching=on";
    case RowSharing::By::kNothing:
      break;
  }
  return "not proved";
}

}  // namespace sconce::server
