#include "server/telemetry/metrics.h"

#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::server;

TEST_CASE("metrics: docs/observability.md has the table") {
  std::string table = "| metric | kind | labels | |\n|---|---|---|---|\n";
  for (const MetricRow& row : metric_rows()) {
    table.append("| `").append(row.name).append("` | ").append(row.kind).append(" | ").append(row.labels);
    table.append(row.labels.empty() ? "| " : " | ").append(row.help).append(" |\n");
  }
  // Where it is not, this is the table to put there.
  CAPTURE(table);
  CHECK(contains(content_of(source_path("docs/observability.md")), table + "\n"));
}
