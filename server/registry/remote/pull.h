// Downloads packages for `sconce pull`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sconce/weight_sources.h"

namespace sconce::server::registry {

struct PullOptions {
  std::vector<std::string> urls;
  std::string to;     // the folder for the files; empty: they are in the cache alone
  std::string cache;  // the folder of the cache; empty: the default
  std::string ca;
  int connections = 8, stall = 30;  // stall: in seconds
  uint64_t cache_size = 0;          // 0: no limit
};

// pulled: called for each file. All addresses are parsed first: kInvalidArgument, also for a repository without a
// folder; kNotFound for a repository without packages; errors of download().
using Pulled = std::function<void(const Sha256Digest& digest, const std::filesystem::path& path)>;
void pull(const PullOptions& options, const Pulled& pulled);

}  // namespace sconce::server::registry
