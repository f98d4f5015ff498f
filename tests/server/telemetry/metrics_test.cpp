#include "server/telemetry/metrics.h"

#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::telemetry {

TEST_CASE("metrics: docs/observability.md has the table") {
  std::string table = "| metric | kind | |\n|---|---|---|\n";
  for (const MetricRow& row : metric_rows()) {
    std::string labels(row.labels);
    std::erase(labels, ' ');
    if (!labels.empty()) labels = "{" + labels + "}";
    table.append("| `").append(row.name).append(labels).append("` | ").append(row.kind);
    table.append(" | ").append(row.help).append(" |\n");
  }
  // Where it is not, this is the table to put there.
  CAPTURE(table);
  CHECK(contains(content_of(source_path("docs/observability.md")), table + "\n"));
}

}  // namespace sconce::server::telemetry
