// A fake model through the C API, and tensors for it.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fake_package.h"
#include "sconce.h"
#include "tests/runner/fake_runner.h"

namespace sconce::test {

// The code of an error, which is freed; its text goes to `text`.
inline sconce_code code_of(sconce_error* error, std::string* text = nullptr) {
  const sconce_code code = sconce_error_code(error);
  if (text) *text = sconce_error_text(error);
  sconce_error_free(error);
  return code;
}

#define CHECK_OK(call)                                          \
  do {                                                          \
    std::string reason;                                         \
    CHECK_MESSAGE(code_of(call, &reason) == SCONCE_OK, reason); \
  } while (0)

// The call fails with this code, and its text has these words.
#define CHECK_FAILS(call, expected, words)                          \
  do {                                                              \
    std::string reason;                                             \
    CHECK(code_of(call, &reason) == (expected));                    \
    CHECK_MESSAGE(reason.find(words) != std::string::npos, reason); \
  } while (0)

// A float32 tensor of the caller's.
struct Floats {
  std::vector<float> values;
  std::vector<int64_t> shape;
  sconce_tensor tensor{};

  Floats(std::vector<int64_t> sizes, float value) : shape(std::move(sizes)) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    values.assign(static_cast<size_t>(count), value);
    show();
  }
  explicit Floats(std::vector<float> all) : values(std::move(all)), shape{static_cast<int64_t>(values.size())} {
    show();
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

 private:
  void show() {
    tensor.data = values.data();
    tensor.device.device_type = SCONCE_CPU;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = {SCONCE_FLOAT, 32, 1};
    tensor.shape = shape.data();
  }
};

inline std::string fake_bytes(const std::string& name) {
  const TempFolder folder;
  fake::write_package(folder / "net.pt2", {{"model", fake::model(name)}});
  return content_of(folder / "net.pt2");
}

struct Handles {
  TempFolder folder;
  std::string path;
  sconce_package* package = nullptr;
  sconce_model* model = nullptr;
  FakeKnobs* knobs = nullptr;

  explicit Handles(const std::string& name = "fake_model", int32_t replicas = 1) : path(folder / "net.pt2") {
    fake::write_package(path, {{"model", fake::model(name)}});
    CHECK_OK(sconce_package_open(path.c_str(), &package));
    sconce_load_options options{};
    options.size = sizeof options;
    options.replicas = replicas;
    CHECK_OK(sconce_model_load(package, &options, &model));
    REQUIRE(model);
    knobs = fake::loaded().back();
  }
  ~Handles() {
    CHECK_OK(sconce_model_free(model));
    sconce_package_free(package);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // The first row of the answer for a batch of two rows full of x.
  std::vector<float> run(float x, sconce_run_info* info = nullptr) {
    const Floats input({2, 4}, x);
    const sconce_tensor* const inputs[] = {&input.tensor};
    std::array<sconce_managed_tensor*, 2> outputs{};
    sconce_model_info about{};
    about.size = sizeof about;
    CHECK_OK(sconce_model_get_info(model, &about));
    CHECK_OK(sconce_model_run(model, inputs, 1, outputs.data(), about.outputs, nullptr, info));
    REQUIRE(outputs[0]);
    const auto* y = static_cast<const float*>(outputs[0]->dl_tensor.data);
    std::vector<float> row(y, y + 4);
    for (sconce_managed_tensor* output : outputs) sconce_tensor_free(output);
    return row;
  }
};

}  // namespace sconce::test
