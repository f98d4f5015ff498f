/* A program in C11: load, run, replace weights, run again, roll back; weights from a socket. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sconce.h"

static int lines_failed;
static void check(int is_right, int line) {
  if (is_right) return;
  fprintf(stderr, "tests/c_api/in_c.c:%d\n", line);
  ++lines_failed;
}
#define CHECK(condition) check((condition), __LINE__)
#define CHECK_OK(call) check_ok((call), __LINE__)
static void check_ok(sconce_error* error, int line) {
  if (error) fprintf(stderr, "%s: %s\n", sconce_code_name(sconce_error_code(error)), sconce_error_text(error));
  check(!error, line);
  sconce_error_free(error);
}

static float first(sconce_model* model) {
  float values[4] = {3, 3, 3, 3};
  int64_t shape[2] = {1, 4};
  const sconce_tensor input = {
      .data = values, .device = {SCONCE_CPU, 0}, .ndim = 2, .dtype = {SCONCE_FLOAT, 32, 1}, .shape = shape};
  const sconce_tensor* inputs[] = {&input};
  sconce_managed_tensor* output = NULL;
  CHECK_OK(sconce_model_run(model, inputs, 1, &output, 1, NULL, NULL));
  const float value = output ? *(const float*)output->dl_tensor.data : -1;
  sconce_tensor_free(output);
  return value;
}

/* What a program that gets its weights over the network does. */
static sconce_error* update_from(int socket, sconce_model* model) {
  const sconce_update_options options = {.size = sizeof options, .partial = 1, .label = "socket"};
  const sconce_stream_options stream = {.size = sizeof stream, .source = "the trainer"};
  sconce_update* update = NULL;
  sconce_error* error = sconce_model_begin_update(model, &options, &update);
  if (!error) error = sconce_update_begin_stream(update, &stream);
  for (ssize_t got = 1; !error && got > 0;) {
    void* room = NULL;
    size_t size = 0;
    error = sconce_update_stream_next(update, &room, &size);
    if (error) break;
    got = read(socket, room, size);
    if (got > 0) error = sconce_update_stream_advance(update, (size_t)got);
  }
  if (!error) error = sconce_update_stream_end(update);
  if (!error) error = sconce_update_finish(update);
  sconce_update_free(update);
  return error ? error : sconce_model_commit(model, NULL);
}

/* scale.w as a .safetensors file, of which `cut` bytes do not arrive. */
static sconce_error* update_through_socket(sconce_model* model, float value, size_t cut) {
  static const char header[] = "{\"scale.w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}} ";
  const uint64_t length = sizeof header - 1;
  const float values[4] = {value, value, value, value};
  char file[8 + sizeof header - 1 + sizeof values];
  memcpy(file, &length, 8);
  memcpy(file + 8, header, length);
  memcpy(file + 8 + length, values, sizeof values);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return NULL;
  CHECK(write(ends[0], file, sizeof file - cut) == (ssize_t)(sizeof file - cut));
  close(ends[0]);
  sconce_error* error = update_from(ends[1], model);
  close(ends[1]);
  return error;
}

int use_all_in_c(const char* path, const char* absent) {
  sconce_package* package = NULL;
  sconce_model* model = NULL;
  CHECK_OK(sconce_package_open(path, &package));
  const sconce_load_options options = {.size = sizeof options, .replicas = 2};
  CHECK_OK(sconce_model_load(package, &options, &model));
  CHECK(first(model) == 3);

  float twos[4] = {2, 2, 2, 2};
  int64_t shape[1] = {4};
  const sconce_tensor weight = {
      .data = twos, .device = {SCONCE_CPU, 0}, .ndim = 1, .dtype = {SCONCE_FLOAT, 32, 1}, .shape = shape};
  const sconce_tensor* tensors[] = {&weight};
  const char* names[] = {"scale.w"};
  const sconce_update_options update = {.size = sizeof update, .partial = 1, .label = "twos"};
  CHECK_OK(sconce_model_stage_tensors(model, names, tensors, 1, &update));
  uint64_t weight_version = 0;
  CHECK_OK(sconce_model_commit(model, &weight_version));
  CHECK(weight_version == 2 && sconce_model_weight_version(model) == 2);
  CHECK(sconce_model_generation(model) == 2); /* deprecated */
  CHECK(first(model) == 6);
  CHECK_OK(sconce_model_rollback(model, &weight_version));
  CHECK(weight_version == 3 && first(model) == 3);

  CHECK_OK(update_through_socket(model, 5, 0));
  CHECK(sconce_model_generation(model) == 4 && first(model) == 15);
  sconce_error* error = update_through_socket(model, 7, 4);
  CHECK(sconce_error_code(error) == SCONCE_CORRUPT_PACKAGE && strstr(sconce_error_text(error), "the trainer") != NULL);
  sconce_error_free(error);
  CHECK(sconce_model_generation(model) == 4 && first(model) == 15);

  error = sconce_model_stage_file(model, absent, NULL, NULL);
  CHECK(sconce_error_code(error) == SCONCE_IO);
  CHECK(strstr(sconce_error_text(error), "absent.safetensors") != NULL);
  sconce_error_free(error);

  sconce_package_free(package);
  CHECK_OK(sconce_model_free(model));
  return lines_failed;
}
