// Control: the thread that loads and unloads models, one after the other, while others are served; and that looks at
// the repositories, where that is asked for.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/models/repository.h"
#include "server/models/repository_watch.h"

namespace sconce::server {

class Control {
 public:
  // Told how a task ended, on the control thread: null, or what it threw. Must not throw.
  using Done = std::function<void(std::exception_ptr)>;

  // packages: what is loaded first. failed: called on the control thread, once, if one of them cannot be loaded and
  // that shall end the server (exit_on_error).
  Control(const ServerConfig& config, const PackageFinder& finder, Repository& repository,
          std::vector<PackageEntry> packages, std::function<void(std::exception_ptr)> failed);
  ~Control() { stop(); }

  // The models of the files, by name and version. What cannot be opened is thrown, or, unless exit_on_error, has an
  // entry under its stem. kAlreadyExists for two of one name and version.
  static std::vector<PackageEntry> open(const std::vector<PackageFile>& files, bool exit_on_error);

  void start();
  // Ends after the task at hand; the others are told kUnavailable.
  void stop();

  // Any thread. Tasks are done in the order in which they came. kQueueFull; kUnavailable once it was stopped.
  void submit(std::function<void()> work, Done done);

  // Tasks.

  // Loads the versions of a model that are new or changed since they were loaded; all of them again if none is. Each
  // takes the place of what was served once it is ready. Then unloads versions that are not to be served any more. What
  // cannot be loaded leaves what is served as it is; its error is thrown when the others have been tried. kNotFound.
  void load_model(const std::string& name);
  // kNotFound.
  void unload_model(const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    std::function<void()> work;
    Done done;
  };

  void run();
  void load_first();
  void perform(Task task);
  void load(const PackageEntry& package);
  // What is found of a model, and the first of what kept the rest from being opened.
  struct Found {
    std::vector<PackageEntry> versions;
    std::exception_ptr problem;
  };
  Found find(const std::string& name);
  void load_found(const Found& found, const std::string& name, bool again);
  void look();
  bool update_stem(const std::string& stem, const std::vector<PackageFile>& files);

  const ServerConfig& config_;
  const PackageFinder& finder_;
  Repository& repository_;
  std::vector<PackageEntry> first_;
  const std::function<void(std::exception_ptr)> failed_;
  RepositoryWatch watch_;
  std::string watch_problem_;  // the last one that was logged

  Mutex mutex_;
  ConditionVariable wake_;
  std::deque<Task> tasks_ SCONCE_GUARDED_BY(mutex_);
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sconce::server
