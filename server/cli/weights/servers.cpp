#include "server/cli/weights/servers.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sconce/check.h"
#include "server/support/terminal/progress.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

using Json = nlohmann::json;

std::string text_in(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

uint64_t number_in(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
}

// A server of the release before has only the former name, "generation".
uint64_t version_in(const Json& object) {
  const uint64_t version = number_in(object, "weight_version");
  return version != 0 ? version : number_in(object, "generation");
}

PushStatus push_from(const Json& json) {
  PushStatus push{.id = text_in(json, "push"), .state = text_in(json, "state"), .set = text_in(json, "set")};
  if (const auto left = json.find("expires_in"); left != json.end() && left->is_number())
    push.expires_in = left->get<double>();
  push.weight_version = version_in(json);
  push.member = number_in(json, "member");
  if (const auto active = json.find("active"); active != json.end()) push.active = *active == true;
  if (const auto members = json.find("members"); members != json.end() && members->is_array())
    for (const Json& url : *members)
      if (url.is_string()) push.members.push_back(url.get<std::string>());
  return push;
}

}  // namespace

std::string weights_target(const std::string& model, const std::string& version, std::string_view action) {
  return http::admin_path(model, version) + "/weights" + std::string(action);
}

std::string set_target(const std::string& model, const std::string& version, const std::string& set,
                       std::string_view action) {
  return http::admin_path(model, version) + "/sets/" + set + std::string(action);
}

std::vector<std::future<http::Answer>> start_asking(size_t servers, const Ask& ask) {
  std::vector<std::future<http::Answer>> running;
  for (size_t i = 0; i < servers; ++i) running.push_back(std::async(std::launch::async, ask, i));
  return running;
}

std::vector<http::Answer> answers_of(std::vector<std::future<http::Answer>> running) {
  std::vector<http::Answer> answers;
  for (std::future<http::Answer>& one : running) answers.push_back(one.get());
  return answers;
}

std::vector<http::Answer> ask_all(size_t servers, const Ask& ask) { return answers_of(start_asking(servers, ask)); }

http::Answer fetch_file(const http::AdminClient& server, const std::string& target, const std::string& path) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  SCONCE_CHECK(file, kIo, "cannot write ", part);
  ProgressBar bar("download");
  uint64_t total = 0, done = 0;
  const http::Answer answer = server.download(
      target, [&](const http::AnswerHead&, uint64_t bytes) { total = bytes; },
      [&](std::span<const std::byte> bytes) {
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        bar.show(done += bytes.size(), total);
      });
  file.close();
  std::error_code problem;
  if (answer.ok() && file) std::filesystem::rename(part, path, problem);
  const bool written = file && !problem;
  if (!answer.ok() || !written) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
  }
  SCONCE_CHECK(written, kIo, "cannot write ", path);
  return answer;
}

void report(const http::AdminClient& client, bool good, const std::string& text) {
  std::cout << fmt::format("{}: {}\n", client.server().text, good ? text : red(text)) << std::flush;
}

std::optional<Active> active_of(const http::Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object()) return std::nullopt;
  Active active{.weight_version = number_in(json, "generation"), .version = text_in(json, "weight_version")};
  for (const Json& set : json.value("sets", Json::array())) {
    if (!set.is_object() || text_in(set, "state") != "active") continue;
    active.weight_version = version_in(set);
    active.label = text_in(set, "label");
    active.since = text_in(set, "since");
    active.digest = text_in(set, "digest");
  }
  if (active.weight_version == 0) return std::nullopt;
  return active;
}

std::optional<Active> named_of(const http::Answer& answer) {
  if (answer.status == 404) return Active{.digest = "absent"};
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object() || text_in(json, "name").empty()) return std::nullopt;
  return Active{.weight_version = version_in(json),
                .version = text_in(json, "name"),
                .label = text_in(json, "label"),
                .since = text_in(json, "since"),
                .digest = text_in(json, "digest")};
}

std::string staged_digest(const http::Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object()) return {};
  for (const Json& set : json.value("sets", Json::array()))
    if (set.is_object() && text_in(set, "state") == "staged") return text_in(set, "digest");
  return {};
}

std::optional<Guard> guard_of(const http::Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object()) return std::nullopt;
  return Guard{text_in(json, "state"), text_in(json, "reason"),
               number_in(json, "answers") + number_in(json, "failures")};
}

const PushStatus* ServerPushes::find(const std::string& id) const {
  for (const PushStatus& push : pushes)
    if (push.id == id) return &push;
  return nullptr;
}

ServerPushes pushes_of(const http::Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  ServerPushes server;
  const auto list = json.is_object() ? json.find("pushes") : json.end();
  if (!answer.ok())
    server.problem = answer.reason();
  else if (!json.is_object() || list == json.end() || !list->is_array())
    server.problem = "its answer is not from an admin port";
  else
    server.answered = true;
  if (server.answered)
    for (const Json& push : *list)
      if (push.is_object()) server.pushes.push_back(push_from(push));
  return server;
}

}  // namespace sconce::server::cli
