#include "server/scheduling/decoding/loop_spec.h"

#include <cmath>

#include "sconce/check.h"
#include "server/support/config.h"
#include "server/support/json_cursor.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

// Maximum number of tokens of an answer; an answer in one piece needs memory for all of them.
constexpr int64_t kMaxTokens = 1'000'000;

int64_t whole_number(JsonCursor& json, std::string_view what) {
  const uint64_t number = json.unsigned_integer(what);
  SCONCE_CHECK(number <= INT64_MAX, kInvalidArgument, what, " is out of range: ", number);
  return static_cast<int64_t>(number);
}

void read_token(JsonCursor& json, LoopSpec& spec) {
  json.object("'token'", [&](std::string_view key) {
    if (key == "input")
      spec.token_input = json.string("'input' of 'token'");
    else if (key == "output")
      spec.logits_output = json.string("'output' of 'token'");
    else if (key == "prefix")
      spec.prefix = json.boolean("'prefix' of 'token'");
    else if (key == "below")
      spec.tokens_below = whole_number(json, "'below' of 'token'");
    else
      fail_member("'token'", key);
    SCONCE_CHECK(key != "below" || spec.tokens_below > 0, kInvalidArgument, "'below' of 'token' must be 1 or more");
  });
}

// "input", or {"input": ..., "shape": [...]}.
LoopSpec::Feed read_feed(JsonCursor& json, std::string_view output) {
  LoopSpec::Feed feed;
  feed.output = output;
  if (json.peek() == '"') {
    feed.input = json.string("an input's name");
    return feed;
  }
  json.object("a member of 'feed'", [&](std::string_view key) {
    if (key == "input") {
      feed.input = json.string("'input' of 'feed'");
    } else if (key == "shape") {
      feed.shape.emplace();
      json.array("'shape'", [&](size_t) { feed.shape->push_back(whole_number(json, "a size in 'shape'")); });
    } else {
      fail_member("'feed'", key);
    }
  });
  return feed;
}

LoopSpec::Count read_count(JsonCursor& json) {
  LoopSpec::Count count;
  json.object("'count'", [&](std::string_view key) {
    if (key == "input")
      count.input = json.string("'input' of 'count'");
    else if (key == "from")
      count.from = whole_number(json, "'from' of 'count'");
    else if (key == "below")
      count.below = whole_number(json, "'below' of 'count'");
    else
      fail_member("'count'", key);
  });
  SCONCE_CHECK(!count.input.empty(), kInvalidArgument, "'count' has no 'input'");
  SCONCE_CHECK(!count.below || *count.below > count.from, kInvalidArgument, "'below' of 'count' is ", *count.below,
               ", and must be more than 'from', which is ", count.from);
  return count;
}

void read_stop(JsonCursor& json, LoopSpec& spec) {
  json.object("'stop'", [&](std::string_view key) {
    if (key == "tokens")
      json.array("'tokens' of 'stop'", [&](size_t) {
        SCONCE_CHECK(spec.stop_tokens.size() < kMaxStopTokens, kInvalidArgument, "'tokens' of 'stop' has more than ",
                     kMaxStopTokens, " tokens");
        spec.stop_tokens.push_back(whole_number(json, "a token in 'tokens' of 'stop'"));
      });
    else if (key == "steps")
      spec.steps = whole_number(json, "'steps' of 'stop'");
    else if (key == "deadline")
      spec.deadline = duration_of(json.string("'deadline' of 'stop'"), "'deadline' of 'stop'");
    else
      fail_member("'stop'", key);
  });
}

void read_pick(JsonCursor& json, PickOptions& pick) {
  json.object("'pick'", [&](std::string_view key) {
    if (key == "temperature")
      check_temperature(pick.temperature = json.number("'temperature'"));
    else if (key == "top_k")
      check_top_k(pick.top_k = whole_number(json, "'top_k'"));
    else if (key == "top_p")
      check_top_p(pick.top_p = json.number("'top_p'"));
    else
      fail_member("'pick'", key);
  });
}

}  // namespace

LoopSpec read_loop(std::string_view text, std::string origin) {
  LoopSpec spec;
  spec.origin = std::move(origin);
  const ErrorContext context(spec.origin);
  JsonCursor json(text);
  std::vector<std::string> seen;
  json.object("the loop", [&](std::string_view key) {
    for (const std::string& other : seen)
      SCONCE_CHECK(other != key, kInvalidArgument, "member '", excerpt(key), "' is there twice");
    seen.emplace_back(key);
    if (key == "token")
      read_token(json, spec);
    else if (key == "feed")
      json.object("'feed'", [&](std::string_view output) { spec.feeds.push_back(read_feed(json, output)); });
    else if (key == "count")
      spec.count = read_count(json);
    else if (key == "stop")
      read_stop(json, spec);
    else if (key == "rows")
      spec.rows = whole_number(json, "'rows'");
    else if (key == "pick")
      read_pick(json, spec.pick);
    else
      fail_member("the loop", key);
  });
  json.finish();
  SCONCE_CHECK(!spec.token_input.empty(), kInvalidArgument, "it has no 'token' with an 'input'");
  SCONCE_CHECK(!spec.logits_output.empty(), kInvalidArgument, "it has no 'token' with an 'output'");
  SCONCE_CHECK(spec.steps >= 1 && spec.steps <= kMaxTokens, kInvalidArgument,
               "'steps' of 'stop', the most tokens of an answer, must be 1 to ", kMaxTokens, ", got ", spec.steps);
  SCONCE_CHECK(!spec.rows || (*spec.rows >= 2 && *spec.rows <= kMaxLoopRows), kInvalidArgument, "'rows' must be 2 to ",
               kMaxLoopRows, ", got ", *spec.rows);
  return spec;
}

}  // namespace sconce::server::scheduling
