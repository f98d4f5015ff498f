#include "server/support/process/environment_check.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "server/support/config.h"
#include "src/support/excerpt.h"

namespace sconce::server {
namespace {

constexpr std::string_view kPrefix = "SCONCE_";
// Variables of the library, the Python package, and `./dev`.
constexpr std::string_view kOtherNames[] = {"SCONCE_SET",          "SCONCE_CPU_ISA", "SCONCE_PROGRAM", "SCONCE_PRESET",
                                            "SCONCE_TORCH_PYTHON", "SCONCE_CASES",   "SCONCE_PYTHON"};

bool is_number(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// For example SCONCE_SERVICE_HOST, SCONCE_WEB_SERVICE_PORT_HTTP, SCONCE_PORT, SCONCE_PORT_8000_TCP_ADDR.
bool is_of_kubernetes(std::string_view name) noexcept {
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.ends_with("_PORT") ||
      name.find("_SERVICE_PORT_") != std::string_view::npos)
    return true;
  const size_t port = name.find("_PORT_");
  if (port == std::string_view::npos) return false;
  const std::string_view rest = name.substr(port + 6);
  return is_number(rest.substr(0, rest.find('_')));
}

// Levenshtein distance.
size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_variables(const char* const* environment) {
  constexpr size_t kNear = 3;
  std::vector<std::string> known(std::begin(kOtherNames), std::end(kOtherNames));
  for (const SettingRow& row : setting_rows())
    if (!row.of_model) known.push_back(environment_name(row.key));
  std::string text;
  for (; *environment != nullptr; ++environment) {
    const std::string_view line = *environment;
    const std::string_view name = line.substr(0, line.find('='));
    if (!name.starts_with(kPrefix) || is_of_kubernetes(name) ||
        std::find(known.begin(), known.end(), name) != known.end())
      continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
      return distance_of(name, a) < distance_of(name, b);
    });
    text.append(text.empty() ? "" : ", ").append(excerpt(name));
    if (distance_of(name, *nearest) <= kNear) text.append(" (").append(*nearest).append("?)");
  }
  return text.empty() ? text : "no setting has the name of these environment variables: " + text;
}

}  // namespace sconce::server
