#include "server/registry/repository_request.h"

#include "sconce/check.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

// Calls parameter(key, json) for each member of "parameters".
template <class F>
void read_parameters(std::string_view body, F&& parameter) {
  if (body.empty()) return;
  JsonCursor::read_request(body, [&](JsonCursor& json, std::string_view key) {
    if (key != "parameters") {
      json.skip();
      return;
    }
    if (json.peek() == 'n' && json.consume_null()) return;
    json.members("'parameters'", [&](std::string_view name) { parameter(name, json); });
  });
}

}  // namespace

bool read_index_request(std::string_view body) {
  bool ready = false;
  if (body.empty()) return ready;
  JsonCursor::read_request(body, [&](JsonCursor& json, std::string_view key) {
    if (json.peek() == 'n' && json.consume_null()) return;
    if (key == "ready") {
      ready = json.boolean("'ready'");
    } else {
      json.skip();
    }
  });
  return ready;
}

void check_load_request(std::string_view body) {
  read_parameters(body, [](std::string_view name, JsonCursor&) {
    SCONCE_CHECK(!name.starts_with("file:"), kInvalidArgument, "load parameter '", excerpt(name),
                 "': a model's files are not taken from a request; put the package into the repository");
    SCONCE_CHECK(name != "config", kInvalidArgument,
                 "load parameter 'config': a model's settings are those of the server (MODEL.KEY = VALUE)");
    SCONCE_FAIL(kInvalidArgument, "unknown load parameter '", excerpt(name), "'");
  });
}

void check_unload_request(std::string_view body) {
  read_parameters(body, [](std::string_view name, JsonCursor& json) {
    SCONCE_CHECK(name == "unload_dependents", kInvalidArgument, "unknown unload parameter '", excerpt(name), "'");
    json.boolean("'unload_dependents'");
  });
}

}  // namespace sconce::server::registry
