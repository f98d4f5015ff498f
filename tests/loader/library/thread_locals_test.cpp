#include "src/loader/library/thread_locals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

using namespace sconce::loader;

namespace {

std::atomic<int> destroyed{0};
void destroy(void*) { ++destroyed; }

// Stands for a library, whose objects are found by an address inside it.
struct Library {
  char byte = 0;
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(&byte); }
  int add(void (*destructor)(void*) = &destroy) { return add_thread_local(destructor, &byte, &byte); }
  void unload() { destroy_thread_locals(begin(), begin() + 1); }
};

// Runs `work` in a forked child and returns its exit status, or 128 plus the signal that ended it. SIGALRM ends it
// after 10 seconds.
template <class Work>
int status_of(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(work());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("thread locals: a forked child has only those of the thread that forked") {
  destroyed = 0;
  Library library;
  std::latch added(1), over(1);
  std::thread other([&] {
    library.add();
    added.count_down();
    over.wait();
  });
  added.wait();
  CHECK(library.add() == 0);
  // The list of the parent's other thread lies in a stack that the child reuses for its next thread.
  CHECK(status_of([&] {
          library.unload();
          return destroyed.load();
        }) == 1);
  CHECK(destroyed == 0);
  library.unload();
  CHECK(destroyed == 2);
  over.count_down();
  other.join();
  CHECK(destroyed == 2);
}

TEST_CASE("thread locals: a child that is forked while a destructor runs can register and unload") {
  static std::atomic<bool> running{false};
  Library library;
  std::thread ends([&] {
    library.add([](void*) {
      running = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
  });
  while (!running) std::this_thread::yield();
  destroyed = 0;
  CHECK(status_of([&] {
          Library own;
          if (own.add() != 0) return 10;
          own.unload();
          return destroyed.load();
        }) == 1);
  ends.join();
  library.unload();
}
