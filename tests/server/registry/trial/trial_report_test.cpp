#include "server/registry/trial/trial_report.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

namespace sconce::server::registry {
namespace {

TrialReport read(const std::vector<std::string>& lines) { return read_trial_report(lines); }

}  // namespace

TEST_CASE("trial report: each step's line is read as it was written") {
  scheduling::OutputProbe probe;
  probe.first = {.batch = 1,
                 .outputs = {{},
                             {.none = false, .dtype = DType::kBFloat16, .sizes = {1, 4}},
                             {.none = false, .dtype = DType::kInt64, .sizes = {}}}};
  probe.second = probe.first;
  probe.second.batch = 2;
  probe.second.outputs[1].sizes[0] = 2;
  const TrialReport report =
      read({warm_up_line({.inputs = UINT64_MAX, .problem = ""}), outputs_line(probe),
            rows_line({.kind = scheduling::InvarianceFinding::Kind::kDiffers, .reason = "they \"meet\"\n"}),
            inputs_line("")});
  REQUIRE(report.warm_up);
  CHECK(report.warm_up->inputs == UINT64_MAX);
  CHECK(report.warm_up->problem.empty());
  REQUIRE(report.outputs);
  CHECK(report.outputs->second.batch == 2);
  REQUIRE(report.outputs->second.outputs.size() == 3);
  CHECK(report.outputs->second.outputs[0].none);
  CHECK(report.outputs->second.outputs[1].dtype == DType::kBFloat16);
  CHECK(report.outputs->second.outputs[1].sizes == std::vector<int64_t>{2, 4});
  CHECK_FALSE(report.outputs->second.outputs[2].none);
  CHECK(report.rows.kind == scheduling::InvarianceFinding::Kind::kDiffers);
  CHECK(report.rows.reason == "they \"meet\"\\x0a");
  CHECK(report.inputs == "");

  const TrialReport failed = read({warm_up_line({.inputs = 0, .problem = "why"}), outputs_line("no zeros")});
  CHECK(failed.warm_up->problem == "why");
  CHECK_FALSE(failed.outputs);
  CHECK(failed.outputs_problem == "no zeros");
  CHECK(failed.rows.kind == scheduling::InvarianceFinding::Kind::kNone);
  CHECK(read({rows_line({.kind = scheduling::InvarianceFinding::Kind::kSame})}).rows.kind ==
        scheduling::InvarianceFinding::Kind::kSame);
  CHECK(read({rows_line({.kind = scheduling::InvarianceFinding::Kind::kUnknown, .reason = "why"})}).rows.reason ==
        "why");
  CHECK(code_of([] { rows_line({}); }) == ErrorCode::kInternal);
  CHECK_FALSE(read({}).warm_up);
}

TEST_CASE("trial report: nonsense is refused") {
  const std::string deep = R"({"outputs":)" + std::string(200, '[') + std::string(200, ']') + "}";
  std::string many = R"({"outputs":{"first":{"outputs":[)";
  for (int i = 0; i < 65537; ++i) many += i == 0 ? "null" : ",null";
  many += "]}}}";
  std::string flat = R"({"outputs":{"first":{"outputs":[{"dtype":"float32","sizes":[1)";
  for (int i = 0; i < 64; ++i) flat += ",1";
  flat += "]}]}}}";
  for (const std::string& line :
       {std::string("\xff{["), std::string(""), std::string("7"), std::string(R"({"warm_up":7})"),
        std::string(R"({"else":1})"), std::string(R"({"warm_up":{"other":1}})"), std::string(R"({"rows":{"found":1}})"),
        std::string(R"({"rows":{"found":"same","reason":"but"}})"), std::string(R"({"rows":{"found":"differs"}})"),
        std::string(R"({"rows":{"found":"else","reason":"why"}})"), std::string(R"({"rows":{}})"),
        std::string(R"({"outputs":{"first":{"batch":-1}}})"),
        std::string(R"({"outputs":{"first":{"batch":9223372036854775808}}})"),
        std::string(R"({"outputs":{"first":{"outputs":[{"dtype":"float33"}]}}})"), std::string(R"({"inputs":""} more)"),
        deep, many, flat}) {
    CAPTURE(line.substr(0, 100));
    CHECK(code_of([&] { read({line}); }) == ErrorCode::kInvalidArgument);
  }
  CHECK(read({inputs_line(std::string(100000, 'x'))}).inputs->size() <= 2000);
}

TEST_CASE("trial report: outputs of another model are not taken over") {
  ModelSpec spec;
  spec.outputs.resize(2);
  scheduling::ModelSignature interface("m", 1, spec);
  scheduling::OutputProbe probe;
  CHECK(code_of([&] { interface.observe_outputs(probe); }) == ErrorCode::kInvalidArgument);
}

}  // namespace sconce::server::registry
