#include <string>

namespace sconce {
std::string version();
std::string version() { return SCONCE_VERSION; }
}  // namespace sconce
