#include "server/admin/publication.h"

namespace sconce::server {

Published publish_staged(Service& /*service*/, ServedModel& served, const AdminRequest& /*by*/) {
  return {served.model().commit_weights()};
}

Published publish_previous(Service& /*service*/, ServedModel& served, const AdminRequest& /*by*/) {
  return {served.model().rollback_weights()};
}

}  // namespace sconce::server
