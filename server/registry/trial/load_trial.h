// LoadTrial: the trial of a model that is being loaded. A child process loads the same bytes in parallel, runs the
// model on dummy inputs, and reports its findings.
//
//   begin() --child--> finish() --> warm_up(), take()
//
// If the child crashes, hangs or fails, the model is served without the findings of the trial. Used by one thread at a
// time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sconce/model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/trial/trial_report.h"
#include "server/registry/trial/trial_request.h"
#include "server/registry/trial/trial_slots.h"
#include "server/support/config.h"

namespace sconce::server::registry {

class LoadTrial {
 public:
  // program: as in TrialSettings.
  LoadTrial(TrialSlots& slots, std::filesystem::path program, const PackageEntry& package, const ModelConfig& config);

  // Waits for a slot, then starts the child, if there is something to find out. gives_way: as in TrialSettings.
  // kUnavailable if the server shuts down meanwhile.
  void begin(bool gives_way);
  // Likewise, if a slot is free now; else returns false. Uses the waiting child, if there is one.
  bool begin_at_once(bool gives_way, std::unique_ptr<TrialProcess>& waiting);
  // Waits for the child. kUnavailable if the server shuts down meanwhile.
  void finish();
  // Call this after finish(). Makes the warm-up run, on the inputs that the child has run successfully. Needs the
  // package's weights.
  void warm_up(Model& model);
  // Call this after finish(). Adds the findings about outputs.
  void take(scheduling::ModelSignature& interface) const;
  // Whether another child may try more: this child ended normally, or there was none.
  bool ended_well() const noexcept { return problem_.empty(); }
  // The missing findings and the reason, in one line; empty: none.
  std::string not_learned() const;

 private:
  void start(bool gives_way, std::unique_ptr<TrialProcess> waiting);

  const PackageEntry& package_;
  TrialSlots& slots_;
  const TrialSettings settings_;
  const std::optional<TrialRequest> request_;
  const bool rows_follow_;  // unless the child ends early
  std::optional<TrialSlots::Slot> slot_;
  std::unique_ptr<TrialProcess> child_;
  TrialReport report_;
  std::string problem_;  // with the child
  std::string cold_;     // why there was no warm-up run
};

}  // namespace sconce::server::registry
