// Publication: where a set of weights becomes the active one. Every way to publish goes through here, so that what
// follows a publication is done for each of them: the set is kept on the disk, the model is ready or not, and the set
// is watched if that is asked for (server/rollout/watch/guard_keeper.h). With the set, it is kept how it is watched and
// which push it came with.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/registry/served_model.h"
#include "server/rollout/service.h"
#include "server/rollout/work/admin_request.h"
#include "server/weights/store/weight_journal.h"

namespace sconce::server {

// Drops the model's staged set unless keep() is called, while the caller's claim keeps others from changing it.
class StagedSet {
 public:
  explicit StagedSet(Model& model) noexcept : model_(&model) {}
  ~StagedSet();
  StagedSet(const StagedSet&) = delete;
  StagedSet& operator=(const StagedSet&) = delete;
  // It was published, or stays staged.
  void keep() noexcept { model_ = nullptr; }

 private:
  Model* model_;
};

struct Published {
  uint64_t generation = 0;
  bool kept = false;  // on the disk
};

// What a request says of the watch over what it publishes; the rest is as the model's settings have it.
struct GuardWish {
  std::optional<std::chrono::microseconds> window, p99;
  std::optional<double> errors, nan;
  bool any() const noexcept { return window || p99 || errors || nan; }
};

struct PublishOptions {
  bool keep = true;  // false: a restart serves what was kept before
  GuardWish guard;
  std::string push;    // the id of the push that is published or undone; empty: it is none
  std::string reason;  // why, for the audit log
};

// What "keep", "guard", "guard_errors", "guard_nan" and "guard_p99" of a query say. kInvalidArgument.
PublishOptions publish_options(const class Query& query);

// Publish; return when the set is on the disk (setting weights_keep), or when it is clear that it cannot be, which the
// documents of weights then say. The caller has claimed the model. `by`: who asks. Errors of Model::commit_weights and
// Model::rollback_weights, and kUnavailable if the model was unloaded or replaced: the active set stays.
Published publish_staged(Service& service, ServedModel& served, const PublishedBy& by,
                         const PublishOptions& options = {});
Published publish_previous(Service& service, ServedModel& served, const PublishedBy& by,
                           const PublishOptions& options = {});
// The weights of a named set. Errors of Model::promote_set.
Published publish_set(Service& service, ServedModel& served, const std::string& name, const PublishedBy& by,
                      const PublishOptions& options = {});

// The active set gets a larger number; it is on the disk under that number before anybody sees it. The caller has
// claimed the model. Does nothing if it has that number. kBusy for a smaller one, and while the set is watched; kIo,
// and then nothing has changed; kUnavailable if the model was unloaded or replaced.
void renumber_active(Service& service, const std::shared_ptr<ServedModel>& served, uint64_t generation);

inline PublishedBy published_by(const AdminRequest& request) { return {request.peer, request.id.text()}; }

}  // namespace sconce::server
