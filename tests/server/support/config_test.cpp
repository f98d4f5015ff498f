#include "server/support/config.h"

#include <map>
#include <set>

#include "server/support/cores.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::server;
using namespace std::chrono_literals;

TEST_CASE("config: conf/sconce.conf is what the table says") {
  // To renew the file: build/release/sconce serve --print-config > conf/sconce.conf
  CHECK(content_of(source_path("conf/sconce.conf")) == annotated_configuration());
}

TEST_CASE("config: the annotated file, uncommented, is the defaults and sets every setting once") {
  const std::string annotated = annotated_configuration();
  std::string text;
  std::set<std::string> keys;
  for (size_t at = 0; at < annotated.size();) {
    const size_t end = annotated.find('\n', at);
    std::string line = annotated.substr(at, end - at);
    if (line.size() > 1 && line[0] == '#' && line[1] != ' ' && line[1] != '#') {
      line.erase(0, 1);
      CHECK(keys.insert(line.substr(0, line.find(' '))).second);
      text += line;
    }
    text += '\n';
    at = end + 1;
  }
  CHECK(keys.size() == setting_rows().size());
  ServerConfig config;
  config.http.port = 1;
  config.max_body_bytes = 1;
  config.read_text(text, "annotated");
  const ServerConfig defaults;
  CHECK(config.http == defaults.http);
  CHECK(config.max_body_bytes == defaults.max_body_bytes);
  CHECK(config.model("x").queue == defaults.model("x").queue);
}

TEST_CASE("config: defaults") {
  const ServerConfig config;
  CHECK(config.http == Address{"127.0.0.1", 8000});
  CHECK(config.metrics == Address{"127.0.0.1", 8002});
  CHECK(config.admin == Address{"127.0.0.1", 8003});
  CHECK(config.max_header_bytes == 16384);
  CHECK(config.inline_below == 200us);
  CHECK(config.versions == Versions::kLatest);
  const ModelConfig model = config.model("any");
  CHECK(model.replicas == 1);
  CHECK(model.devices == std::vector<std::string>{"cpu"});
  CHECK(model.check_inputs);
}

TEST_CASE("config: later sources win") {
  ServerConfig config;
  config.read_text("# comment\nhttp = 0.0.0.0:80\n  max_body_bytes=2M \nidle_timeout = 3s\n", "file");
  const std::map<std::string, std::string> environment = {
      {"SCONCE_MAX_BODY_BYTES", "3M"}, {"SCONCE_IDLE_TIMEOUT", "4s"}, {"SCONCE_SET", "a.queue=5; b.c.queue = 6"}};
  config.read_environment([&](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
  config.set("idle_timeout", "5s", "--idle-timeout");
  CHECK(config.http == Address{"0.0.0.0", 80});
  CHECK(config.max_body_bytes == 3 << 20);
  CHECK(config.idle_timeout == 5s);
  CHECK(config.model("a").queue == 5);
  CHECK(config.model("b.c").queue == 6);
  CHECK(config.model("c").queue == 1000);
}

TEST_CASE("config: model settings split at the last dot, own ones win over those of all") {
  ServerConfig config;
  config.read_text("digits.replicas = 4\nstem.model.replicas = 2\n*.replicas = 3\n", "file");
  CHECK(config.model("digits").replicas == 4);
  CHECK(config.model("stem.model").replicas == 2);
  CHECK(config.model("other").replicas == 3);
  config.set_model("digits.op_libraries=/a=b.so,/c.d.so", "--set");
  CHECK(config.model("digits").op_libraries == std::vector<std::string>{"/a=b.so", "/c.d.so"});
  const std::vector<std::string> names = {"digits", "stem.model"};
  config.check_model_names(names);
  config.set_model("digit.replicas=1", "--set");
  CHECK(error_from([&] { config.check_model_names(names); }) ==
        "setting replicas for a model that is not served: 'digit' (--set), served: digits, stem.model");
}

TEST_CASE("config: cores") {
  ServerConfig config;
  config.set_model("*.cpu_set=0-2,5", "--set");
  CHECK(find_cores(config.model("m").cpu_set) == std::vector<int>{0, 1, 2, 5});
  for (const char* bad : {"a", "3-1", "1-", "-1", "1-2-3", "99999999999", "numa:", "numa:x", "numa:-1", "node0"}) {
    CAPTURE(bad);
    CHECK(contains(error_from([&] { config.set_model(std::string("m.cpu_set=") + bad, "--set"); }), "expected cores"));
  }
}

TEST_CASE("config: addresses") {
  ServerConfig config;
  config.set("http", "[::1]:9000", "test");
  CHECK(config.http == Address{"::1", 9000});
  config.set("http", "off", "test");
  CHECK_FALSE(config.http.enabled());
  for (const char* bad : {"", "8000", ":8000", "host:", "host:65536", "host:-1", "::1:80", "host:80x"}) {
    CAPTURE(bad);
    CHECK(error_from([&] { config.set("http", bad, "test"); }).starts_with("setting http: expected HOST:PORT"));
  }
}

TEST_CASE("config: errors name the setting, the value and the place") {
  ServerConfig config;
  CHECK(error_from([&] { config.read_text("\nmax_body_bytes = lots\n", "x.conf"); }) ==
        "setting max_body_bytes: expected a size such as 4096, 64K, 16M or 2G, got 'lots' (x.conf:2)");
  CHECK(error_from([&] { config.read_text("nonsense\n", "x.conf"); }) ==
        "expected KEY = VALUE, got 'nonsense' (x.conf:1)");
  CHECK(error_from([&] { config.read_text("colour = red\n", "x.conf"); }) == "unknown setting: colour (x.conf:1)");
  CHECK(error_from([&] { config.read_text("m.colour = red\n", "x.conf"); }) ==
        "unknown setting of a model: colour (x.conf:1)");
  CHECK(error_from([&] { config.read_text("weights_keep = /x\n", "x.conf"); }) ==
        "setting weights_keep is called weights_store now (x.conf:1)");
  CHECK(error_from([&] { config.read_text("m.sets_bound = 4\n", "x.conf"); }) ==
        "setting sets_bound is called sets_instances now (x.conf:1)");
  CHECK(error_from([&] {
          config.read_environment(
              [](const char* name) { return std::string_view(name) == "SCONCE_WEIGHTS_KEEP" ? "/x" : nullptr; });
        }) == "setting weights_keep is called weights_store now (environment SCONCE_WEIGHTS_KEEP)");
  CHECK(error_from([&] { config.read_text("http=a:1\nhttp=b:2\n", "x.conf"); }) ==
        "setting given twice: http (x.conf:2 and line 1)");
  CHECK(error_from([&] { config.set("versions", "some", "--versions"); }) ==
        "setting versions: expected one of latest, all, got 'some' (--versions)");
  for (const char* bad : {"8E", "-1", "1.5M", "9223372036854775807K", ""}) {
    CAPTURE(bad);
    CHECK(error_from([&] { config.set("max_body_bytes", bad, "t"); }).starts_with("setting max_body_bytes:"));
  }
  for (const char* bad : {"10", "-1s", "1h", "s", "9223372036854775807s"}) {
    CAPTURE(bad);
    CHECK(error_from([&] { config.set("idle_timeout", bad, "t"); }).starts_with("setting idle_timeout:"));
  }
  CHECK(error_from([&] { config.set_model("replicas=2", "--set"); }) ==
        "expected MODEL.KEY=VALUE, got 'replicas=2' (--set)");
  CHECK(error_from([&] { config.set_model("../x.replicas=2", "--set"); }) == "not a model's name: '../x' (--set)");
  CHECK_THROWS_AS(config.read_file("/nonexistent/sconce.conf"), Error);
}

TEST_CASE("config: names") {
  CHECK(is_model_name("resnet-50_v1.5"));
  for (const char* bad : {"", ".", "..", ".hidden", "a/b", "a b", "a\n", "a:b", "\xc3\xa9", "a%2f"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_model_name(bad));
  }
  CHECK(is_model_name(std::string(128, 'a')));
  CHECK_FALSE(is_model_name(std::string(129, 'a')));
  CHECK(flag_name("max_body_bytes") == "--max-body-bytes");
  CHECK(environment_name("max_body_bytes") == "SCONCE_MAX_BODY_BYTES");
}
