// The functions of this room, for a build without it (server/support/left_out.h).
#include "server/support/left_out.h"

#include <utility>

#include "server/rollout/trainers/trainer_routes.h"

namespace sconce::server::rollout {
namespace {

const LeftOut kTrainers("trainers", "SCONCE_TRAINERS", {"trainer_timeout"});

std::string refuse(const AdminRequest&) { kTrainers.fail(); }

}  // namespace

namespace admin {

// One function for each handler of trainer_routes.h.
#define TEXT(name) \
  std::string name(Rollout&, const AdminRequest&) { kTrainers.fail(); }
#define START(name)                                                                  \
  void name(Rollout& rollout, AdminRequest request, AdminDone done) {                \
    start_admin(rollout.admin_threads, std::move(request), refuse, std::move(done)); \
  }

START(update_from_disk)
START(update_from_tensor)
START(update_version)
START(pause_generation)
START(continue_generation)
START(begin_update)
START(end_update)
START(weight_checksums)
START(check_weights)
START(flush_cache)
START(no_transport)
TEXT(weight_version)
TEXT(model_info)
TEXT(weights_by_name)
TEXT(pause)
TEXT(resume)
TEXT(is_paused)
TEXT(init_transfer)
TEXT(start_update)
TEXT(update_weights)
TEXT(finish_update)
TEXT(shutdown_transfer)
TEXT(weight_info)
TEXT(world_size)
TEXT(abort_requests)
TEXT(start_draft_update)
TEXT(compare_checksums)

#undef START
#undef TEXT

}  // namespace admin
}  // namespace sconce::server::rollout
