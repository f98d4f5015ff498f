// Publication: where a set of weights becomes the active one. Every way to publish goes through here, so that what
// follows a publication is done for each of them: the set is kept on the disk, and the model is ready or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/admin/service.h"
#include "server/admin/work/admin_request.h"
#include "server/kept/weight_journal.h"
#include "server/models/served_model.h"

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
};

struct PublishOptions {
  bool keep = true;       // false: a restart serves what was kept before
  std::string push = {};  // the push whose set it is; empty: none
};

// "keep" of a query: true unless it says otherwise. kInvalidArgument.
bool keeps(const class Query& query);

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

inline PublishedBy published_by(const AdminRequest& request) { return {request.peer, request.id.text()}; }

}  // namespace sconce::server
