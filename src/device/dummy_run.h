// A run on made-up inputs, by which a load prepares a model: it must leave no trace.
#pragma once

#include "sconce/storage.h"

namespace sconce {

// While it exists, this thread makes such a run.
class DummyRun {
 public:
  DummyRun() noexcept;
  ~DummyRun();
  DummyRun(const DummyRun&) = delete;
  DummyRun& operator=(const DummyRun&) = delete;
};

// Of a table whose rows a request will choose: maps the pages that the page cache holds already, so that no request
// waits for a fault per row. Reads no file; only in a made-up run, and only of constants of up to 1 GiB.
void map_cached_pages(const Storage& table) noexcept;

// Before something that others would notice afterwards. kFailedPrecondition "WHAT" in a made-up run.
void refuse_in_dummy_run(const char* what);

}  // namespace sconce
