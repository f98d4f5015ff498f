// Results of `sconce bench` as a page, and their comparison with an earlier measurement.
#pragma once

#include <span>
#include <string>

#include "server/support/json_document.h"

namespace sconce::server::cli {

// Run times in logarithmic bins of 4.4 % width: [[i, count], ...], where bin i begins at 2^(i/16) seconds. Empty bins
// are omitted.
OrderedJson time_bins(std::span<const float> seconds);

// The results of an earlier call: the page of --html, or the JSON of --json. kIo, kInvalidArgument.
OrderedJson read_bench(const std::string& path);

// The measurement in `document` with the same numbers of replicas, threads and callers; null if there is none.
const OrderedJson* same_measurement(const OrderedJson& document, const OrderedJson& measurement);

// "p50 12 % less, runs/s 3 % more": the change from an earlier measurement, in short.
std::string describe_change(const OrderedJson& now, const OrderedJson& before);

// A self-contained page with the document. earlier: null, or the measurement to compare with.
std::string bench_page(const OrderedJson& document, const OrderedJson* earlier);

}  // namespace sconce::server::cli
