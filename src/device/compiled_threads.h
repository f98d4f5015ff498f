// How many threads the package at hand was compiled for, as its loops tell: some of ATen's layouts follow the number of
// threads of the machine that compiled, and generated code counts on them wherever it runs.
#pragma once

namespace sconce {

// Of the calling thread, as a replica set it; 0 where none runs.
int compiled_threads() noexcept;
void set_compiled_threads(int threads) noexcept;

}  // namespace sconce
