#include "server/support/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "sconce/check.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server {
namespace {

constexpr std::string_view kNode = "numa:";
constexpr int kMaxCores = 65536;

std::optional<int> number(std::string_view text) noexcept {
  const auto value = parse_number<int>(text);
  return value && text[0] != '-' && *value < kMaxCores ? value : std::nullopt;
}

// "3" or "0-3".
std::optional<std::pair<int, int>> range(std::string_view text) noexcept {
  const size_t dash = text.find('-');
  const std::optional<int> first = number(text.substr(0, dash));
  const std::optional<int> last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

void add(std::vector<int>& cores, int core) {
  if (std::find(cores.begin(), cores.end(), core) == cores.end()) cores.push_back(core);
}

// The cores that this process may use. Machines may have more than a cpu_set_t holds.
std::vector<bool> usable_cores() {
  std::vector<bool> usable(kMaxCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCores);
  const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(kMaxCores), free_set);
  if (!set || sched_getaffinity(0, bytes, set.get()) != 0) return std::vector<bool>(kMaxCores, true);
  for (size_t i = 0; i < usable.size(); ++i) usable[i] = CPU_ISSET_S(i, bytes, set.get());
  return usable;
}

void add_node(std::vector<int>& cores, const std::string& part, const std::filesystem::path& nodes) {
  const std::filesystem::path list = nodes / ("node" + part.substr(kNode.size())) / "cpulist";
  std::ifstream file(list);
  SCONCE_CHECK(file.is_open(), kInvalidArgument, "this machine has no NUMA node ", part.substr(kNode.size()), ": ",
               list.string(), " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<bool> usable = usable_cores();
  bool found = false;
  for (const std::string& one : split(text, ',')) {
    const auto parsed = range(one);
    SCONCE_CHECK(parsed, kIo, "not a list of cores: ", list.string(), ": '", one, "'");
    for (int core = parsed->first; core <= parsed->second; ++core) {
      if (!usable[static_cast<size_t>(core)]) continue;
      found = true;
      add(cores, core);
    }
  }
  SCONCE_CHECK(found, kInvalidArgument, "this process may use no core of NUMA node ", part.substr(kNode.size()));
}

}  // namespace

void check_cores(std::span<const std::string> parts) {
  for (const std::string& part : parts) {
    const bool good = part.starts_with(kNode) ? number(std::string_view(part).substr(kNode.size())).has_value()
                                              : range(part).has_value();
    SCONCE_CHECK(good, kInvalidArgument, "setting cpu_set: expected cores such as 0-3,8 or numa:0, got '",
                 excerpt(part), "'");
  }
}

std::vector<int> find_cores(std::span<const std::string> parts, const std::filesystem::path& nodes) {
  check_cores(parts);
  std::vector<int> cores;
  for (const std::string& part : parts) {
    if (part.starts_with(kNode)) {
      add_node(cores, part, nodes);
      continue;
    }
    const auto parsed = range(part);
    for (int core = parsed->first; core <= parsed->second; ++core) add(cores, core);
  }
  return cores;
}

std::vector<int> find_cores(std::string_view text) { return find_cores(split(text, ',')); }

}  // namespace sconce::server
