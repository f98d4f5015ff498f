// Control: what happened elsewhere: at addresses of `serve`, and in models that ran.
#include <algorithm>
#include <map>

#include "server/base/failure.h"
#include "server/models/control.h"

namespace sconce::server {

void Control::sources_changed() noexcept {
  if (config_.watch.count() == 0) {
    succeeds([this] { submit([this] { load_new(); }, [](const std::exception_ptr&) {}); });
    return;
  }
  {
    const MutexLock lock(mutex_);
    changed_ = true;
  }
  wake_.notify_one();
}

void Control::wake() noexcept {
  { const MutexLock lock(mutex_); }  // it waits, or has not looked yet
  wake_.notify_one();
}

// What is elsewhere and was not there, or could not be had, until now.
void Control::load_new() {
  std::map<std::string, std::vector<PackageFile>> stems;
  for (const PackageFile& file : finder_.repository_files())
    if (finder_.is_elsewhere(file)) stems[file.stem].push_back(file);
  for (const auto& each : stems) {
    const std::string& stem = each.first;
    const std::vector<PackageFile>& files = each.second;
    if (files.front().on_demand) {
      if (on_demand_ && !on_demand_->has_stem(stem)) on_demand_->set_files(stem, files);
      continue;
    }
    const auto catalog = repository_.snapshot();
    const bool done = std::ranges::any_of(names_of(stem), [&](const std::string& name) {
      return std::ranges::any_of(catalog->look_up(name)->versions, [](const Catalog::Version& v) {
        return v.loaded() || v.state == Catalog::State::kUnloaded;
      });
    });
    if (!done) succeeds([&] { update_stem(stem, files); });
  }
}

// The names in the catalog that the stem's packages have, or had.
std::set<std::string> Control::names_of(const std::string& stem) const {
  std::set<std::string> names;
  const auto catalog = repository_.snapshot();
  for (const Catalog::Entry& entry : catalog->entries())
    if (entry.versions.front().file.stem == stem) names.insert(entry.name);
  return names;
}

}  // namespace sconce::server
