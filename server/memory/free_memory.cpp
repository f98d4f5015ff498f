#include "server/memory/free_memory.h"

// Weak: the program is linked with mimalloc, sanitized ones and tests are not.
extern "C" [[gnu::weak]] void mi_collect(bool force) noexcept;

namespace sconce::server {

void give_back_free_memory() noexcept {
  if (mi_collect) mi_collect(true);
}

}  // namespace sconce::server
