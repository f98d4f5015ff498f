// How many threads the current package was compiled for, judging by its loops. Some layouts of ATen depend on the
// number of threads of the compiling machine, and generated code relies on them wherever it runs.
#pragma once

namespace sconce {

// Of the calling thread, set by a replica. 0 if no package runs or its loops do not tell.
int compiled_threads() noexcept;
// Also makes template_threads() the default size of OpenMP teams. std::bad_alloc in a thread's first call.
void set_compiled_threads(int threads);

// What loops get that ask for their number of threads, as compiled templates do: kernel_threads(), but no more than the
// package was compiled for, because it has scratch for those only.
int template_threads() noexcept;

}  // namespace sconce
