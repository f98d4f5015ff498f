#include "server/scheduling/triton/model_config.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

namespace sconce::server::scheduling {
namespace {

TritonConfig read(std::string_view text) { return read_triton_config(text, "/models/m"); }

std::string settings_of(std::string_view text) {
  std::string all;
  for (const auto& [key, value] : read(text).settings) all += (all.empty() ? "" : " ") + key + "=" + value;
  return all;
}

std::string ignored_in(std::string_view text) {
  std::string all;
  for (const std::string& one : read(text).ignored) all += (all.empty() ? "" : ", ") + one;
  return all;
}

}  // namespace

TEST_CASE("config.pbtxt: fields that become settings") {
  CHECK(settings_of("max_batch_size: 8") == "max_batch_size=8 batching=on");
  CHECK(settings_of("max_batch_size: 0") == "batching=off");
  CHECK(settings_of("instance_group [ { count: 4 kind: KIND_CPU } ]") == "replicas=4 devices=cpu");
  CHECK(settings_of("instance_group { kind: KIND_GPU gpus: [0, 2] }") == "replicas=1 devices=cuda:0,cuda:2");
  CHECK(settings_of("instance_group { kind: KIND_GPU }") == "replicas=1 devices=cuda");
  CHECK(settings_of("instance_group { count: 2 }") == "replicas=2 devices=auto");
  CHECK(settings_of("instance_group { count: 2 gpus: 0 kind: KIND_GPU } instance_group { count: 2 kind: KIND_CPU }") ==
        "replicas=2 devices=cuda:0,cpu");
  // What the author says holds without a proof; 0 rows are no batch, in whatever order.
  CHECK(settings_of("dynamic_batching { }") == "batching=on");
  CHECK(settings_of("max_batch_size: 0 dynamic_batching { }") == "batching=off");
  CHECK(settings_of("dynamic_batching { } max_batch_size: 0") == "batching=off");
  CHECK(settings_of("dynamic_batching { preferred_batch_size: [8, 4] max_queue_delay_microseconds: 500 }") ==
        "batch_delay=500us preferred_batch_sizes=4,8 batching=on");
  CHECK(settings_of("dynamic_batching { priority_levels: 3 default_priority_level: 2 }") ==
        "priority_levels=3 default_priority=2 batching=on");
  CHECK(settings_of("dynamic_batching { default_queue_policy { timeout_action: DELAY max_queue_size: 100 "
                    "default_timeout_microseconds: 2000 allow_timeout_override: true } }") ==
        "timeout_action=delay queue=100 queue_timeout=2000us timeout_override=true batching=on");
  // Triton's default.
  CHECK(settings_of("dynamic_batching { default_queue_policy { } }") == "timeout_override=false batching=on");
  CHECK(settings_of("version_policy { latest { num_versions: 2 } }") == "version_policy=latest:2");
  CHECK(settings_of("version_policy: { all { } }") == "version_policy=all");
  CHECK(settings_of("version_policy { specific { versions: [3, 1] } }") == "version_policy=1,3");
  CHECK(settings_of("parameters { key: 'sconce.golden' value { string_value: 'g.npz' } }") == "golden=g.npz");
  CHECK(settings_of("parameters { key: 'INTRA_OP_THREAD_COUNT' value { string_value: '2' } }") == "threads=2");
  CHECK(settings_of("model_operations { op_library_filename: ['a.so', 'b.so'] }") == "op_libraries=a.so,b.so");
  CHECK(settings_of("output { name: 'y' label_filename: 'labels.txt' }") == "labels=/models/m/labels.txt");
}

TEST_CASE("config.pbtxt: sequences") {
  CHECK(settings_of("sequence_batching { }") == "sequence_idle=1000000us sequences=1024");
  CHECK(settings_of("sequence_batching { direct { } max_sequence_idle_microseconds: 5000 }") ==
        "sequence_idle=5000us sequences=1024");
  CHECK(settings_of("instance_group { count: 3 kind: KIND_CPU } "
                    "sequence_batching { oldest { max_candidate_sequences: 4 preserve_ordering: true } }") ==
        "sequence_idle=1000000us replicas=3 devices=cpu sequences=12");
  CHECK(ignored_in("sequence_batching { oldest { max_candidate_sequences: 4 preserve_ordering: true } }") == "");

  const TritonConfig config = read(R"(sequence_batching { control_input [
    { name: "S" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 0.5 ] } ] },
    { name: "E" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ -1, 2 ] } ] },
    { name: "R" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
    { name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] } ] })");
  REQUIRE(config.controls.size() == 4);
  CHECK(config.controls[0].name == "S");
  CHECK(config.controls[0].kind == TritonControl::Kind::kStart);
  CHECK(config.controls[0].datatype == "FP32");
  CHECK(config.controls[0].on == 0.5);
  CHECK(config.controls[1].kind == TritonControl::Kind::kEnd);
  CHECK(config.controls[1].datatype == "INT32");
  CHECK(config.controls[1].off == -1);
  CHECK(config.controls[1].on == 2);
  CHECK(config.controls[2].datatype == "BOOL");
  CHECK(config.controls[2].off == 0);
  CHECK(config.controls[2].on == 1);
  CHECK(config.controls[3].kind == TritonControl::Kind::kId);
  CHECK(config.controls[3].datatype == "UINT64");
  CHECK(config.ignored.empty());

  const auto problem = [](std::string_view control) {
    return error_from([&] { read("sequence_batching { control_input { " + std::string(control) + " } }"); });
  };
  CHECK(contains(problem("control { int32_false_true: [0, 1] }"), "control_input: it has no name"));
  CHECK(contains(problem("name: 'x'"), "'x' has no control"));
  CHECK(contains(problem("name: 'x' control { int32_false_true: 0 }"), "'x' needs int32_false_true"));
  CHECK(contains(problem("name: 'x' control { kind: CONTROL_SEQUENCE_CORRID }"), "'x' needs a data_type"));
  CHECK(contains(problem("name: 'x' control { int32_false_true: 0 fp32_false_true: 1 }"), "values of one type"));
  CHECK(contains(problem("name: 'x' control { int32_false_true: 0.5 }"), "expected a whole number"));
  CHECK(contains(problem("name: 'x' control { fp32_false_true: a }"), "expected a number, got 'a'"));
  CHECK(contains(problem("name: 'x' control { kind: MY_KIND }"), "there is no kind 'MY_KIND'"));
}

TEST_CASE("config.pbtxt: tensors, warm-up, ensembles") {
  const TritonConfig config = read(R"(
    name: "m" platform: "torch_aoti" max_batch_size: 4
    input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }, { name: "s" data_type: TYPE_STRING } ]
    output { name: "y" data_type: TYPE_INT64 dims: 1 }
    model_warmup { name: "w" batch_size: 2 count: 3
      inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 5, 3 ] random_data: true } }
      inputs { key: "z" value { data_type: TYPE_INT32 dims: 1 input_data_file: "z.bin" } } })");
  CHECK(config.name == "m");
  CHECK(config.ignored.empty());
  REQUIRE(config.inputs.size() == 2);
  CHECK(config.inputs[0].datatype == "FP32");
  CHECK(config.inputs[0].dims == std::vector<int64_t>{-1, 3});
  CHECK(config.inputs[1].datatype == "BYTES");
  CHECK(!config.inputs[1].dims);
  CHECK(config.outputs[0].dims == std::vector<int64_t>{1});
  REQUIRE(config.warm_ups.size() == 1);
  CHECK(config.warm_ups[0].batch_size == 2);
  CHECK(config.warm_ups[0].count == 3);
  CHECK(config.warm_ups[0].inputs[0].values == TritonWarmUp::Values::kRandom);
  CHECK(config.warm_ups[0].inputs[1].file == "/models/m/warmup/z.bin");

  const TritonConfig ensemble = read(R"(
    platform: "ensemble"
    ensemble_scheduling { step [
      { model_name: "a" model_version: -1 input_map { key: "x" value: "in" } output_map { key: "y" value: "mid" } },
      { model_name: "b" model_version: 2 input_map { key: "u" value: "mid" } output_map { key: "v" value: "out" } } ] })");
  CHECK(ensemble.ensemble);
  REQUIRE(ensemble.steps.size() == 2);
  CHECK(ensemble.steps[0].inputs == std::vector<std::pair<std::string, std::string>>{{"x", "in"}});
  CHECK(ensemble.steps[1].version == 2);
  CHECK(ensemble.settings.empty());
}

TEST_CASE("config.pbtxt: what has no meaning here is named") {
  CHECK(ignored_in("backend: 'pytorch' optimization { } max_batch_size: 1") == "");
  CHECK(ignored_in("backend: 'onnxruntime'") == "backend (line 1): the package decides");
  CHECK(
      ignored_in("sequence_batching { direct { minimum_slot_utilization: 0.5 } oldest { preferred_batch_size: 4 } }") ==
      "sequence_batching.direct.minimum_slot_utilization (line 1): each step runs as soon as it can, by itself, "
      "sequence_batching.oldest.preferred_batch_size (line 1): each step runs as soon as it can, by itself");
  CHECK(ignored_in("sequence_batching { state { input_name: 'x' } iterative_sequence: true }") ==
        "sequence_batching.state (line 1): a state is a buffer that the package writes, "
        "sequence_batching.iterative_sequence (line 1)");
  CHECK(ignored_in("\nresponse_cache { enable: true }\nresponse_cache { enable: false }") == "response_cache (line 2)");
  CHECK(ignored_in("dynamic_batching { preserve_ordering: true }") == "dynamic_batching.preserve_ordering (line 1)");
  CHECK(ignored_in("instance_group { count: 1 kind: KIND_MODEL }") == "instance_group.kind (line 1)");
  // Clients get these.
  CHECK(ignored_in("parameters { key: 'p' value { string_value: 'v' } }").empty());
  CHECK(ignored_in("metric_tags { key: 'team' value: 'vision' }").empty());
  CHECK(ignored_in("from_the_future { a: 1 }") == "from_the_future (line 1)");
  CHECK(ignored_in("default_model_filename: 'x.pt'") ==
        "default_model_filename (line 1): a version's package is model.pt2");
  CHECK(ignored_in("input { name: 'x' reshape { shape: [] } allow_ragged_batch: true }") ==
        "input.allow_ragged_batch (line 1)");
}

TEST_CASE("config.pbtxt: what is wrong is refused, with its line") {
  const auto refusal = [](std::string_view text) { return error_from([&] { read(text); }); };
  CHECK(refusal("max_batch_size: 'x'") == "line 1: max_batch_size: expected a number or a name without quotes");
  CHECK(refusal("max_batch_size: 1.5") == "line 1: max_batch_size: expected a whole number, got '1.5'");
  CHECK(refusal("max_batch_size: -1") == "line 1: max_batch_size: expected a number of 0 or more, got -1");
  CHECK(refusal("max_batch_size: 99999999999999999999") ==
        "line 1: max_batch_size: expected a whole number, got '99999999999999999999'");
  CHECK(refusal("input { dims: 1 }") == "line 1: input: it has no name");
  CHECK(refusal("input { name: 'x' dims: -2 }") == "line 1: dims: a size of -1, 0 or more is needed, got -2");
  CHECK(refusal("input { name: 'x' data_type: FP32 }") ==
        "line 1: data_type: expected a data type such as TYPE_FP32, got 'FP32'");
  CHECK(refusal("instance_group: 3") == "line 1: instance_group: expected a message in braces");
  CHECK(refusal("parameters { key: 'p' }") == "line 1: parameters: 'p' has no value");
  CHECK(refusal("version_policy { specific { } }") == "line 1: specific: it names no version");
  CHECK(refusal("dynamic_batching { default_queue_policy { timeout_action: LATER } }") ==
        "line 1: timeout_action: expected REJECT or DELAY, got 'LATER'");
  CHECK(refusal("model_warmup { inputs { key: 'x' value { data_type: TYPE_FP32 } } }") ==
        "line 1: inputs: 'x' has none of zero_data, random_data and input_data_file");
  for (const char* file : {"/etc/passwd", "../x", "a/../../x", "a\\0b"})
    CHECK(refusal(std::string("model_warmup { inputs { key: 'x' value { input_data_file: '") + file + "' } } }")
              .starts_with("line 1: input_data_file: expected a file below /models/m/warmup, got '"));
}

}  // namespace sconce::server::scheduling
