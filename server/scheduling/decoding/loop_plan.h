// LoopPlan: a loop after its file was compared with its model, and a request to it. Immutable.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/scheduling/decoding/loop_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

struct LoopPlan {
  struct Feed {
    size_t output = 0, input = 0;
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;  // of the zeros that the first step gets
  };
  struct Count {
    size_t input = 0;
    DType dtype = DType::kInt64;
    size_t rank = 0;
    bool each = false;  // its last dimension has a number for each token of the step
    int64_t from = 0, below = INT64_MAX;
  };
  size_t token_input = 0, logits_output = 0;
  DType token_dtype = DType::kInt64;
  size_t token_rank = 0;
  // How many tokens a step may have, in the last dimension. Both 1: one by one.
  int64_t least_tokens = 1, most_tokens = 1;
  bool prefix = false;
  bool sequence = false;    // the state is in buffers that the model writes
  bool on_device = false;   // the model runs on a device, which also finds the largest logits
  bool feeds_stay = false;  // what is fed back stays on it
  std::vector<Feed> feeds;
  std::optional<Count> count;
  std::vector<size_t> given;  // inputs that the request brings and that stay as they are
  std::vector<int64_t> stop_tokens;
  int64_t steps = 0;
  std::chrono::nanoseconds deadline{};  // 0: none
  PickOptions pick;
  int64_t tokens_below = 0;  // tokens of a prompt are less; 0: not known

  // Loops that share a run, each in a row of the buffers that the model writes; 0: each has buffers of its own.
  int64_t rows = 0;
  std::vector<std::vector<int64_t>> row_inputs;  // with rows: sizes of each input in a run
  int64_t idle_steps = 0;  // with rows: so many steps a row can do from its initial values, since a loop may do them

  // The largest token that the input's dtype holds.
  int64_t most_token() const noexcept { return token_dtype == DType::kInt32 ? INT32_MAX : INT64_MAX; }
  // The longest prompt.
  int64_t most_prompt() const noexcept { return std::clamp<int64_t>(room_after(0) - 1, 0, 1'000'000); }
  // How many tokens fit after a prompt of that many: all are given to a step but the last one.
  int64_t room_after(int64_t prompt) const noexcept;
};

// What a request asks of a loop.
struct LoopRequest {
  std::vector<int64_t> prompt, stop_tokens;  // the loop's own stop tokens count besides
  int64_t most_tokens = 0;                   // of the answer
  PickOptions pick;
  uint64_t seed = 0;

  void clear() noexcept {
    prompt.clear();
    stop_tokens.clear();
    most_tokens = 0;
    pick = {};
    seed = 0;
  }
  // Frees its memory: the next prompt may be short.
  void forget() noexcept { *this = {}; }
};

// sequences: the model has places for sequences. kInvalidArgument names the tensor and what does not fit: names that
// the model lacks, dtypes, ranks and sizes; inputs that two members fill; a state that no loop has for itself.
LoopPlan plan_loop(const LoopSpec& spec, const ModelSignature& model, bool sequences);

}  // namespace sconce::server
