// The shared object that contains this code, regardless of the name it was loaded by.
#pragma once

#include <string>

namespace sconce::loader {

struct OwnLibrary {
  void* handle;      // for dlsym(); never closed
  std::string path;  // "" if it is the program itself
};

const OwnLibrary& own_library();

// Adds it to the process's global scope, for libraries that import from libsconce without naming it. kInternal.
void make_own_library_global();

}  // namespace sconce::loader
