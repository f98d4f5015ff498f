// Rows of a sequence: set aside, brought back, reset. The model "running" of make_row_packages.py has a number in each
// of four rows, which each run makes from the number before and the row's token.
#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;

namespace {

constexpr size_t kRows = 4;
using Numbers = std::array<int64_t, kRows>;
constexpr Numbers kInitial{5, 5, 5, 5};

std::shared_ptr<Model> load(int sequences, uint64_t memory = 0, const std::string& package = "rows") {
  LoadOptions options;
  options.model_name = "running";
  options.sequences = sequences;
  options.sequences_memory = memory;
  return Model::load(Package::open(source_path("tests/server/packages/" + package + ".pt2")), options);
}

Numbers after(Numbers before, const Numbers& tokens) {
  for (size_t i = 0; i < kRows; ++i) before[i] = (before[i] * 31 + tokens[i]) % 1000003;
  return before;
}

// What each row of the answer says: its number modulo 64.
Numbers run(Model& model, const SequenceStep& step, const Numbers& tokens) {
  Tensor token = Tensor::empty(std::vector<int64_t>{kRows, 1}, DType::kInt64);
  Tensor add = Tensor::empty(std::vector<int64_t>{kRows}, DType::kInt64);
  for (size_t i = 0; i < kRows; ++i) token.data_as<int64_t>()[i] = tokens[i], add.data_as<int64_t>()[i] = 0;
  const std::vector<Tensor> inputs{token, add};
  std::vector<Tensor> outputs(1);
  model.run(inputs, outputs, 0, nullptr, step);
  Numbers said{};
  for (size_t i = 0; i < kRows; ++i)
    for (int64_t v = 0; v < 64; ++v)
      if (outputs[0].data_as<float>()[static_cast<int64_t>(i) * 64 + v] > 1) said[i] = v;
  return said;
}

Numbers said_of(Numbers numbers) {
  for (int64_t& number : numbers) number %= 64;
  return numbers;
}

}  // namespace

TEST_CASE("sequence rows: any moves between runs") {
  const std::shared_ptr<Model> model = load(2);
  CHECK(model->sequence_rows() == 4);
  const auto rows = model->make_sequence(true), other = model->make_sequence();
  run(*model, {.sequence = other.get(), .begins = true}, {1, 2, 3, 4});
  Numbers numbers = kInitial, aside{}, others = after(kInitial, {1, 2, 3, 4});
  std::array<bool, kRows> kept{};
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const bool begins = i == 0 || random() % 50 == 0;
    if (begins) numbers = kInitial;
    std::vector<uint32_t> set_aside, bring_back, reset;
    for (uint32_t row = 0; row < kRows; ++row) {
      const unsigned what = random() % 6;
      if (what == 0 || what == 1) set_aside.push_back(row), aside[row] = numbers[row], kept[row] = true;
      if (what == 2 && kept[row]) bring_back.push_back(row), numbers[row] = aside[row];
      if (what == 1 || what == 3) reset.push_back(row), numbers[row] = kInitial[row];
    }
    const SequenceRows moves{set_aside, bring_back, reset};
    Numbers tokens;
    for (int64_t& token : tokens) token = static_cast<int64_t>(random() % 64);
    numbers = after(numbers, tokens);
    REQUIRE(run(*model, {.sequence = rows.get(), .begins = begins, .rows = &moves}, tokens) == said_of(numbers));
    if (i % 10 > 0) continue;
    others = after(others, tokens);
    REQUIRE(run(*model, {.sequence = other.get()}, tokens) == said_of(others));
  }
}

TEST_CASE("sequence rows: what is refused") {
  const std::shared_ptr<Model> model = load(2);
  const auto with = model->make_sequence(true), without = model->make_sequence();
  const std::vector<uint32_t> one{1}, beyond{4};
  const auto refused = [&](const std::shared_ptr<Sequence>& sequence, const SequenceRows& rows) {
    return code_of([&] { run(*model, {.sequence = sequence.get(), .begins = true, .rows = &rows}, {}); });
  };
  CHECK(refused(without, {{}, {}, one}) == ErrorCode::kFailedPrecondition);
  CHECK(refused(with, {{}, one, {}}) == ErrorCode::kFailedPrecondition);
  CHECK(refused(with, {{}, {}, beyond}) == ErrorCode::kInvalidArgument);
  const SequenceRows good{one, {}, one};
  CHECK(run(*model, {.sequence = with.get(), .begins = true, .rows = &good}, {}) == said_of(after(kInitial, {})));
  // Its buffers have the first dimensions 4 and 16.
  const std::shared_ptr<Model> no_rows = load(1, 0, "sequences");
  CHECK(no_rows->sequence_rows() == 0);
  CHECK(code_of([&] { no_rows->make_sequence(true); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("sequence rows: they count with their buffers twice") {
  const uint64_t bytes = load(1)->sequence_bytes();
  CHECK(bytes == kRows * sizeof(int64_t));
  const std::shared_ptr<Model> model = load(10, 4 * bytes);
  const auto full = [&](bool rows) { return code_of([&] { model->make_sequence(rows); }) == ErrorCode::kQueueFull; };
  auto a = model->make_sequence(true), b = model->make_sequence();
  run(*model, {.sequence = a.get(), .begins = true}, {});
  run(*model, {.sequence = b.get(), .begins = true}, {});
  CHECK(full(true));
  CHECK_FALSE(full(false));
  a.reset();
  b.reset();  // both wait, with their buffers, and make room
  a = model->make_sequence(true);
  b = model->make_sequence(true);
  CHECK(full(false));
}
