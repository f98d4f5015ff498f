// A repository in a folder of the test's own, with what finds, loads and serves its models on the test's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_package.h"
#include "server/registry/model_loader.h"
#include "server/registry/package_model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/repository.h"
#include "server/support/failure.h"
#include "tests/files.h"

namespace sconce::test {

struct ServedFolder {
  using State = server::registry::Catalog::State;

  const TempFolder folder;
  server::ServerConfig config;
  server::TimerQueue clock;
  server::scheduling::IdleWatch idle_watch{[] {}};
  server::DeferredDeleter reaper;
  server::signing::SignatureRule signatures;
  server::weights::WeightStore store{""};
  server::ModelBudget budget{0, 0};
  std::unique_ptr<server::registry::PackageFinder> finder;
  std::unique_ptr<server::registry::Repository> repository;
  std::unique_ptr<server::registry::ModelLoader> loader;
  std::vector<std::string> failures;  // that would end the server

  // files: the packages, as NAME/VERSION, that are there at the start. set: changes settings.
  explicit ServedFolder(
      const std::vector<std::string>& files, const std::function<void(server::ServerConfig&)>& set = [](auto&) {}) {
    config.serve = {folder.path().string()};
    set(config);
    for (const std::string& file : files) put(file);
    finder = std::make_unique<server::registry::PackageFinder>(config, signatures);
    const auto packages = found();
    repository =
        std::make_unique<server::registry::Repository>(config, clock, idle_watch, reaper, packages, 1, &budget);
    loader = std::make_unique<server::registry::ModelLoader>(
        config, *finder, *repository, store, idle_watch, packages,
        [this](const std::exception_ptr& problem) { failures.push_back(server::describe_failure(problem).message); });
  }

  void put(const std::string& file) const {
    std::filesystem::create_directories(folder / file);
    fake::write_package(folder / file / "model.pt2");
  }
  void put_broken(const std::string& file) const { folder.write(file + "/model.pt2", "no package"); }
  void remove(const std::string& file) const { std::filesystem::remove_all(folder / file); }

  std::vector<server::registry::PackageEntry> found() const {
    return server::registry::ModelLoader::open(*finder, finder->files([](const std::string&) {}).files,
                                               config.exit_on_error);
  }
  server::registry::PackageEntry package(const std::string& name, int64_t version = 1) const {
    for (server::registry::PackageEntry& entry : found())
      if (entry.name == name && entry.file.version == version) return entry;
    FAIL("no package of that name and version");
    return {};
  }
  // As ModelLoader does, without weights, trials and golden requests.
  void publish(const std::string& name, int64_t version = 1) const {
    const server::registry::PackageEntry one = package(name, version);
    repository->publish(one, repository->load(one, false, signatures));
  }

  std::shared_ptr<const server::registry::Catalog> now() const { return repository->snapshot(); }
  // Every version and its state: "a/1 ready, b/2 failed: no file". A served version may have a reason too.
  std::string states() const {
    constexpr const char* kNames[] = {"loading", "ready", "held", "failed", "unloaded"};
    std::string text;
    for (const server::registry::Catalog::Entry& entry : now()->entries())
      for (const server::registry::Catalog::Version& version : entry.versions)
        text += (text.empty() ? "" : ", ") + entry.name + "/" + std::to_string(version.version()) + " " +
                kNames[static_cast<int>(version.state)] + (version.reason.empty() ? "" : ": " + version.reason);
    return text;
  }
};

}  // namespace sconce::test
