#include "server/registry/repositories/name_table.h"

#include <algorithm>

namespace sconce::server::registry {

void NameTable::set(const std::string& stem, std::span<const PackageFile> files) {
  std::vector<File> kept;
  for (const PackageFile& file : files)
    kept.push_back({file.version, file.path.native(), file.config.native(), file.stamp});
  std::sort(kept.begin(), kept.end(), [](const File& a, const File& b) { return a.version < b.version; });
  kept.shrink_to_fit();
  const MutexLock lock(mutex_);
  if (kept.empty()) {
    if (const auto at = stems_.find(stem); at != stems_.end()) stems_.erase(at);
    return;
  }
  stems_[stem] = {std::move(kept), {}, false};
}

void NameTable::learn(const std::string& stem, std::vector<std::string> models) {
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  models.shrink_to_fit();
  const MutexLock lock(mutex_);
  if (const auto at = stems_.find(stem); at != stems_.end()) {
    at->second.models = std::move(models);
    at->second.opened = true;
  }
}

// The longest stem that equals the name or its prefix before a dot.
NameTable::Stems::const_iterator NameTable::stem_of(std::string_view name) const {
  for (std::string_view stem = name; !stem.empty();) {
    if (const auto at = stems_.find(stem); at != stems_.end()) {
      const std::vector<std::string>& models = at->second.models;
      if (!at->second.opened || std::find(models.begin(), models.end(), name) != models.end()) return at;
    }
    const size_t dot = stem.rfind('.');
    if (dot == std::string_view::npos) break;
    stem = stem.substr(0, dot);
  }
  return stems_.end();
}

std::vector<PackageFile> NameTable::files_of(const Stems::value_type& stem) {
  std::vector<PackageFile> files;
  for (const File& file : stem.second.files)
    files.push_back({stem.first, file.version, file.path, file.config, file.stamp, true});
  return files;
}

std::vector<PackageFile> NameTable::find(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto at = stem_of(name);
  return at == stems_.end() ? std::vector<PackageFile>() : files_of(*at);
}

bool NameTable::knows(std::string_view name) const {
  const MutexLock lock(mutex_);
  return stem_of(name) != stems_.end();
}

std::vector<PackageFile> NameTable::files_of(std::string_view stem) const {
  const MutexLock lock(mutex_);
  const auto at = stems_.find(stem);
  return at == stems_.end() ? std::vector<PackageFile>() : files_of(*at);
}

std::vector<std::string> NameTable::names_of(std::string_view stem) const {
  const MutexLock lock(mutex_);
  const auto at = stems_.find(stem);
  if (at == stems_.end()) return {};
  return at->second.opened ? at->second.models : std::vector<std::string>{at->first};
}

std::vector<NameTable::Known> NameTable::all() const {
  std::vector<Known> known;
  {
    const MutexLock lock(mutex_);
    for (const auto& [stem, about] : stems_) {
      std::vector<int64_t> versions;
      for (const File& file : about.files) versions.push_back(file.version);
      if (!about.opened) known.push_back({stem, versions});
      for (const std::string& model : about.models) known.push_back({model, versions});
    }
  }
  std::sort(known.begin(), known.end(), [](const Known& a, const Known& b) { return a.name < b.name; });
  return known;
}

size_t NameTable::size() const {
  const MutexLock lock(mutex_);
  return stems_.size();
}

}  // namespace sconce::server::registry
