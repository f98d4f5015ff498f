#include "server/scheduling/batching/row_sharing.h"

#include <iterator>

namespace sconce::server::scheduling {
namespace {

struct Words {
  RowSharing::By by;
  const char *name, *text;
};
constexpr Words kWords[] = {{RowSharing::By::kNothing, "none", "not proved"},
                            {RowSharing::By::kExport, "export", "proved by sconce.export"},
                            {RowSharing::By::kSource, "source", "proved by the generated source"},
                            {RowSharing::By::kSetting, "setting", "set by batching=on"}};

constexpr const Words& words_of(RowSharing::By by) noexcept { return kWords[static_cast<size_t>(by)]; }

constexpr bool in_order() noexcept {
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (static_cast<size_t>(kWords[i].by) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

RowSharing row_sharing(const RowProof& proof, const InvarianceFinding& found, Batching batching) {
  using By = RowSharing::By;
  if (batching == Batching::kOn) return {.shared = true, .by = By::kSetting};
  if (!proof.independent())
    return {.reason = "it is not proved that rows do not influence each other: " +
                      (proof.reason.empty() ? std::string("it was not tried") : proof.reason)};
  const By by = proof.by == RowProof::By::kExport ? By::kExport : By::kSource;
  if (found.kind == InvarianceFinding::Kind::kDiffers) return {.by = by, .contradicted = true, .reason = found.reason};
  return {.shared = true, .by = by};
}

const char* name_of(RowSharing::By by) noexcept { return words_of(by).name; }

const char* text_of(RowSharing::By by) noexcept { return words_of(by).text; }

}  // namespace sconce::server::scheduling
