#include "server/codecs/loop_codec.h"

#include <algorithm>
#include <random>
#include <string>
#include <variant>

#include "sconce/check.h"
#include "server/codecs/answer_parts.h"
#include "server/codecs/generate_codec.h"
#include "server/codecs/tensor_codec.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::codecs {
namespace {

// Parameters that both forms of a request fill.
struct Wanted {
  InferRequest& request;
  const scheduling::LoopPlan& plan;
  bool seeded = false;

  void begin() {
    scheduling::LoopRequest& loop = request.loop;
    loop.clear();
    loop.pick = plan.pick;
    loop.most_tokens = plan.steps;
  }
  void add_token(std::vector<int64_t>& to, uint64_t token, std::string_view what) const {
    SCONCE_CHECK(token <= static_cast<uint64_t>(plan.most_token()), kInvalidArgument, what, ": ", token,
                 " is no token of ", dtype_name(plan.token_dtype));
    to.push_back(static_cast<int64_t>(token));
  }
  void add_prompt(uint64_t token) const {
    SCONCE_CHECK(static_cast<int64_t>(request.loop.prompt.size()) < plan.most_prompt(), kInvalidArgument,
                 "the prompt is too long: the model takes ", plan.most_prompt(), " tokens at most");
    SCONCE_CHECK(plan.tokens_below == 0 || token < static_cast<uint64_t>(plan.tokens_below), kInvalidArgument,
                 "the prompt: ", token, " is no token of this model, which has ", plan.tokens_below);
    add_token(request.loop.prompt, token, "the prompt");
  }
  void add_stop(uint64_t token) const {
    SCONCE_CHECK(request.loop.stop_tokens.size() < scheduling::kMaxStopTokens, kInvalidArgument,
                 "'stop' has more than ", scheduling::kMaxStopTokens, " tokens");
    add_token(request.loop.stop_tokens, token, "'stop'");
  }
  void set_most(uint64_t most) const {
    SCONCE_CHECK(most >= 1 && most <= static_cast<uint64_t>(plan.steps), kInvalidArgument, "'max_tokens' must be 1 to ",
                 plan.steps, ", which is the most that this model's loop makes, got ", most);
    request.loop.most_tokens = static_cast<int64_t>(most);
  }
  void set_top_k(uint64_t top_k) const {
    request.loop.pick.top_k = static_cast<int64_t>(std::min<uint64_t>(top_k, INT64_MAX));
  }
  void set_temperature(double temperature) const {
    scheduling::check_temperature(temperature);
    request.loop.pick.temperature = temperature;
  }
  void set_top_p(double top_p) const {
    scheduling::check_top_p(top_p);
    request.loop.pick.top_p = top_p;
  }
  void set_seed(uint64_t seed) {
    request.loop.seed = seed;
    seeded = true;
  }
  void finish(const scheduling::ModelSignature& model) {
    scheduling::LoopRequest& loop = request.loop;
    const auto tokens = static_cast<int64_t>(loop.prompt.size());
    SCONCE_CHECK(tokens > 0, kInvalidArgument, "the request has no prompt: input '",
                 model.input_names.name(plan.token_input), "', or 'prompt', must have one token or more");
    SCONCE_CHECK(!plan.prefix || tokens >= plan.least_tokens, kInvalidArgument, "the prompt has ", tokens,
                 " tokens, the model takes ", plan.least_tokens, " or more");
    const int64_t room = plan.room_after(tokens);
    SCONCE_CHECK(room >= 1, kInvalidArgument, "the prompt has ", tokens, " tokens, the model takes ", tokens + room - 1,
                 " at most");
    loop.most_tokens = std::min(loop.most_tokens, room);
    for (const size_t i : plan.given)
      SCONCE_CHECK(request.inputs[i].defined(), kInvalidArgument, "the request lacks input '",
                   model.input_names.name(i), "'");
    if (!seeded) {
      std::random_device device;
      loop.seed = (uint64_t{device()} << 32) | device();
    }
    request.rows = 1;
    request.sequence.clear();
    request.sequence.start = true;  // selects the weights of all steps
  }
};

bool read_parameter(JsonCursor& json, std::string_view key, Wanted& wanted) {
  if (key == "max_tokens") {
    wanted.set_most(json.unsigned_integer("'max_tokens'"));
  } else if (key == "temperature") {
    wanted.set_temperature(json.number("'temperature'"));
  } else if (key == "top_k") {
    wanted.set_top_k(json.unsigned_integer("'top_k'"));
  } else if (key == "top_p") {
    wanted.set_top_p(json.number("'top_p'"));
  } else if (key == "seed") {
    wanted.set_seed(json.unsigned_integer("'seed'"));
  } else if (key == "stop") {
    wanted.request.loop.stop_tokens.clear();
    if (json.peek() == '[')
      json.array("'stop'", [&](size_t) { wanted.add_stop(json.unsigned_integer("a token in 'stop'")); });
    else
      wanted.add_stop(json.unsigned_integer("'stop'"));
  } else {
    return false;
  }
  return true;
}

uint64_t count_in(const RequestParameter& parameter) {
  if (const auto* const text = std::get_if<std::string_view>(&parameter.value)) {
    const auto number = parse_number<uint64_t>(*text);
    SCONCE_CHECK(number, kInvalidArgument, "parameter '", excerpt(parameter.name), "' must be a whole number, got '",
                 excerpt(*text), "'");
    return *number;
  }
  return count_of(parameter);
}

double real_in(const RequestParameter& parameter) {
  if (const auto* const real = std::get_if<double>(&parameter.value)) return *real;
  if (const auto* const text = std::get_if<std::string_view>(&parameter.value)) {
    const auto number = parse_number<double>(*text);
    SCONCE_CHECK(number, kInvalidArgument, "parameter '", excerpt(parameter.name), "' must be a number, got '",
                 excerpt(*text), "'");
    return *number;
  }
  return static_cast<double>(count_of(parameter));
}

bool take_parameter(const RequestParameter& parameter, Wanted& wanted) {
  const std::string_view name = parameter.name;
  if (name == "max_tokens") {
    wanted.set_most(count_in(parameter));
  } else if (name == "temperature") {
    wanted.set_temperature(real_in(parameter));
  } else if (name == "top_k") {
    wanted.set_top_k(count_in(parameter));
  } else if (name == "top_p") {
    wanted.set_top_p(real_in(parameter));
  } else if (name == "seed") {
    wanted.set_seed(count_in(parameter));
  } else if (name == "stop") {
    // A message's parameters have no lists: several tokens are a text, "2,3".
    const auto* const text = std::get_if<std::string_view>(&parameter.value);
    if (text == nullptr) {
      wanted.add_stop(count_of(parameter));
      return true;
    }
    for (std::string_view rest = *text; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      wanted.add_stop(count_in({"stop", rest.substr(0, comma)}));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  } else {
    return false;
  }
  return true;
}

void check_given(const scheduling::LoopPlan& plan, size_t index, std::string_view what) {
  SCONCE_CHECK(std::find(plan.given.begin(), plan.given.end(), index) != plan.given.end(), kInvalidArgument, what,
               ": the loop fills it");
}

void append_tail(scheduling::DecodeLoop::End end, TextBuffer& text) {
  text.append(",\"finish_reason\":\"");
  text.append(finish_reason(end));
  text.append("\"}");
}

}  // namespace

void decode_loop(const scheduling::ModelSignature& model, const scheduling::LoopPlan& plan, const BodyBuffer& body,
                 TensorScratch& scratch, InferRequest& request) {
  JsonCursor json({reinterpret_cast<const char*>(body.begin()), body.size()});
  request.inputs.resize(model.inputs.size());
  Wanted wanted{request, plan};
  wanted.begin();
  bool prompted = false;
  const auto member = [&](std::string_view key, bool top) {
    const std::optional<size_t> index = model.input_names.find(key);
    if (index == plan.token_input || (!index && key == "prompt")) {
      SCONCE_CHECK(!prompted, kInvalidArgument, "the prompt is given twice");
      prompted = true;
      json.array("the prompt", [&](size_t) { wanted.add_prompt(json.unsigned_integer("a token of the prompt")); });
    } else if (index) {
      const std::string what = "input '" + model.input_names.name(*index) + "'";
      check_given(plan, *index, what);
      read_generate_input(model, json, *index, scratch, request, plan.rows > 0);
    } else if (top && key == "id") {
      const std::string_view id = json.raw_string("'id'");
      if (id.size() > 2) request.json_id = id;
    } else if (key == "weights") {
      request.weights = json.string("'weights'");
    } else if (!read_parameter(json, key, wanted) && !read_schedule_parameter(json, key, request.schedule)) {
      top ? (void)json.skip() : skip_parameter(json, key);
    }
  };
  read_generate_members(model, json, member);
  wanted.finish(model);
}

void decode_loop(const scheduling::ModelSignature& model, const scheduling::LoopPlan& plan, const TensorRequest& sent,
                 const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request) {
  Wanted wanted{request, plan};
  wanted.begin();
  decode_some_tensors(model, sent, shared_memory, scratch, request);
  SCONCE_CHECK(!request.sequence.id.given() && !request.sequence.start && !request.sequence.end, kInvalidArgument,
               "the loop of model '", model.name, "' has a sequence of its own: the request must name none");
  SCONCE_CHECK(request.outputs.empty(), kInvalidArgument, "the loop of model '", model.name,
               "' answers with tokens: the request must ask for no outputs");
  for (const RequestParameter& parameter : sent.parameters) take_parameter(parameter, wanted);
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.inputs[i].defined() && i != plan.token_input)
      check_given(plan, i, "input '" + model.input_names.name(i) + "'");
  SCONCE_CHECK(!request.device_inputs, kInvalidArgument,
               "the prompt and other inputs of a loop must not be in device memory");
  if (const Tensor& prompt = request.inputs[plan.token_input]; prompt.defined()) {
    for (int64_t d = 0; d + 1 < prompt.dim(); ++d)
      SCONCE_CHECK(prompt.size(d) == 1, kInvalidArgument, "the prompt must be one row of tokens, its shape is ",
                   to_string(prompt.sizes()));
    const std::byte* const values = scratch.row_major(prompt);
    for (int64_t i = 0; i < prompt.numel(); ++i) {
      const int64_t token = prompt.dtype() == DType::kInt32 ? reinterpret_cast<const int32_t*>(values)[i]
                                                            : reinterpret_cast<const int64_t*>(values)[i];
      SCONCE_CHECK(token >= 0, kInvalidArgument, "the prompt: ", token, " is no token");
      wanted.add_prompt(static_cast<uint64_t>(token));
    }
  }
  wanted.finish(model);
}

std::string_view finish_reason(scheduling::DecodeLoop::End end) noexcept {
  return end == scheduling::DecodeLoop::End::kStop       ? "stop"
         : end == scheduling::DecodeLoop::End::kDeadline ? "deadline"
                                                         : "length";
}

void encode_token(const scheduling::ModelSignature& model, const InferRequest& request, std::span<const int64_t> token,
                  TensorAnswer& answer) {
  answer.model = model.name;
  answer.version = model.version;
  answer.id = request.json_id;
  answer.outputs.clear();
  answer.sizes.clear();
  constexpr std::string_view kNames[] = {"token", "step"};
  for (size_t i = 0; i < token.size(); ++i) {
    answer.outputs.push_back({kNames[i], dtype_oip(DType::kInt64), answer.sizes.size(), 1, &token[i], sizeof token[i]});
    answer.sizes.push_back(1);
  }
}

void encode_tokens(const scheduling::ModelSignature& model, const InferRequest& request,
                   std::span<const int64_t> tokens, scheduling::DecodeLoop::End end, TextBuffer& text) {
  append_answer_head(model, request, text);
  text.append(",\"tokens\":[");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text.append(',');
    append_number(text, tokens[i]);
  }
  text.append(']');
  append_tail(end, text);
}

void append_token_event(const scheduling::ModelSignature& model, const InferRequest& request, int64_t token,
                        size_t step, TextBuffer& text) {
  text.append("data: ");
  append_answer_head(model, request, text);
  text.append(",\"token\":");
  append_number(text, token);
  text.append(",\"step\":");
  append_number(text, static_cast<int64_t>(step));
  text.append("}\n\n");
}

void append_end_event(const scheduling::ModelSignature& model, const InferRequest& request, size_t tokens,
                      scheduling::DecodeLoop::End end, TextBuffer& text) {
  text.append("data: ");
  append_answer_head(model, request, text);
  text.append(",\"steps\":");
  append_number(text, static_cast<int64_t>(tokens));
  append_tail(end, text);
  text.append("\n\n");
}

void append_error_event(std::string_view message, TextBuffer& text) {
  std::string line = "data: {\"error\":";
  append_json_string(line, message);
  line += "}\n\n";
  text.append(line);
}

}  // namespace sconce::server::codecs
