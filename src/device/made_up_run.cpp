#include "src/device/made_up_run.h"

#include "sconce/check.h"

namespace sconce {

static thread_local bool made_up = false;

MadeUpRun::MadeUpRun() noexcept { made_up = true; }
MadeUpRun::~MadeUpRun() { made_up = false; }

void refuse_in_made_up_run(const char* what) { SCONCE_CHECK(!made_up, kFailedPrecondition, what); }

}  // namespace sconce
