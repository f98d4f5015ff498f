#include "tests/server/scripted_service.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "fake_package.h"
#include "server/registry/package_model.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/support/log.h"

namespace sconce::test {
namespace {

using namespace server;

std::atomic<ScriptedService::Clock::rep> time_now{0};
std::mutex lines_mutex;
std::vector<std::string> lines;

void take_line(LogLevel, std::string members) {
  const std::lock_guard lock(lines_mutex);
  lines.push_back(std::move(members));
}

const std::filesystem::path& hold_file() {
  static const TempFolder folder;
  static const std::filesystem::path file = folder / "hold";
  return file;
}

const std::string kLoop = R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "feed": {"OUTPUT__1": "INPUT__2"},
  "stop": {"steps": 1000000}, "pick": {"temperature": 0}})";

int64_t running() {
  int64_t all = 0;
  for (const FakeKnobs* knobs : fake::loaded()) all += knobs->running.load();
  return all;
}

}  // namespace

ScriptedService::ScriptedService(const std::function<void(ServerConfig&)>& set) {
  // Decode loops compare deadlines with the system's clock.
  time_now = Clock::now().time_since_epoch().count();
  ::setenv("FAKE_MODEL_HOLD", hold_file().c_str(), 1);
  pass_on_log_lines(take_line);
  {
    const std::lock_guard lock(lines_mutex);
    lines.clear();
  }
  std::filesystem::create_directories(folder / "m/1");
  fake::write_package(folder / "m/1/model.pt2");
  std::filesystem::copy_file(source_path("tests/server/packages/loops.pt2"), folder / "loops.pt2");
  config.serve = {folder.path().string()};
  config.load = LoadWhen::kDemand;
  config.inline_below = std::chrono::microseconds(0);
  config.set_model("loops.explicit.loop=" + folder.write("loop.json", kLoop).string(), "the test");
  set(config);
  finder = std::make_unique<registry::PackageFinder>(config, signatures);
  const std::vector<registry::PackageFile> files = finder->files([](const std::string&) {}).files;
  repository = std::make_unique<registry::Repository>(
      config, clock, idle_watch, reaper, std::vector<registry::PackageEntry>(), 1 + rpc::CallSlots::kPlaces, &budget);
  on_demand = std::make_unique<registry::OnDemand>(config, *finder, *repository, budget, files);
  control = std::make_unique<registry::ModelLoader>(
      config, *finder, *repository, store, idle_watch, std::vector<registry::PackageEntry>(),
      [](const std::exception_ptr&) {}, on_demand.get(), files);
  on_demand->start([this](const registry::PackageEntry& package) { load(package); });
  admission = std::make_unique<api::Admission>(config, *repository, *control, request_memory, draining);
  telemetry = std::make_unique<telemetry::Telemetry>(config, connections, 1);
  rollout = std::make_unique<rollout::Rollout>(config, *repository, signatures, draining, *telemetry);
}

ScriptedService::~ScriptedService() {
  release_runs();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  control->stop();
}

ScriptedService::Clock::time_point ScriptedService::now() noexcept {
  return Clock::time_point(Clock::duration(time_now.load()));
}

void ScriptedService::pass(Clock::duration time) {
  pass_unseen(time);
  clock.poll();
}

void ScriptedService::pass_unseen(Clock::duration time) { time_now += time.count(); }

void ScriptedService::publish(const std::string& name) const {
  for (const registry::PackageFile& file : finder->files([](const std::string&) {}).files)
    for (const registry::PackageEntry& entry : finder->open(file))
      if (entry.name == name) return publish(entry);
  FAIL("no package of that name");
}

// As ModelLoader does.
void ScriptedService::publish(const registry::PackageEntry& package) const {
  registry::LoadedModel loaded = repository->load(package, false, signatures);
  if (const std::string loop = repository->config_of(package).loop; !loop.empty())
    loaded.loop = std::make_shared<const scheduling::LoopPlan>(scheduling::plan_loop(
        scheduling::read_loop(content_of(loop), loop), loaded.interface, /*has_sequences=*/false));
  repository->publish(package, std::move(loaded));
}

void ScriptedService::load(const registry::PackageEntry& package) {
  std::string problem;
  {
    std::unique_lock lock(mutex_);
    ++loads_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ending_ || !ends_.empty(); });
    problem = ending_ ? "the test ends" : std::exchange(ends_.front(), {});
    if (!ending_) ends_.pop_front();
  }
  if (!problem.empty()) throw Error(ErrorCode::kModelFailed, problem);
  publish(package);
  if (evicts) evict(package.name);
}

void ScriptedService::wait_for_load(size_t nth) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return loads_ >= nth; });
}

size_t ScriptedService::loads() {
  const std::lock_guard lock(mutex_);
  return loads_;
}

void ScriptedService::end_load(const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    ends_.push_back(problem);
  }
  changed_.notify_all();
}

uint64_t ScriptedService::failed(const std::string& name, ErrorCode code) const {
  return model(name)->statistics().totals().failures_by_reason[static_cast<size_t>(scheduling::failure_reason(code))];
}

void ScriptedService::hold_runs() { std::ofstream(hold_file()).flush(); }

void ScriptedService::wait_for_run() {
  while (running() == 0) std::this_thread::yield();
}

void ScriptedService::release_runs() { std::filesystem::remove(hold_file()); }

std::vector<std::string> ScriptedService::log_lines(const std::string& with) {
  const std::lock_guard lock(lines_mutex);
  std::vector<std::string> found;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
               [&](const std::string& line) { return line.find(with) != std::string::npos; });
  return found;
}

}  // namespace sconce::test
