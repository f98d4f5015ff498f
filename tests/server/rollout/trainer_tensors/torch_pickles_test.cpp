// Pickles that PyTorch made (tests/server/make_trainer_pickles.py), and requests with made-up handles.
#include "server/rollout/trainer_tensors/torch_pickles.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sconce/error.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/support/json/base64.h"
#include "tests/files.h"

namespace sconce::server::rollout {
namespace {

std::string pickle_of(const std::string& name) {
  std::ifstream file(source_path("tests/server/trainer_pickles.json"));
  const std::string text = nlohmann::json::parse(file).at(name);
  std::string bytes(base64_decoded_bound(text.size()), '\0');
  const auto size = decode_base64(text, reinterpret_cast<std::byte*>(bytes.data()));
  REQUIRE(size);
  bytes.resize(*size);
  return bytes;
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor.data_as<float>()[i * tensor.stride(0)]);
  return values;
}

}  // namespace

TEST_CASE("torch pickles: named tensors of every protocol") {
  for (const char* name : {"protocol_2", "protocol_3", "protocol_4", "protocol_5", "parameters", "strided", "shared"}) {
    CAPTURE(name);
    const std::string bytes = pickle_of(name);
    TrainerTensors described;
    read_named_tensors(bytes, described);
    const SharedTensors shared(described);
    REQUIRE(shared.tensors().size() == 2);
    CHECK(shared.tensors()[0].name == "scale.w");
    CHECK(shared.tensors()[1].name == "scale.b");
    CHECK(floats_of(shared.tensors()[0].tensor) == std::vector<float>(4, 6.0f));
    CHECK(floats_of(shared.tensors()[1].tensor) == std::vector<float>(4, 0.5f));
    CHECK(shared.bytes() == 32);
  }
}

TEST_CASE("torch pickles: flat buckets, of elements and of bytes") {
  for (const char* name : {"flat", "flat_bytes"}) {
    CAPTURE(name);
    const std::string bytes = pickle_of(name);
    TrainerTensors described;
    read_flat_bucket(bytes, described);
    CHECK(described.memories.size() == 1);
    const SharedTensors shared(described);
    REQUIRE(shared.tensors().size() == 2);
    CHECK(floats_of(shared.tensors()[0].tensor) == std::vector<float>(4, 6.0f));
    CHECK(floats_of(shared.tensors()[1].tensor) == std::vector<float>(4, 0.5f));
  }
}

TEST_CASE("torch pickles: each cut-off is refused") {
  for (const char* name : {"protocol_2", "protocol_4", "parameters"}) {
    const std::string bytes = pickle_of(name);
    for (size_t length = 0; length < bytes.size(); ++length) {
      TrainerTensors described;
      CHECK_THROWS_AS(read_named_tensors(std::string_view(bytes).substr(0, length), described), Error);
    }
  }
}

TEST_CASE("torch pickles: tensors must lie in their memory") {
  TrainerTensors tensors;
  tensors.memories.emplace_back().bytes = 16;
  const auto add = [&](std::vector<int64_t> sizes, std::vector<int64_t> strides, uint64_t offset) {
    tensors.add({"t", DType::kFloat32, std::move(sizes), std::move(strides), offset, 0});
  };
  add({4}, {1}, 0);
  add({2, 2}, {2, 1}, 0);
  add({0, 1000}, {1000, 1}, 1 << 20);  // nothing is read
  CHECK_THROWS_AS(add({4}, {1}, 4), Error);
  CHECK_THROWS_AS(add({5}, {1}, 0), Error);
  CHECK_THROWS_AS(add({2}, {4}, 0), Error);
  CHECK_THROWS_AS(add({4}, {1}, UINT64_MAX - 3), Error);
  CHECK_THROWS_AS(add({-1}, {1}, 0), Error);
  CHECK_THROWS_AS(add({1}, {-1}, 0), Error);
  CHECK_THROWS_AS(add({INT64_MAX, 2}, {1, 1}, 0), Error);
  CHECK_THROWS_AS(add({0, INT64_MAX, INT64_MAX}, {1, 1, 1}, 0), Error);
  CHECK_THROWS_AS(add({4}, {}, 0), Error);
  CHECK_THROWS_AS(add({2}, {INT64_MAX}, 0), Error);
  CHECK(tensors.tensors.size() == 3);
}

}  // namespace sconce::server::rollout
