// The shared object that this code is part of, whatever name it was loaded by.
#pragma once

#include <string>

namespace sconce::loader {

struct OwnLibrary {
  void* handle;      // for dlsym(); never closed
  std::string path;  // "" if it is the program itself
};

const OwnLibrary& own_library();

// Adds it to the global scope of the process, for libraries that import from us without naming us. kInternal.
void make_own_library_global();

}  // namespace sconce::loader
