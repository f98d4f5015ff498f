/* A host in C11 whose model fails in its own code, and at last in a library's. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sconce.h"

/* FakeFailure of tests/fake_model/fake_knobs.h, and its input that fails. */
enum { FAILS_IN_ACCESS = 7, FAILS_IN_STACK = 8, FAILS_IN_LIBRARY = 9 };
static const float fails = -1e30F;

static int lines_failed;
static void check(int is_right, int line, const char* words) {
  if (is_right) return;
  fprintf(stderr, "tests/c_api/faults_in_c.c:%d: %s\n", line, words);
  ++lines_failed;
}
#define CHECK(condition) check((condition), __LINE__, #condition)

static sconce_error* run(sconce_model* model, float value, float* result) {
  float values[4] = {value, value, value, value};
  int64_t shape[2] = {1, 4};
  const sconce_tensor input = {
      .data = values, .device = {SCONCE_CPU, 0}, .ndim = 2, .dtype = {SCONCE_FLOAT, 32, 1}, .shape = shape};
  const sconce_tensor* inputs[] = {&input};
  sconce_managed_tensor* output = NULL;
  sconce_error* const error = sconce_model_run(model, inputs, 1, &output, 1, NULL, NULL);
  *result = output ? *(const float*)output->dl_tensor.data : -1;
  sconce_tensor_free(output);
  return error;
}

static sconce_model* load(sconce_package* package, int failure) {
  char kind[8];
  snprintf(kind, sizeof kind, "%d", failure);
  setenv("FAKE_MODEL_FAIL_KIND", kind, 1); /* which the model's code reads when it is loaded */
  sconce_model* model = NULL;
  sconce_error* const error = sconce_model_load(package, NULL, &model);
  check(!error, __LINE__, sconce_error_text(error));
  sconce_error_free(error);
  return model;
}

static void expect_error(sconce_package* package, int failure, const char* words) {
  sconce_model* const model = load(package, failure);
  for (int i = 0; i < 3; ++i) {
    float value = 0;
    sconce_error* error = run(model, fails, &value);
    CHECK(sconce_error_code(error) == SCONCE_MODEL_FAILED);
    check(strstr(sconce_error_text(error), words) != NULL, __LINE__, sconce_error_text(error));
    sconce_error_free(error);
    error = run(model, 3, &value);
    CHECK(!error && value == 3);
    sconce_error_free(error);
  }
  CHECK(!sconce_model_free(model));
}

/* How a child ends whose model fails in the C library, and the beginning of what it says on stderr. */
static int status_of_child(sconce_package* package, char* words, size_t size) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    alarm(60); /* so that a fault without an end fails */
    float value = 0;
    run(load(package, FAILS_IN_LIBRARY), fails, &value);
    _exit(0); /* nothing has happened */
  }
  close(ends[1]);
  size_t filled = 0;
  for (ssize_t got = 1; got > 0; filled += (size_t)(got > 0 ? got : 0))
    got = read(ends[0], words + filled, size - 1 - filled);
  words[filled] = 0;
  close(ends[0]);
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

static void own_handler(int signal) { _exit(signal == SIGSEGV ? 42 : 1); }
static void handler_of_once(int signal) {
  (void)signal;
  if (write(STDERR_FILENO, "once\n", 5) != 5) _exit(1);
}

/* A handler that is to run once, before ours: the process then ends, and the instruction does not fault for ever. */
static void try_handler_of_once(sconce_package* package, char* words, size_t size) {
  struct sigaction once;
  memset(&once, 0, sizeof once);
  once.sa_handler = &handler_of_once;
  once.sa_flags = (int)SA_RESETHAND;
  sigaction(SIGSEGV, &once, NULL);
  sconce_guard_package_faults();
  const int status = status_of_child(package, words, size);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && !strcmp(words, "once\n"));
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: faults_in_c PACKAGE\n"), 2;
  sconce_package* package = NULL;
  CHECK(!sconce_package_open(argv[1], &package));
  char words[16384], expected[4096];
  snprintf(expected, sizeof expected, "sconce: SIGSEGV while running the code of model %s\n", argv[1]);

  const pid_t child = fork(); /* the handlers stay for good, so another process has one before */
  if (child == 0) {
    signal(SIGSEGV, &own_handler);
    sconce_guard_package_faults();
    expect_error(package, FAILS_IN_ACCESS, "SIGSEGV");
    const int status = status_of_child(package, words, sizeof words);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42 && words[0] == 0);
    _exit(lines_failed);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const pid_t other = fork();
  if (other == 0) {
    try_handler_of_once(package, words, sizeof words);
    _exit(lines_failed);
  }
  CHECK(other > 0 && waitpid(other, &status, 0) == other);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

  status = status_of_child(package, words, sizeof words);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && words[0] == 0);
  sconce_guard_package_faults();
  sconce_guard_package_faults();
  expect_error(package, FAILS_IN_ACCESS, "SIGSEGV");
  expect_error(package, FAILS_IN_STACK, "has overflowed its stack");
  status = status_of_child(package, words, sizeof words);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  check(strstr(words, expected) != NULL, __LINE__, words);
  sconce_package_free(package);
  return lines_failed;
}
