#include "server/scheduling/signature/batch_invariance_check.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "server/scheduling/signature/probe_rows.h"
#include "server/scheduling/signature/row_answers.h"
#include "server/support/log.h"
#include "src/runner/dummy_inputs.h"

namespace sconce::server::scheduling {
namespace {

using Clock = std::chrono::steady_clock;

// If a row takes this long, few rows are tried; if it takes longer still, none.
constexpr std::chrono::microseconds kQuick{1500};
constexpr std::chrono::milliseconds kLong{100};
constexpr std::chrono::seconds kSlowest{2};
constexpr size_t kLargeAnswer = size_t{8} << 20;  // bytes of a row's outputs from which on few rows are tried
constexpr size_t kMaxAnswer = size_t{256} << 20;
constexpr int64_t kCompany = 5;         // rows of a run with neighbours
constexpr int64_t kLargeRun = 1 << 22;  // maximum elements of a run's inputs
constexpr uint32_t kFirstSeed = 1;
constexpr uint32_t kSeeds = 3;  // number of seeds to try if kernels of other sizes seem to differ

struct Known {
  ProbeRow row;
  RowAlone alone;
};

constexpr const char* kMixed = "a try showed that a row's outputs depend on the other rows";
constexpr const char* kPlaced = "a try showed that a row's outputs depend on its place or on the number of rows";
constexpr const char* kUnsteady = "its answers change too much with the last places of its inputs";
constexpr const char* kBlind = "it answers the same to all made-up inputs";

class BatchInvarianceCheck {
 public:
  BatchInvarianceCheck(Model& model, const ModelSignature& interface, int64_t most_rows, RowEffort effort)
      : model_(model), interface_(interface), batch_(interface.batch_symbol()), effort_(effort) {
    block_ = interface.fewest_rows(most_rows);
    most_ = most_rows / block_;
    for (size_t i = 0; i < interface.inputs.size(); ++i) names_.push_back(interface.input_names.name(i));
    on_device_ = model.info().devices.front().type != DeviceType::kCpu;
  }

  InvarianceFinding find() {
    SCONCE_CHECK(most_ >= 2, kInvalidArgument, "a trial of rows needs runs of two requests");
    for (const auto step : {&BatchInvarianceCheck::find_inputs, &BatchInvarianceCheck::repeat})
      if (InvarianceFinding found = (this->*step)(); !found.reason.empty()) return found;
    if (effort_ == RowEffort::kFew) return try_few();
    for (const auto step : {&BatchInvarianceCheck::learn_rows, &BatchInvarianceCheck::try_neighbours,
                            &BatchInvarianceCheck::try_sizes, &BatchInvarianceCheck::compare_rows})
      if (InvarianceFinding found = (this->*step)(); !found.reason.empty()) return found;
    return same();
  }

 private:
  InvarianceFinding find_inputs();
  InvarianceFinding repeat();
  InvarianceFinding try_few();
  InvarianceFinding try_few(const ProbeRow& row);
  InvarianceFinding learn_rows();
  InvarianceFinding try_neighbours();
  InvarianceFinding try_company(std::span<const size_t> company);
  InvarianceFinding try_sizes();
  InvarianceFinding compare_rows();

  // Returns false, with the reason in problem_, if the model fails.
  bool run(std::span<const ProbeRow> rows, RowAnswers& answers);
  bool ask(std::span<const ProbeRow> rows, RowAnswers& answers);
  bool learn(const ProbeRow& row, std::vector<Known>& rows);
  void set_style();
  static InvarianceFinding same() { return {.kind = InvarianceFinding::Kind::kSame}; }
  static InvarianceFinding differs(std::string seen) {
    return {.kind = InvarianceFinding::Kind::kDiffers, .reason = std::move(seen)};
  }
  static InvarianceFinding unknown(std::string_view why) {
    return {.kind = InvarianceFinding::Kind::kUnknown,
            .reason = "it is not known whether rows influence each other: " + std::string(why)};
  }
  // Result for rows that failed when run alone. Lack of memory is no evidence.
  InvarianceFinding failed() const {
    const std::string what = "a run of several made-up rows fails: " + problem_;
    return no_memory_ ? unknown(what) : differs(what);
  }

  Model& model_;
  const ModelSignature& interface_;
  const std::string batch_;
  std::vector<std::string> names_;  // of the inputs
  int64_t block_ = 1;               // rows of the model that count as one here: the minimum of a request
  int64_t most_ = 1;                // maximum number of blocks in one run
  bool on_device_ = false;
  RowEffort effort_;
  DummySizes sizes_;      // of dimensions other than the batch
  int64_t elements_ = 0;  // of one row's inputs
  RowStyle style_;
  RowTolerance same_kernels_, other_kernels_;
  std::chrono::nanoseconds time_{}, of_a_row_{};  // time of the last run; time of one row
  std::vector<Known> subjects_, hostile_;
  RowAnswers first_;
  std::string problem_;
  bool no_memory_ = false;  // problem_ is due to lack of memory
};

bool BatchInvarianceCheck::ask(std::span<const ProbeRow> rows, RowAnswers& answers) {
  const auto count = static_cast<int64_t>(rows.size());
  DummySizes sizes = sizes_;
  sizes.chosen.emplace(batch_, count * block_);
  sizes.bounds = interface_.spec.bounds;
  const std::vector<Tensor> inputs = dummy_inputs(interface_.spec.inputs, sizes, names_);
  elements_ = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    elements_ += input.numel() / count;
    bool filled = input.storage()->bytes() == input.bytes();
    for (size_t k = 0; filled && k < rows.size(); ++k)
      filled = fill_rows(input, i, static_cast<int64_t>(k) * block_, block_, rows[k], style_,
                         interface_.spec.inputs[i].values);
    if (!filled) {
      problem_ = "nothing can be made up for input '" + interface_.input_names.name(i) + "'";
      return false;
    }
  }
  std::vector<Tensor> outputs(interface_.outputs.size());
  const auto start = Clock::now();
  model_.run(inputs, outputs);
  time_ = Clock::now() - start;
  problem_ = answers.take(outputs, count, block_, interface_.output_names);
  return problem_.empty();
}

bool BatchInvarianceCheck::run(std::span<const ProbeRow> rows, RowAnswers& answers) {
  no_memory_ = false;
  try {
    return ask(rows, answers);
  } catch (const std::exception& e) {
    problem_ = printable(e.what());
    const auto* const error = dynamic_cast<const Error*>(&e);
    no_memory_ = error ? error->code() == ErrorCode::kOutOfMemory : dynamic_cast<const std::bad_alloc*>(&e) != nullptr;
    return false;
  }
}

// Sets nudges and bounds from the coarsest dtype in which the model computes.
void BatchInvarianceCheck::set_style() {
  double unit = 0;
  bool nudged = false;
  for (const TensorSpec& input : interface_.spec.inputs) {
    unit = std::max(unit, rounding_unit(*input.dtype));
    nudged = nudged || rounding_unit(*input.dtype) > 0;
  }
  for (const RowAnswers::Output& output : first_.outputs) {
    if (!output.none) unit = std::max(unit, rounding_unit(output.dtype));
  }
  if (interface_.spec.coarsest_buffer) unit = std::max(unit, rounding_unit(*interface_.spec.coarsest_buffer));
  for (const ConstantSpec& constant : interface_.spec.constants) {
    if (constant.dtype) unit = std::max(unit, rounding_unit(*constant.dtype));
  }
  style_.unit = 2 * unit;
  same_kernels_ = {.of_largest = 4 * unit, .of_nudge = 1, .integers = false};
  // Covers sums in another order. If no input can be nudged, it also covers how the model amplifies such differences.
  const double sums = nudged ? 32 : unit > 0x1p-10 ? 32 : unit > 0x1p-20 ? 64 : 512;
  other_kernels_ = {.of_largest = sums * unit, .of_nudge = 8, .integers = true};
}

// Finds values, and sizes of other dimensions, for which a single row runs.
InvarianceFinding BatchInvarianceCheck::find_inputs() {
  // On a device, an index out of bounds may make the device unusable, so numbers stay near 1.
  if (on_device_) style_.scale = 1e-3;
  const ProbeRow row{.seed = kFirstSeed};
  std::string problem;
  for (const int64_t others : {1, 16, 64, 224}) {
    sizes_.others = others;
    sizes_.step = others == 1 ? 2 : 0;  // small and different sizes
    for (const bool unsigned_values : {false, true}) {
      style_.unsigned_values = unsigned_values;
      if (run({&row, 1}, first_)) return same();
      if (problem.empty()) problem = problem_;
      if (model_.failed()) return unknown(problem);
    }
  }
  return unknown("it does not run on made-up inputs: " + problem);
}

InvarianceFinding BatchInvarianceCheck::repeat() {
  set_style();
  // A slow row is not run twice: different neighbours also show whether its answer is reproducible.
  if (on_device_ || time_ < kLong) {
    const ProbeRow row{.seed = kFirstSeed};
    RowAnswers again;
    if (!run({&row, 1}, again)) return unknown("it ran once, and then did not: " + problem_);
    const RowAlone alone{.answers = first_, .nudged = {}};
    if (!row_agrees(first_, 0, again, 0, alone, other_kernels_)) return unknown("it does not answer the same twice");
    // Some kernels add in varying order.
    if (!row_agrees(first_, 0, again, 0, alone, {})) same_kernels_ = other_kernels_;
  }
  if (time_ > kSlowest) return unknown("a run takes too long for a try");
  const size_t bytes = first_.bytes();
  if (bytes > kMaxAnswer) return unknown("its outputs are too large for a try");
  const bool slow = time_ > kQuick && effort_ == RowEffort::kAsTimed;
  if (slow || elements_ * kCompany > sizes_.most_elements || bytes > kLargeAnswer) effort_ = RowEffort::kFew;
  of_a_row_ = time_;
  return same();
}

bool BatchInvarianceCheck::learn(const ProbeRow& row, std::vector<Known>& rows) {
  Known known{.row = row, .alone = {}};
  if (row.kind == RowKind::kOrdinary && row.seed == kFirstSeed) {
    known.alone.answers = first_;
  } else if (!run({&row, 1}, known.alone.answers)) {
    return false;
  }
  for (uint32_t nudge = 1; nudge <= 2; ++nudge) {
    ProbeRow nudged = row;
    nudged.nudge = nudge;
    if (!run({&nudged, 1}, known.alone.nudged.emplace_back())) known.alone.nudged.pop_back();
  }
  rows.push_back(std::move(known));
  return true;
}

// Seven rows in all: one alone and with three neighbours. The first two runs use the same kernels and positions.
InvarianceFinding BatchInvarianceCheck::try_few(const ProbeRow& row) {
  RowAlone alone{.answers = first_, .nudged = {}};
  if (row.seed != kFirstSeed && !run({&row, 1}, alone.answers)) return unknown(problem_);
  // Nudging costs a run, so it is done only if it decides.
  bool steady = true;
  const auto agrees = [&](const RowAnswers& expected, size_t at, const RowAnswers& got, size_t where,
                          const RowTolerance& tolerance) {
    if (row_agrees(expected, at, got, where, alone, tolerance)) return true;
    if (!alone.nudged.empty()) return false;
    ProbeRow nudged = row;
    nudged.nudge = 1;
    if (!run({&nudged, 1}, alone.nudged.emplace_back())) return false;
    steady = row_is_steady(alone, other_kernels_);
    return row_agrees(expected, at, got, where, alone, tolerance);
  };
  const std::pair<size_t, RowKind> places[] = {
      {0, RowKind::kLargeDown}, {0, on_device_ ? RowKind::kConstant : RowKind::kNotANumber}, {1, RowKind::kLargeUp}};
  bool blind = true;
  RowAnswers first, got;
  for (const auto& [place, kind] : places) {
    ProbeRow rows[2];
    rows[place] = row;
    rows[1 - place] = {.kind = kind, .seed = row.seed + 1};
    if (!run(rows, got)) {
      const InvarianceFinding found = failed();
      if (run({&rows[1 - place], 1}, got)) return found;
      continue;  // learn_rows() skips it, too
    }
    blind = blind && row_agrees(alone.answers, 0, got, 1 - place, alone, {});
    if (!agrees(alone.answers, 0, got, place, other_kernels_)) return steady ? differs(kPlaced) : unknown(kUnsteady);
    if (place == 0 && !first.outputs.empty() && !agrees(first, 0, got, 0, same_kernels_)) return differs(kMixed);
    if (place == 0) first = got;
  }
  return !steady ? unknown(kUnsteady) : blind ? unknown(kBlind) : same();
}

// As in try_sizes(), other seeds decide.
InvarianceFinding BatchInvarianceCheck::try_few() {
  InvarianceFinding found;
  for (uint32_t attempt = 0; attempt < kSeeds; ++attempt) {
    found = try_few({.seed = kFirstSeed + 16 * attempt});
    if (found.reason != kPlaced) break;
  }
  return found;
}

// Learns the answers of rows when run alone. A row that fails is no neighbour: a run with it fails, and its requests
// then run one by one.
InvarianceFinding BatchInvarianceCheck::learn_rows() {
  for (const uint32_t seed : {kFirstSeed, kFirstSeed + 1}) {
    if (!learn({.kind = RowKind::kOrdinary, .seed = seed}, subjects_)) return unknown(problem_);
  }
  for (const RowKind kind : {RowKind::kSmall, RowKind::kConstant, RowKind::kZeros})
    learn({.kind = kind, .seed = 3}, subjects_);
  for (const RowKind kind :
       {RowKind::kLargeUp, RowKind::kLargeDown, RowKind::kNotANumber, RowKind::kInfinite, RowKind::kOrdinary}) {
    const bool number = kind != RowKind::kNotANumber && kind != RowKind::kInfinite;
    if (number || !on_device_) learn({.kind = kind, .seed = 4}, hostile_);
  }
  if (std::none_of(subjects_.begin(), subjects_.end(),
                   [&](const Known& known) { return row_is_steady(known.alone, other_kernels_); }))
    return unknown(kUnsteady);
  return same();
}

// A model whose answers do not depend on its input proves nothing.
InvarianceFinding BatchInvarianceCheck::compare_rows() {
  const auto as_first = [&](const Known& known) {
    return row_agrees(first_, 0, known.alone.answers, 0, known.alone, {});
  };
  if (std::all_of(subjects_.begin(), subjects_.end(), as_first) &&
      std::all_of(hostile_.begin(), hostile_.end(), as_first))
    return unknown(kBlind);
  return same();
}

// Same kernels and positions, other neighbours: no answer may change.
InvarianceFinding BatchInvarianceCheck::try_company(std::span<const size_t> company) {
  std::vector<ProbeRow> rows;
  for (const size_t i : company) rows.push_back(subjects_[i].row);
  RowAnswers expected, got;
  if (!run(rows, expected)) return failed();
  for (size_t h = 0; h < hostile_.size(); ++h) {
    // Replaces every other row, then one half, which also detects rows that are used in pairs or from the other end.
    const auto side = [&](size_t k) { return h % 2 == 0 ? k % 2 : k < rows.size() / 2 ? 0 : 1; };
    for (size_t replaced = 0; replaced < 2; ++replaced) {
      std::vector<ProbeRow> beside = rows;
      for (size_t k = 0; k < rows.size(); ++k) {
        if (side(k) == replaced) beside[k] = hostile_[h].row;
      }
      if (!run(beside, got)) return failed();
      for (size_t k = 0; k < rows.size(); ++k) {
        if (side(k) != replaced && !row_agrees(expected, k, got, k, subjects_[company[k]].alone, same_kernels_))
          return differs(kMixed);
      }
    }
  }
  return same();
}

InvarianceFinding BatchInvarianceCheck::try_neighbours() {
  const auto count = static_cast<size_t>(std::min(kCompany, most_));
  for (size_t first = 0; first < subjects_.size(); first += count) {
    std::vector<size_t> company;
    for (size_t k = 0; k < count; ++k) company.push_back((first + k) % subjects_.size());
    if (InvarianceFinding found = try_company(company); !found.reason.empty()) return found;
  }
  return same();
}

// Compares other batch sizes and positions with each row run alone. Other kernels round sums differently; if that
// affects numbers that are rounded to few values, other seeds decide.
InvarianceFinding BatchInvarianceCheck::try_sizes() {
  std::vector<int64_t> counts{2, 3, 5};
  const bool small = elements_ * most_ < kLargeRun && first_.bytes() * static_cast<size_t>(most_) < kLargeAnswer;
  if (small && of_a_row_ * most_ < std::chrono::milliseconds(30)) counts.push_back(most_);
  for (int64_t& count : counts) count = std::min(count, most_);
  std::string problem;
  for (uint32_t attempt = 0; attempt < kSeeds; ++attempt) {
    std::vector<Known> known;
    for (const std::vector<Known>* rows : {&subjects_, &hostile_}) {
      for (const Known& row : *rows) {
        ProbeRow other = row.row;
        other.seed += 16 * attempt;
        if (attempt == 0) known.push_back(row);
        if (attempt > 0) learn(other, known);
      }
    }
    problem.clear();
    for (size_t c = 0; c < counts.size() && problem.empty(); ++c) {
      std::vector<ProbeRow> rows;
      const auto place = [&](size_t k) { return (k + c + 1) % known.size(); };
      for (size_t k = 0; k < static_cast<size_t>(counts[c]); ++k) rows.push_back(known[place(k)].row);
      RowAnswers got;
      if (!run(rows, got)) return failed();
      for (size_t k = 0; k < rows.size(); ++k) {
        const Known& row = known[place(k)];
        // Kernels treat NaN differently (in a ReLU, for example).
        RowTolerance tolerance = other_kernels_;
        tolerance.garbage = row.row.kind == RowKind::kNotANumber || row.row.kind == RowKind::kInfinite;
        if (!row_agrees(row.alone.answers, 0, got, k, row.alone, tolerance)) problem = kPlaced;
      }
    }
    if (problem.empty()) return same();
  }
  return differs(problem);
}

}  // namespace

InvarianceFinding try_rows(Model& model, const ModelSignature& interface, int64_t most_rows, RowEffort effort) {
  return BatchInvarianceCheck(model, interface, most_rows, effort).find();
}

}  // namespace sconce::server::scheduling
