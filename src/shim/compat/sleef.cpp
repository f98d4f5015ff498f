#include "src/shim/compat/sleef.h"

#include <iterator>

#include "sconce/check.h"

extern "C" {
extern void* sconce_sleef_targets[];

// What an entry leads to before the library is open. The model sees an exception, as from any failing call.
[[noreturn, gnu::visibility("hidden")]] void sconce_sleef_closed() {
  SCONCE_FAIL(kInternal, "a SLEEF function was called before the library was opened");
}
}

namespace sconce::shim {
namespace {

constexpr const char* kFunctions[] = {
#define SCONCE_SLEEF(name, function) #function,
#include "src/shim/compat/sleef_functions.def"
#undef SCONCE_SLEEF
};

LazyLibrary library{"SLEEF", "libsleef.so.3", "libsleef3", kFunctions, sconce_sleef_targets, std::size(kFunctions), {}};

}  // namespace

LazyLibrary& sleef_library() noexcept { return library; }

}  // namespace sconce::shim
