// How many threads the package at hand was compiled for, as its loops tell: some of ATen's layouts follow the number of
// threads of the machine that compiled, and generated code counts on them wherever it runs.
#pragma once

namespace sconce {

// Of the calling thread, as a replica set it; 0 where none runs or the package has no split loop to tell it.
int compiled_threads() noexcept;
// Also makes template_threads() the size of the teams that start where none is given. std::bad_alloc in a thread's
// first call.
void set_compiled_threads(int threads);

// For loops that ask how many threads they get, as compiled templates do: kernel_threads(), but no more than the
// package was compiled for, since it has scratch for those alone.
int template_threads() noexcept;

}  // namespace sconce
