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

LapackLock::LapackLock() {
  require_lapack();
  static const bool needs_lock = shares_work_space();
  static Mutex mutex;
  if (!needs_lock) return;
  mutex.lock();
  mutex_ = &mutex;
}

LapackLock::~LapackLock() {
  if (mutex_ != nullptr) mutex_->unlock();
}

}  // namespace sconce
