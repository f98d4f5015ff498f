#include "python/native/completions.h"

#include <memory>
#include <thread>
#include <utility>

#include "python/native/errors.h"
#include "python/native/loaded_model.h"
#include "sconce/check.h"
#include "sconce/mutex.h"

namespace sconce::python {
namespace {

struct PendingRun;

class Completions {
 public:
  Completions() : thread_([this] { complete(); }) {}

  void add() {
    const MutexLock lock(mutex_);
    ++pending_;
  }
  void push(PendingRun* run) noexcept;
  void end() {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  PendingRun* wait();
  void complete();

  Mutex mutex_;
  ConditionVariable changed_;
  PendingRun* finished_ SCONCE_GUARDED_BY(mutex_) = nullptr;  // the latest first
  size_t pending_ SCONCE_GUARDED_BY(mutex_) = 0;              // submitted and not yet taken
  bool ending_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

struct PendingRun final : RunRequest {
  std::shared_ptr<LoadedModel> loaded;
  std::unique_ptr<Frame> frame;
  nb::object future;
  Completions* completions = nullptr;
  PendingRun* next = nullptr;

  void finished() noexcept override { completions->push(this); }
  nb::object result();
  void give_result() noexcept;
};

void Completions::push(PendingRun* run) noexcept {
  // The notification is inside, because the thread may end as soon as it has seen the last run.
  const MutexLock lock(mutex_);
  run->next = std::exchange(finished_, run);
  changed_.notify_one();
}

// Finished runs in the order in which they finished; null: no more will come.
PendingRun* Completions::wait() {
  const MutexLock lock(mutex_);
  while (!finished_ && (!ending_ || pending_ > 0)) changed_.wait(mutex_);
  PendingRun* first = nullptr;
  while (PendingRun* run = finished_) {
    finished_ = run->next;
    run->next = std::exchange(first, run);
    --pending_;
  }
  return first;
}

void Completions::complete() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  for (;;) {
    PyThreadState* const state = PyEval_SaveThread();
    PendingRun* run = wait();
    PyEval_RestoreThread(state);
    if (!run) break;
    while (run) {
      const std::unique_ptr<PendingRun> done(run);
      run = done->next;
      done->give_result();
    }
  }
  PyGILState_Release(gil);
}

nb::object PendingRun::result() {
  if (error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kInvalidArgument) throw;
      throw Error(e.code(), loaded->with_paths(e.what()));
    }
  }
  frame->arguments.give_back();
  frame->arguments.separate(frame->outputs);
  future.attr("info") = run_info(info);
  return loaded->plan().unflatten(frame->outputs, loaded->form());
}

void PendingRun::give_result() noexcept {
  try {
    nb::object value, failure;
    try {
      value = result();
    } catch (...) {
      failure = exception_object(std::current_exception());
    }
    loaded->return_frame(std::move(frame));
    if (failure)
      future.attr("set_exception")(failure);
    else
      future.attr("set_result")(value);
  } catch (...) {
    set_python_error();
    PyErr_WriteUnraisable(future.ptr());
  }
}

// Never deleted: a child after fork must not join the parent's thread. Used with the GIL held.
Completions* completions = nullptr;
bool ended = false;

}  // namespace

void forget_completions() noexcept { completions = nullptr; }

void end_completions() {
  ended = true;
  if (!completions) return;
  const nb::gil_scoped_release released;
  completions->end();
}

nb::object submit(const std::shared_ptr<LoadedModel>& loaded, PyObject* args, PyObject* kwargs) {
  SCONCE_CHECK(!ended, kUnavailable, "submit: the interpreter ends");
  static PyObject* const future_type = imported("concurrent.futures", "Future");
  Model& model = loaded->model();
  if (!completions) completions = new Completions;
  auto run = std::make_unique<PendingRun>();
  run->loaded = loaded;
  run->frame = loaded->take_frame();
  run->completions = completions;
  loaded->plan().flatten(args, kwargs, run->frame->arguments, run->frame->inputs);
  run->inputs = run->frame->inputs;
  run->outputs = run->frame->outputs;
  nb::object future = nb::handle(future_type)();
  future.attr("set_running_or_notify_cancel")();  // what is queued cannot be taken back
  run->future = future;
  completions->add();
  const nb::gil_scoped_release released;
  model.submit(*run.release());
  return future;
}

}  // namespace sconce::python
