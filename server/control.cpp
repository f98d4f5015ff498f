#include "server/control.h"

#include <chrono>

#include "server/log.h"
#include "server/output_probe.h"

namespace sconce {

void Control::start() {
  thread_ = std::thread([this] { load_all(); });
}

void Control::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Control::load_all() {
  for (const PackageEntry& package : repository_.packages()) {
    if (stopping_) return;
    try {
      load(package);
    } catch (const std::exception& e) {
      log_error("model {} version {} cannot be loaded: {}", package.name, package.version, printable(e.what()));
      if (exit_on_error_) return failed_(std::current_exception());
      repository_.publish_failure(package, e.what());
    }
  }
  if (repository_.snapshot()->all_ready()) log_info("ready");
}

void Control::load(const PackageEntry& package) {
  LoadedModel loaded = repository_.load(package);
  if (!loaded.interface.outputs_described()) {
    try {
      probe_outputs(*loaded.model, loaded.interface);
    } catch (const std::exception& e) {
      log_info("model {}: the package does not describe its outputs, and it does not run on zeros: {}", package.name,
               printable(e.what()));
    }
  }
  const ModelInfo& info = loaded.model->info();
  log_info("model {} version {} is ready: {} replicas, {} weight bytes, loaded in {:.1f} ms", package.name,
           package.version, info.replicas, info.constant_bytes,
           std::chrono::duration<double, std::milli>(info.load_time).count());
  repository_.publish(package, std::move(loaded));
}

}  // namespace sconce
