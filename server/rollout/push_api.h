// Requests that name a push by its id (docs/pushes.md). They are idempotent: a repeated request gets the same answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/rollout/publication.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server::rollout {

PushPlace place_of(const std::shared_ptr<registry::ServedModel>& served);

// The caller has claimed the model. The staged set of the push becomes active or gets its name (publish_push), or is
// dropped (drop_push). kNotFound and kBusy as in PushLedger; errors of Model.
Published publish_push(Rollout& rollout, const PushPlace& place, registry::ServedModel& served, const std::string& id,
                       const weights::PublishedBy& by, PublishOptions options = {});
// why: for the audit log.
void drop_push(Rollout& rollout, const PushPlace& place, Model& model, const std::string& id,
               const std::string& why = {});

// Drops the staged data of a push: the model's staged set, or the set that waits for the name `set`.
void drop_held(Model& model, const std::string& set);

// The pushes of named sets that the model has had since it was loaded.
std::vector<weights::StoredPush> pushes_of_sets(const Model& model);

// Records in the audit log that the push has ended without a commit: "aborted", "expired".
void tell_end(Rollout& rollout, const PushPlace& place, const std::string& id, const char* event,
              const std::string& why = {});

// Answers to .../weights/ACTION?push=ID.
std::string commit_push(Rollout& rollout, const AdminRequest& request, const std::string& id, PublishOptions options);
std::string abort_push(Rollout& rollout, const AdminRequest& request, const std::string& id);
std::string rollback_push(Rollout& rollout, const AdminRequest& request, const std::string& id, PublishOptions options);

}  // namespace sconce::server::rollout
