#include "server/repository_watch.h"

namespace sconce {

RepositoryWatch::Stems RepositoryWatch::by_stem(const std::vector<PackageFile>& files) {
  Stems stems;
  for (const PackageFile& file : files) stems[file.stem].push_back(file);
  return stems;
}

std::vector<std::string> RepositoryWatch::look(const std::vector<PackageFile>& files) {
  Stems now = by_stem(files), pending;
  for (const auto& [stem, gone] : settled_) now.try_emplace(stem);
  std::vector<std::string> changed;
  for (auto& [stem, found] : now) {
    const auto settled = settled_.find(stem);
    if (settled != settled_.end() && settled->second == found) continue;
    const auto before = pending_.find(stem);
    if (before == pending_.end() || before->second != found) {
      pending[stem] = std::move(found);
      continue;
    }
    changed.push_back(stem);
    if (found.empty()) {
      settled_.erase(stem);
    } else {
      settled_[stem] = std::move(found);
    }
  }
  pending_ = std::move(pending);
  return changed;
}

}  // namespace sconce
