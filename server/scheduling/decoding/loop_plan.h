// LoopPlan: a decode loop whose file was checked against its model. LoopRequest: one request to it. Immutable.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/scheduling/decoding/loop_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

struct LoopPlan {
  struct Feed {
    size_t output = 0, input = 0;
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;  // of the zeros for the first step
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
  // Limits of a step's number of tokens, in the last dimension. If both are 1, each step takes one token.
  int64_t least_tokens = 1, most_tokens = 1;
  bool prefix = false;
  bool sequence = false;    // the state is in buffers that the model writes
  bool on_device = false;   // the model runs on a device; the largest logits are selected there too
  bool feeds_stay = false;  // fed-back tensors stay on the device
  std::vector<Feed> feeds;
  std::optional<Count> count;
  std::vector<size_t> given;  // inputs from the request, the same for all steps
  std::vector<int64_t> stop_tokens;
  int64_t steps = 0;
  std::chrono::nanoseconds deadline{};  // 0: none
  PickOptions pick;
  int64_t tokens_below = 0;  // upper limit of prompt tokens, exclusive; 0: unknown

  // Batch size of continuous batching: each loop has one row of the buffers that the model writes. 0: each loop has its
  // own buffers.
  int64_t rows = 0;
  std::vector<std::vector<int64_t>> row_inputs;  // with rows: sizes of each input of a run
  int64_t idle_steps =
      0;  // with rows: a row can do this number of steps from its initial values, because a loop may do them

  // The largest token that the dtype of the token input holds.
  int64_t most_token() const noexcept { return token_dtype == DType::kInt32 ? INT32_MAX : INT64_MAX; }
  // The longest prompt.
  int64_t most_prompt() const noexcept { return std::clamp<int64_t>(room_after(0) - 1, 0, 1'000'000); }
  // How many tokens fit after a prompt of `prompt` tokens. All tokens but the last one are inputs of a step.
  int64_t room_after(int64_t prompt) const noexcept;
};

// The parameters of a request to a loop.
struct LoopRequest {
  std::vector<int64_t> prompt, stop_tokens;  // stop_tokens are in addition to the loop's own
  int64_t most_tokens = 0;                   // maximum number of tokens of the answer
  PickOptions pick;
  uint64_t seed = 0;

  void clear() noexcept {
    prompt.clear();
    stop_tokens.clear();
    most_tokens = 0;
    pick = {};
    seed = 0;
  }
  // Frees its memory, because the next prompt may be short.
  void forget() noexcept { *this = {}; }
};

// sequences: the model has slots for sequences. kInvalidArgument names the tensor and the mismatch: names that the
// model lacks; dtypes, ranks and sizes; inputs that two members fill; state that loops would share.
LoopPlan plan_loop(const LoopSpec& spec, const ModelSignature& model, bool sequences);

}  // namespace sconce::server::scheduling
