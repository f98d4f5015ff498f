#include "sconce/version.h"

namespace sconce {
std::string version() { return SCONCE_VERSION; }
}  // namespace sconce
