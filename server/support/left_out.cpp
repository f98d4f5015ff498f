#include "server/support/left_out.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/config.h"

namespace sconce::server {

constinit const LeftOut* LeftOut::last_ = nullptr;

LeftOut::LeftOut(std::string_view part, std::string_view option, std::initializer_list<std::string_view> names)
    : part_(part), option_(option), names_(names), before_(last_) {
  last_ = this;
}

void LeftOut::fail(std::string_view context) const {
  SCONCE_FAIL(kUnsupported, context, context.empty() ? "" : ": ", "this build has no ", part_, " (", option_, ")");
}

void LeftOut::check_settings(const ServerConfig& config) {
  for (const std::string& key : config.given)
    if (const LeftOut* const part = of(key)) part->fail("setting " + key);
}

std::string LeftOut::remark(std::string_view name) {
  const LeftOut* const part = of(name);
  return part ? " (not in this build: " + std::string(part->option_) + ")" : "";
}

const LeftOut* LeftOut::of(std::string_view name) noexcept {
  const LeftOut* part = last_;
  while (part && std::find(part->names_.begin(), part->names_.end(), name) == part->names_.end()) part = part->before_;
  return part;
}

}  // namespace sconce::server
