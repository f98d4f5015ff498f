#include <utility>

#include "package_format/files/fault_guard.h"
#include "sconce/mapped_files.h"
#include "src/faults/code_ranges.h"
#include "src/faults/signals.h"

namespace sconce {

void guard_package_faults() noexcept {
  guard_mapped_files();
  faults::guard_code(mend_fault);
}

FaultReportName::FaultReportName(std::string name) noexcept
    : name_(std::move(name)), before_(faults::name_next_ranges(&name_)) {}
FaultReportName::~FaultReportName() { faults::name_next_ranges(before_); }

}  // namespace sconce
