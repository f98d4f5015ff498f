// LoadTrial: the trial of a model that is being loaded. A child process loads the same bytes at the same time as this
// process, runs the model on inputs that nobody sent, and reports what it has learned.
//
//   begin() --child--> finish() --> warm_up(), take()
//
// If the child ends, hangs or fails, the model is served without what the trial would have found. Used by one thread at
// a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sconce/model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/trial/trial_report.h"
#include "server/registry/trial/trial_request.h"
#include "server/registry/trial/trial_turns.h"
#include "server/support/config.h"

namespace sconce::server {

class LoadTrial {
 public:
  // program: as TrialSettings has it.
  LoadTrial(TrialTurns& turns, std::filesystem::path program, const PackageEntry& package, const ModelConfig& config);

  // Waits for a turn, then starts the child, if there is something to find out. gives_way: as TrialSettings has it.
  // kUnavailable if the server ends meanwhile.
  void begin(bool gives_way);
  // The same, if there is something to find out and a turn now; else returns false. Takes a child that waits for a
  // task, if there is one.
  bool begin_at_once(bool gives_way, std::unique_ptr<TrialProcess>& waiting);
  // Waits for the child. kUnavailable if the server ends meanwhile.
  void finish();
  // After finish(). The run by which the first request finds the model ready, on the inputs that the child has run to
  // their end. It needs the weights of the package.
  void warm_up(Model& model);
  // After finish(). Takes over what was learned of outputs.
  void take(ModelSignature& interface) const;
  // Whether another child may try more: this one came to its end, or there was none.
  bool ended_well() const noexcept { return problem_.empty(); }
  // What was not learned, and why, in one line; empty: nothing is missing.
  std::string not_learned() const;

 private:
  void start(bool gives_way, std::unique_ptr<TrialProcess> waiting);

  const PackageEntry& package_;
  TrialTurns& turns_;
  const TrialSettings settings_;
  const std::optional<TrialRequest> request_;
  const bool rows_follow_;  // unless the child does not come to its end
  std::optional<TrialTurns::Turn> turn_;
  std::unique_ptr<TrialProcess> child_;
  TrialReport report_;
  std::string problem_;  // of the child
  std::string cold_;     // why there was no warm-up run
};

}  // namespace sconce::server
