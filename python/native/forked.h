// Whether this process was forked since something was made. The threads of a model do not exist in the child.
#pragma once

#include <cstdint>

namespace sconce::python {

void watch_forks();                // call this once
uint64_t forks_so_far() noexcept;  // between the first process and this one

}  // namespace sconce::python
