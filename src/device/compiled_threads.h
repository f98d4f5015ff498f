// The number of threads that the current package was compiled for, derived from its loops. Some layouts of ATen depend
// on the number of threads of the compiling machine, and generated code relies on them on every machine.
#pragma once

namespace sconce {

// The number of threads that the package on this thread was compiled for, set by its replica. 0 if no package runs or
// its loops do not show the number.
int compiled_threads() noexcept;
// Also makes template_threads() the default size of OpenMP teams. std::bad_alloc in a thread's first call.
void set_compiled_threads(int threads);

// The result for compiled loops that query their number of threads: kernel_threads(), but at most the number that the
// package was compiled for, because its scratch memory is sized for that number.
int template_threads() noexcept;

}  // namespace sconce
