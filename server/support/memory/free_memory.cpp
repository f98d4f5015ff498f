#include "server/support/memory/free_memory.h"

// Weak, because the program links mimalloc but sanitizer builds and tests do not.
extern "C" [[gnu::weak]] void mi_collect(bool force) noexcept;

namespace sconce::server {

void give_back_free_memory() noexcept {
  if (mi_collect) mi_collect(true);
}

}  // namespace sconce::server
