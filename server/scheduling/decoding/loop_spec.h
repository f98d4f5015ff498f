// LoopSpec: how decode loops run a model, as defined by the file of setting `loop` (docs/generate.md). It is not yet
// checked against the model; loop_plan.h does that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/scheduling/decoding/pick.h"

namespace sconce::server::scheduling {

constexpr size_t kMaxStopTokens = 1000;  // of a loop, or of a request
constexpr int64_t kMaxLoopRows = 4096;

struct LoopSpec {
  struct Feed {
    std::string output, input;
    std::optional<std::vector<int64_t>> shape;  // of the zeros for the first step
  };
  struct Count {
    std::string input;
    int64_t from = 0;
    std::optional<int64_t> below;  // upper limit of the input, exclusive
  };
  std::string origin;  // path of the file
  std::string token_input, logits_output;
  bool prefix = false;       // each step receives all tokens so far
  int64_t tokens_below = 0;  // upper limit of prompt tokens, exclusive; 0: not given
  std::optional<int64_t>
      rows;  // batch size of continuous batching: each loop has one row of the buffers that the model writes
  std::vector<Feed> feeds;
  std::optional<Count> count;
  std::vector<int64_t> stop_tokens;
  int64_t steps = 0;                     // maximum number of tokens of an answer
  std::chrono::microseconds deadline{};  // 0: none
  PickOptions pick;
};

// kInvalidArgument names the member and the file.
LoopSpec read_loop(std::string_view text, std::string origin);

}  // namespace sconce::server::scheduling
