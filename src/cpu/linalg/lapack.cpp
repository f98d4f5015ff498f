#include "src/cpu/linalg/lapack.h"

#include <dlfcn.h>

#include "sconce/mutex.h"

namespace sconce {
namespace {

bool shares_work_space() noexcept {
  void* const library = dlopen(sconce_lazy_LAPACK.soname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return false;
  // Of OpenBLAS alone, also where it is what the library is linked with; 0: without threads.
  const auto parallel = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_parallel"));
  const bool shares = parallel && parallel() == 0;
  dlclose(library);  // the lazy library keeps it
  return shares;
}

}  // namespace

LapackTurn::LapackTurn() {
  require_lapack();
  static const bool takes_turns = shares_work_space();
  static Mutex mutex;
  if (!takes_turns) return;
  mutex.lock();
  turn_ = &mutex;
}

LapackTurn::~LapackTurn() {
  if (turn_ != nullptr) turn_->unlock();
}

}  // namespace sconce
