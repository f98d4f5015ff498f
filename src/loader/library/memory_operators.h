// Binds operator new and delete of compiled code to faults/taken_memory.h, so that a failed run frees or counts its
// memory.
#pragma once

namespace sconce::loader {

class SharedLibrary;

// Call this before any of the library's code runs. kIo, as rebind().
void bind_memory_operators(SharedLibrary& library);

}  // namespace sconce::loader
