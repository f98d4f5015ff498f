// The only object of the tests that depends on where the tree lies, so that a compiler cache serves the others in every
// checkout.
#include "tests/files.h"

namespace sconce {

std::string source_path(const std::string& relative) {
  const std::string root = SCONCE_SOURCE_DIR;
  return relative.empty() ? root : root + "/" + relative;
}

}  // namespace sconce
