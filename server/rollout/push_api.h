// Requests that name a push by its id (docs/weights.md). They are idempotent: repeated, they answer the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/rollout/publication.h"
#include "server/rollout/service.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server {

PushPlace place_of(const std::shared_ptr<ServedModel>& served);

// The caller has claimed the model. The set that the push staged becomes active, or gets its name, or is dropped.
// kNotFound and kBusy as in PushLedger; errors of Model.
Published publish_push(Service& service, const PushPlace& place, ServedModel& served, const std::string& id,
                       const PublishedBy& by, PublishOptions options = {});
// why: for the audit log.
void drop_push(Service& service, const PushPlace& place, Model& model, const std::string& id,
               const std::string& why = {});

// What a push has staged goes: the model's staged set, or the one that waits for the name `set`.
void drop_held(Model& model, const std::string& set);

// The pushes that filled named sets which the model has had since it was loaded.
std::vector<KeptPush> pushes_of_sets(const Model& model);

// The push has ended without being committed: "aborted", "expired". For the audit log.
void tell_end(Service& service, const PushPlace& place, const std::string& id, const char* event,
              const std::string& why = {});

// Answers to .../weights/ACTION?push=ID.
std::string commit_push(Service& service, const AdminRequest& request, const std::string& id, PublishOptions options);
std::string abort_push(Service& service, const AdminRequest& request, const std::string& id);
std::string rollback_push(Service& service, const AdminRequest& request, const std::string& id, PublishOptions options);

}  // namespace sconce::server
