// Publication: makes a weight set of a served model the active one. All ways to do so use this file, so that the same
// steps follow each publication: the set is stored on disk, the model's readiness is updated, and the set is guarded if
// requested (server/rollout/watch/guard_watcher.h). The guard and the push are stored with the set. A load has its own
// steps (server/weights/store/starting_weights.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/registry/served_model.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_request.h"
#include "server/weights/store/weight_journal.h"

namespace sconce::server::http {
class Query;
}  // namespace sconce::server::http

namespace sconce::server::rollout {

// Drops the model's staged set in the destructor unless keep() was called. The caller's claim keeps other threads from
// changing it.
class StagedSet {
 public:
  explicit StagedSet(Model& model) noexcept : model_(&model) {}
  ~StagedSet();
  StagedSet(const StagedSet&) = delete;
  StagedSet& operator=(const StagedSet&) = delete;
  // The set was published, or stays staged.
  void keep() noexcept { model_ = nullptr; }

 private:
  Model* model_;
};

struct Published {
  uint64_t weight_version = 0;
  bool stored = false;  // on disk
};

// A request's options for the guard; all others come from the model's settings.
struct GuardWish {
  std::optional<std::chrono::microseconds> window, p99;
  std::optional<double> errors, nan;
  bool any() const noexcept { return window || p99 || errors || nan; }
};

struct PublishOptions {
  bool store = true;  // false: a restart serves the previously stored set
  GuardWish guard;
  std::string push;    // id of the push that is published or undone; empty: none
  std::string reason;  // for the audit log
};

// The query's "store", "guard", "guard_errors", "guard_nan" and "guard_p99". kInvalidArgument.
PublishOptions publish_options(const http::Query& query);

// Publish a set. They return when the set is on disk (setting weights_store), or when storing has failed, which the
// weights documents then report. The caller has claimed the model. by: the requester. Errors of Model::commit_weights
// and Model::rollback_weights, and kUnavailable if the model was unloaded or replaced: then the active set is
// unchanged.
Published publish_staged(Rollout& rollout, registry::ServedModel& served, const weights::PublishedBy& by,
                         const PublishOptions& options = {});
Published publish_previous(Rollout& rollout, registry::ServedModel& served, const weights::PublishedBy& by,
                           const PublishOptions& options = {});
// Publishes the weights of a named set. Errors of Model::promote_set.
Published publish_set(Rollout& rollout, registry::ServedModel& served, const std::string& name,
                      const weights::PublishedBy& by, const PublishOptions& options = {});

// Raises the weight version of the active set; the set is on disk with that version before others see it. The caller
// has claimed the model. Does nothing if the set has that version. kBusy for a lower version, and while the set is
// guarded; kIo, and then nothing has changed; kUnavailable if the model was unloaded or replaced.
void set_active_version(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
                        uint64_t weight_version);

inline weights::PublishedBy published_by(const AdminRequest& request) { return {request.peer, request.id.text()}; }

}  // namespace sconce::server::rollout
