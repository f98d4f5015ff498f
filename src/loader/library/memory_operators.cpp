#include "src/loader/library/memory_operators.h"

#include <array>

#include "src/faults/taken_memory.h"
#include "src/loader/library/shared_library.h"

namespace sconce::loader {
namespace {

struct Operator {
  const char* name;  // as the Itanium C++ ABI writes it
  void* replacement;
};

template <class F>
void* address_of(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void bind_memory_operators(SharedLibrary& library) {
  const std::array operators = {
      Operator{"_Znwm", address_of(&faults::take)},
      Operator{"_ZnwmRKSt9nothrow_t", address_of(&faults::take_nothrow)},
      Operator{"_ZnwmSt11align_val_t", address_of(&faults::take_aligned)},
      Operator{"_Znam", address_of(&faults::take_array)},
      Operator{"_ZnamSt11align_val_t", address_of(&faults::take_aligned_array)},
      Operator{"_ZdlPv", address_of(&faults::give)},
      Operator{"_ZdlPvm", address_of(&faults::give_sized)},
      Operator{"_ZdlPvSt11align_val_t", address_of(&faults::give_aligned)},
      Operator{"_ZdlPvmSt11align_val_t", address_of(&faults::give_sized_aligned)},
      Operator{"_ZdaPv", address_of(&faults::give_array)},
      Operator{"_ZdaPvm", address_of(&faults::give_sized_array)},
      Operator{"_ZdaPvSt11align_val_t", address_of(&faults::give_aligned_array)},
      Operator{"_ZdaPvmSt11align_val_t", address_of(&faults::give_sized_aligned_array)},
  };
  for (const Operator& one : operators) library.rebind(one.name, one.replacement);
}

}  // namespace sconce::loader
