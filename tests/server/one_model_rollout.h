// Administration of one model, without a listener.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "fake_package.h"
#include "server/registry/model_loader.h"
#include "server/registry/package_model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/repository.h"
#include "server/rollout/rollout.h"
#include "tests/files.h"

namespace sconce::test {

struct OneModelRollout {
  const TempFolder folder;
  server::ServerConfig config;
  server::TimerQueue clock;
  server::scheduling::IdleWatch idle_watch{[this] { control->wake(); }};
  server::DeferredDeleter reaper;
  server::signing::SignatureRule signatures;
  std::unique_ptr<server::registry::PackageFinder> finder;
  std::unique_ptr<server::registry::Repository> repository;
  server::weights::WeightStore store{""};
  std::unique_ptr<server::registry::ModelLoader> control;
  server::http::OpenConnections connections;
  std::atomic<bool> draining{false};
  std::unique_ptr<server::telemetry::Telemetry> telemetry;
  std::unique_ptr<server::rollout::Rollout> rollout;

  // The model is a fake one, called "fake". weights_dir is `folder`.
  explicit OneModelRollout(const std::string& model) {
    config.weights_dir = folder.path().string();
    const std::vector<std::byte> library = fake::library(fake::model(model));
    config.serve = {folder.write("fake.so", {reinterpret_cast<const char*>(library.data()), library.size()}).string()};
    finder = std::make_unique<server::registry::PackageFinder>(config, signatures);
    const std::vector<server::registry::PackageEntry> packages =
        server::registry::ModelLoader::open(*finder, finder->files([](const std::string&) {}).files, true);
    repository = std::make_unique<server::registry::Repository>(config, clock, idle_watch, reaper, packages, 1);
    control = std::make_unique<server::registry::ModelLoader>(config, *finder, *repository, store, idle_watch,
                                                              std::vector<server::registry::PackageEntry>(),
                                                              [](const std::exception_ptr&) {});
    repository->publish(packages.front(), repository->load(packages.front(), false, signatures));
    telemetry = std::make_unique<server::telemetry::Telemetry>(config, connections, 1);
    rollout = std::make_unique<server::rollout::Rollout>(config, *repository, signatures, draining, *telemetry);
  }

  Model& model() const { return repository->snapshot()->ready("fake", "")->model(); }
};

}  // namespace sconce::test
