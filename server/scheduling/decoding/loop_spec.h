// LoopSpec: how a model is run again and again to make tokens, as the file of setting loop says (docs/generate.md).
// Nothing of it is compared with the model yet; that is for loop_plan.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/scheduling/decoding/pick.h"

namespace sconce::server {

constexpr size_t kMaxStopTokens = 1000;  // of a loop, and of a request
constexpr int64_t kMaxLoopRows = 4096;

struct LoopSpec {
  struct Feed {
    std::string output, input;
    std::optional<std::vector<int64_t>> shape;  // of the zeros that the first step gets
  };
  struct Count {
    std::string input;
    int64_t from = 0;
    std::optional<int64_t> below;  // the input stays below this
  };
  std::string origin;  // the file
  std::string token_input, logits_output;
  bool prefix = false;          // each step gets all tokens so far
  int64_t tokens_below = 0;     // tokens of a prompt are less; 0: the file does not say it
  std::optional<int64_t> rows;  // loops that share a run, each in a row of the buffers that the model writes
  std::vector<Feed> feeds;
  std::optional<Count> count;
  std::vector<int64_t> stop_tokens;
  int64_t steps = 0;                     // the most tokens of an answer
  std::chrono::microseconds deadline{};  // 0: none
  PickOptions pick;
};

// kInvalidArgument names the member and the file.
LoopSpec read_loop(std::string_view text, std::string origin);

}  // namespace sconce::server
