// Binds operator new and delete of compiled code to faults/taken_memory.h, so that a failed run loses no memory without
// a trace.
#pragma once

namespace sconce::loader {

class SharedLibrary;

// Before any of the library's code runs. kIo, as rebind().
void bind_memory_operators(SharedLibrary& library);

}  // namespace sconce::loader
