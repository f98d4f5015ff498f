// Returns free memory that the program's allocator holds; for idle threads, which may not call the allocator for a long
// time.
#pragma once

namespace sconce::server {

// Returns the free memory of the calling thread's heap to the system. Does nothing without mimalloc.
void give_back_free_memory() noexcept;

}  // namespace sconce::server
