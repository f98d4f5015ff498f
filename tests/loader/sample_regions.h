// Kernels with parallel regions that fail where a test asks for it.
#pragma once

#include <cstddef>

// How the threads fail: by a check, or by an instruction that raises a signal.
enum class SampleFault { kCheck, kDivision, kNull, kWild, kIllegal, kUnreadable, kRecursion, kArray };

// Which threads of the region fail, and where: before its first barrier (0), between barriers (1, 2), after the last
// (3).
struct SampleFailure {
  unsigned threads = 0;  // a bit for each
  int place = 0;
  SampleFault kind = SampleFault::kCheck;
};

struct SampleWork {
  int threads;
  SampleFailure failure;
  int count;           // of elements
  float* out;          // out[i] = 3 i + 1
  size_t scratch = 0;  // elements of each array that a kernel takes meanwhile
};
