// What `sconce bench` measured, as a page, and compared with an earlier measurement.
#pragma once

#include <span>
#include <string>

#include "server/support/json_document.h"

namespace sconce::server::commands {

// Times of runs in bins, of which each begins 4.4 % later than the one before: [[i, count], ...], where bin i begins at
// 2^(i/16) seconds. Empty bins are left out.
OrderedJson time_bins(std::span<const float> seconds);

// What an earlier call wrote: the page of --html, or the JSON of --json. kIo, kInvalidArgument.
OrderedJson read_bench(const std::string& path);

// The measurement of `document` that has the same numbers of replicas, threads and callers; null if there is none.
const OrderedJson* same_measurement(const OrderedJson& document, const OrderedJson& measurement);

// "p50 12 % less, runs/s 3 % more": how a measurement differs from an earlier one, in short.
std::string describe_change(const OrderedJson& now, const OrderedJson& before);

// A page that needs nothing else, with the document in it. earlier: null, or what it is compared with.
std::string bench_page(const OrderedJson& document, const OrderedJson* earlier);

}  // namespace sconce::server::commands
