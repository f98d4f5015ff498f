#include "package_format/files/fault_guard.h"
#include "sconce/mapped_files.h"
#include "src/faults/signals.h"

namespace sconce {

void guard_package_faults() noexcept {
  guard_mapped_files();
  faults::guard_code(mend_fault);
}

}  // namespace sconce
