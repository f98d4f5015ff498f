// What the program's allocator keeps of freed memory, for an idle thread that may not call it for long.
#pragma once

namespace sconce::server {

// Gives the system what the calling thread's heap holds free. Does nothing where the allocator is not mimalloc.
void give_back_free_memory() noexcept;

}  // namespace sconce::server
