#include "server/registry/repositories/repository_watch.h"

#include <algorithm>

namespace sconce::server::registry {
namespace {

constexpr int kMaxLooks = 64;

}  // namespace

RepositoryWatch::RepositoryWatch(const std::vector<PackageFile>& files) : settled_(by_stem(files)) {
  for (const auto& [stem, found] : settled_) retries_[stem];
}

RepositoryWatch::Stems RepositoryWatch::by_stem(const std::vector<PackageFile>& files) {
  Stems stems;
  for (const PackageFile& file : files) stems[file.stem].push_back(file);
  return stems;
}

void RepositoryWatch::complete(FoundFiles& found) const {
  if (found.unread.empty()) return;
  for (const auto& [stem, files] : settled_)
    for (const PackageFile& file : files)
      if (found.misses(file)) found.files.push_back(file);
  PackageFinder::sort_by_stem(found.files);
}

bool RepositoryWatch::is_pending_below(const std::filesystem::path& folder) const {
  const FoundFiles below{{}, {{folder, {}}}};
  const auto is_below = [&](const PackageFile& file) { return below.misses(file); };
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& one) {
    const auto known = settled_.find(one.first);  // a removed stem has no files in the last poll
    return std::ranges::any_of(one.second, is_below) ||
           (known != settled_.end() && std::ranges::any_of(known->second, is_below));
  });
}

std::vector<std::string> RepositoryWatch::look(const std::vector<PackageFile>& files) {
  Stems now = by_stem(files), settled, pending;
  std::map<std::string, Retry> retries;
  for (const auto& [stem, gone] : settled_) now.try_emplace(stem);
  std::vector<std::string> changed;
  for (auto& [stem, found] : now) {
    const auto known = settled_.find(stem);
    if (known != settled_.end() && known->second == found) {
      const auto retry = retries_.find(stem);
      const bool waits = retry != retries_.end() && retry->second.left > 0;
      if (waits) {
        Retry& next = retries[stem] = retry->second;
        if (--next.left == 0) changed.push_back(stem);
      }
      if (waits || !found.empty()) settled[stem] = std::move(found);
      continue;
    }
    const auto before = pending_.find(stem);
    if (before != pending_.end() && before->second == found) {
      changed.push_back(stem);
      retries[stem];
      settled[stem] = std::move(found);
    } else {
      if (known != settled_.end()) settled.insert(*known);
      pending[stem] = std::move(found);
    }
  }
  settled_.swap(settled);
  pending_.swap(pending);
  retries_.swap(retries);
  return changed;
}

bool RepositoryWatch::at_rest() const noexcept {
  return pending_.empty() &&
         std::none_of(retries_.begin(), retries_.end(), [](const auto& one) { return one.second.left > 0; });
}

void RepositoryWatch::failed(const std::string& stem) noexcept {
  const auto retry = retries_.find(stem);
  if (retry == retries_.end()) return;
  retry->second.looks = std::clamp(2 * retry->second.looks, 1, kMaxLooks);
  retry->second.left = retry->second.looks;
}

}  // namespace sconce::server::registry
