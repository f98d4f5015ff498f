#include "server/scheduling/batching/row_sharing.h"

#include <doctest/doctest.h>

#include <string>
#include <tuple>

namespace sconce::server::scheduling {
namespace {

using By = RowSharing::By;
using Kind = InvarianceFinding::Kind;

const RowProof kExported{.by = RowProof::By::kExport}, kFromSource{.by = RowProof::By::kSource},
    kUnproved{.reason = "relu at model.py:7"};
// What became of a trial. One that died, that took too long or that the settings forbid leaves no finding
// (tests/server/registry/trial/load_trial_test.cpp).
const InvarianceFinding kNotTried, kSame{.kind = Kind::kSame}, kDiffers{.kind = Kind::kDiffers, .reason = "rows meet"},
    kUnknown{.kind = Kind::kUnknown, .reason = "it cannot tell"};

}  // namespace

TEST_CASE("row sharing: a proof stands whatever becomes of its trial, unless that saw rows meet") {
  for (const auto& [proof, by] : {std::pair(kExported, By::kExport), {kFromSource, By::kSource}}) {
    for (const InvarianceFinding& found : {kSame, kUnknown, kNotTried}) {
      const RowSharing sharing = row_sharing(proof, found, Batching::kAuto);
      CHECK(sharing.shared);
      CHECK(sharing.by == by);
      CHECK_FALSE(sharing.contradicted);
      CHECK(sharing.reason == "");
    }
    const RowSharing sharing = row_sharing(proof, kDiffers, Batching::kAuto);
    CHECK_FALSE(sharing.shared);
    CHECK(sharing.by == by);
    CHECK(sharing.contradicted);
    CHECK(sharing.reason == "rows meet");
  }
}

TEST_CASE("row sharing: the user's word needs no proof and no trial") {
  for (const RowProof& proof : {kExported, kFromSource, kUnproved}) {
    for (const InvarianceFinding& found : {kSame, kUnknown, kNotTried, kDiffers}) {
      const RowSharing sharing = row_sharing(proof, found, Batching::kOn);
      CHECK(sharing.shared);
      CHECK(sharing.by == By::kSetting);
      CHECK_FALSE(sharing.contradicted);
    }
  }
}

TEST_CASE("row sharing: without a proof, no trial allows it") {
  for (const InvarianceFinding& found : {kSame, kUnknown, kNotTried, kDiffers}) {
    const RowSharing sharing = row_sharing(kUnproved, found, Batching::kAuto);
    CHECK_FALSE(sharing.shared);
    CHECK(sharing.by == By::kNothing);
    CHECK_FALSE(sharing.contradicted);
    CHECK(sharing.reason == "it is not proved that rows do not influence each other: relu at model.py:7");
  }
  CHECK(row_sharing({}, kNotTried, Batching::kAuto).reason ==
        "it is not proved that rows do not influence each other: it was not tried");
}

TEST_CASE("row sharing: names, and what the log says") {
  for (const auto& [by, name, text] : {std::tuple(By::kExport, "export", "proved by sconce.export"),
                                       {By::kSource, "source", "proved by the generated source"},
                                       {By::kSetting, "setting", "set by batching=on"},
                                       {By::kNothing, "none", "not proved"}}) {
    CHECK(name_of(by) == std::string(name));
    CHECK(text_of(by) == std::string(text));
  }
}

}  // namespace sconce::server::scheduling
