// A warm-up run on dummy inputs, which prepares a model during a load. It must have no side effects.
#pragma once

#include "sconce/storage.h"

namespace sconce {

// Marks this thread's run as a warm-up run during the object's lifetime.
class DummyRun {
 public:
  DummyRun() noexcept;
  ~DummyRun();
  DummyRun(const DummyRun&) = delete;
  DummyRun& operator=(const DummyRun&) = delete;
};

// For a table from which a request will choose rows: maps the pages that are already in the page cache, so that no
// request waits for a page fault per row. Reads no file. Works only in a warm-up run, and only for constants of up to
// 1 GiB.
void map_cached_pages(const Storage& table) noexcept;

// Called before an effect that other runs would notice. kFailedPrecondition "WHAT" in a warm-up run.
void refuse_in_dummy_run(const char* what);

}  // namespace sconce
