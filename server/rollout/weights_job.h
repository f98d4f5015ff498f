// WeightsJob: executes POST .../weights, from the request to the staged or published set. Used only by its thread of
// AdminThreads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sconce/weight_sources.h"
#include "server/http/upload.h"
#include "server/registry/served_model.h"
#include "server/rollout/golden_api.h"
#include "server/rollout/publication.h"
#include "server/rollout/push/push_ledger.h"
#include "server/rollout/push/relay.h"
#include "server/rollout/rollout.h"
#include "server/rollout/trainer_tensors/trainer_tensors.h"
#include "server/rollout/work/admin_request.h"
#include "server/rollout/work/operation_log.h"

namespace sconce::server::rollout {

class WeightsJob {
 public:
  WeightsJob(Rollout& rollout, AdminRequest request, AdminDone done);
  ~WeightsJob();

  void run();                                    // may throw
  void fail(const std::exception_ptr& problem);  // with the exception of run()
  void abandon() noexcept;                       // after fail() threw

 private:
  struct Options {
    UpdateOptions update;
    bool async = false, commit = false;
    GoldenRule golden = GoldenRule::kRequire;
    PublishOptions publish;
    std::optional<PushTerms> push;
    bool relay = false;
    FileOptions file;  // options for a file that the request names
  };

  bool named() const noexcept { return !request_.set.empty(); }  // fills a named set
  bool must_be_signed() const noexcept { return rollout_.signatures.on(); }
  void read_options();
  void hold_for_push();
  void read_reference();
  void find_model();
  class Arrival;
  class HeldPush;
  void begin_relay();
  void check_going_on();
  void receive(WeightUpdate& update);
  void read_file(WeightUpdate& update);
  void read_tensors(WeightUpdate& update);
  void judge();
  uint64_t publish();
  void tell(std::string_view event, const std::string& reason = {}) noexcept;
  void answer(int status, std::string text);

  Rollout& rollout_;
  const AdminRequest request_;
  AdminDone done_;
  Options options_;
  std::shared_ptr<registry::ServedModel> model_;
  std::shared_ptr<Operation> operation_;
  uint64_t revision_ = 0;  // of the repository, when the model was last found there
  PushPlace place_;
  std::optional<Relay> relay_;
  std::optional<http::Upload> upload_;
  std::optional<TrainerTensors> tensors_;  // described in the request, in place of a file
  bool over_ = false;                      // all requested work is done
  std::string file_, opened_;              // a named file: its name, and the path under which it was opened
};

}  // namespace sconce::server::rollout
