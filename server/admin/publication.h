// Publication: where a set of weights becomes the active one. Every way to publish a set goes through here, so that
// what follows a publication is done for each of them.
#pragma once

#include <cstdint>

#include "server/admin/admin_request.h"
#include "server/admin/service.h"
#include "server/models/served_model.h"

namespace sconce::server {

struct Published {
  uint64_t generation = 0;
};

// The caller has claimed the model. `by`: who asks. Errors of Model::commit_weights and Model::rollback_weights: the
// active set stays.
Published publish_staged(Service& service, ServedModel& served, const AdminRequest& by);
Published publish_previous(Service& service, ServedModel& served, const AdminRequest& by);

}  // namespace sconce::server
