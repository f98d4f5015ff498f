#include "server/scheduling/batching/batch_policy.h"

#include "doctest/doctest.h"
#include "sconce/error.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {
namespace {

ModelSignature tried(ModelSpec spec) {
  ModelSignature interface("m", 1, std::move(spec));
  interface.spec.rows = {.by = RowProof::By::kSource};
  return interface;
}
ModelSignature model(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  return tried(model_spec(std::move(inputs), std::move(outputs)));
}

TensorSpec rows(std::string name, std::vector<Dim> dims = {variable_dim("s0"), fixed_dim(3)},
                std::vector<std::optional<int64_t>> strides = {}) {
  return tensor_spec(std::move(name), DType::kFloat32, std::move(dims), std::move(strides));
}

ModelConfig with(std::string setting = "m.batching=auto") {
  ServerConfig config;
  config.set_model(setting, "test");
  return config.model("m");
}

BatchPolicy policy(const ModelSignature& interface, std::string setting = "m.batching=auto") {
  return batch_policy(interface, with(std::move(setting)));
}

}  // namespace

TEST_CASE("batch policy: the signature alone is enough") {
  const BatchPolicy p = policy(model({rows("a"), rows("b")}, {rows("c"), rows("d", {variable_dim("s0")})}));
  CHECK(p.alone == "");
  CHECK(p.max_rows == 64);
  CHECK(p.most_rows == INT64_MAX);
  CHECK_FALSE(p.delay.has_value());
}

TEST_CASE("batch policy: the package's own bound, and settings that narrow it") {
  const auto bounded = [] {
    return model({rows("a", {variable_dim("s0", 2, 15), fixed_dim(8)})}, {rows("c", {variable_dim("s0", 2, 15)})});
  };
  CHECK(policy(bounded()).max_rows == 15);
  CHECK(policy(bounded(), "m.max_batch_size=4").max_rows == 4);
  CHECK(policy(bounded(), "m.max_batch_size=4").most_rows == 4);
  CHECK(policy(bounded(), "m.max_batch_size=400").max_rows == 15);
  CHECK(policy(bounded(), "m.preferred_batch_sizes=32, 8,2").preferred == std::vector<int64_t>{2, 8});
  CHECK(policy(model({rows("a")}, {rows("c")}), "m.preferred_batch_sizes=128").max_rows == 128);
  CHECK(policy(model({rows("a")}, {rows("c")}), "m.max_batch_size=1").alone == "setting max_batch_size is 1");
}

TEST_CASE("batch policy: why requests run one by one") {
  const auto alone = [](std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
    const BatchPolicy p = policy(model(std::move(inputs), std::move(outputs)));
    CHECK(p.max_rows == 1);
    return p.alone;
  };
  CHECK(alone({rows("a"), rows("b", {variable_dim("s1"), fixed_dim(3)})}, {rows("c")}) ==
        "its inputs share no variable first dimension");
  CHECK(alone({rows("a"), rows("b", {fixed_dim(3)})}, {rows("c")}) == "its inputs share no variable first dimension");
  CHECK(alone({rows("a"), rows("b", {})}, {rows("c")}) == "its inputs share no variable first dimension");
  CHECK(alone({}, {rows("c")}) == "its inputs share no variable first dimension");
  CHECK(alone({rows("a")}, {rows("c", {fixed_dim(3)})}) ==
        "output 'RESULT' does not have a row for each of the inputs");
  CHECK(alone({rows("a")}, {rows("c"), rows("d", {})}) ==
        "output 'RESULT[1]' does not have a row for each of the inputs");
  CHECK(alone({rows("a")}, {rows("c", {variable_dim("2*s0")})}) ==
        "output 'RESULT' does not have a row for each of the inputs");
  CHECK(alone({rows("a")}, {rows("c", {variable_dim("")})}) ==
        "output 'RESULT' does not have a row for each of the inputs");
  TensorSpec unknown;
  unknown.name = "c";
  CHECK(alone({rows("a")}, {unknown}) == "the package does not record the shape of output 'RESULT'");
  CHECK(alone({rows("a", {variable_dim("s0"), fixed_dim(3)}, {1, std::nullopt})}, {rows("c")}) ==
        "rows of input 'ARGS[0]' are not stored one after the other");
  CHECK(alone({rows("a", {variable_dim("s0"), fixed_dim(3)}, {1, 8})}, {rows("c")}) ==
        "rows of input 'ARGS[0]' are not stored one after the other");
  CHECK(alone({rows("a", {variable_dim("s0"), variable_dim("s0")})}, {rows("c")}) ==
        "input 'ARGS[0]' has the batch in another dimension, too");
  CHECK(alone({rows("a")}, {rows("c", {variable_dim("s0"), variable_dim("2*s0 + 1")})}) ==
        "output 'RESULT' has the batch in another dimension, too");
  CHECK(policy(model({rows("a")}, {rows("c", {variable_dim("s0"), variable_dim("s01")})})).alone == "");
  CHECK(policy(model({rows("a")}, {rows("c")}), "m.batching=off").alone == "setting batching is off");
}

TEST_CASE("batch policy: a model that writes its buffers, and one with an output that is None") {
  ModelSpec spec = model_spec({rows("a")}, {rows("c")});
  ConstantSpec state;
  state.mutated = true;
  spec.constants.push_back(state);
  CHECK(policy(tried(spec)).alone == "the model writes its buffers");
  TensorSpec none;
  none.none = true;
  CHECK(policy(model({rows("a")}, {rows("c"), none})).alone == "");
}

TEST_CASE("batch policy: what two runs showed counts where the package is silent") {
  TensorSpec unknown;
  unknown.name = "c";
  ModelSignature observed = model({rows("a")}, {unknown});
  const auto runs = [](int64_t first, int64_t second) {
    const auto run = [](int64_t batch, int64_t size) {
      return OutputProbe::Run{.batch = batch,
                              .outputs = {{.none = false, .dtype = DType::kFloat32, .sizes = {size, 4}}}};
    };
    return OutputProbe{run(1, first), run(2, second)};
  };
  observed.observe_outputs(runs(1, 2));
  CHECK(policy(observed).alone == "");
  ModelSignature other = model({rows("a")}, {unknown});
  other.observe_outputs(runs(5, 5));
  CHECK_FALSE(policy(other).alone.empty());
}

TEST_CASE("batch policy: without a proof, rows are not taken for independent") {
  ModelSignature unknown = model({rows("a")}, {rows("c")});
  CHECK(policy(unknown).rows.by == RowSharing::By::kSource);
  unknown.spec.rows = {.reason = "a reason"};
  CHECK(policy(unknown).alone == "it is not proved that rows do not influence each other: a reason");
  CHECK(policy(unknown).rows.by == RowSharing::By::kNothing);
  CHECK(policy(unknown).max_rows == 1);
  CHECK(rows_to_try(unknown, with("m.batching=auto")) == 1);
  CHECK(policy(unknown, "m.batching=on").alone == "");
  CHECK(policy(unknown, "m.batching=on").rows.by == RowSharing::By::kSetting);
  CHECK(policy(unknown, "m.batching=on").max_rows == 64);
  CHECK(policy(unknown, "m.batching=off").alone == "setting batching is off");
}

TEST_CASE("batch policy: two requests of the fewest rows must fit into a run") {
  const auto wide = [](int64_t least, int64_t most) {
    return model({rows("a", {variable_dim("s0", least, most), fixed_dim(8)})},
                 {rows("c", {variable_dim("s0", least, most)})});
  };
  const std::string narrow = "two requests of the fewest rows are more than a run may have";
  CHECK(policy(wide(4, 7)).alone == narrow);
  CHECK(rows_to_try(wide(4, 7), with("m.batching=auto")) == 1);
  CHECK(policy(wide(4, 8)).alone == "");
  CHECK(policy(wide(4, 64), "m.max_batch_size=7").alone == narrow);
}

TEST_CASE("batch policy: a trial that saw rows meet, and one that could not tell") {
  ModelSignature met = model({rows("a")}, {rows("c")});
  met.row_finding = {.kind = InvarianceFinding::Kind::kDiffers, .reason = "what a try showed"};
  CHECK(policy(met).alone == "what a try showed");
  CHECK(policy(met).max_rows == 1);
  CHECK(policy(met).rows.contradicted);
  CHECK(policy(met, "m.batching=on").alone == "");
  met.row_finding.kind = InvarianceFinding::Kind::kUnknown;
  CHECK(policy(met).alone == "");
  CHECK(policy(met).max_rows == 64);
}

TEST_CASE("batch policy: what is tried is what requests would share") {
  const auto to_try = [](const ModelSignature& interface, std::string setting) {
    return rows_to_try(interface, with(std::move(setting)));
  };
  const ModelSignature m = model({rows("a")}, {rows("c")});
  CHECK(to_try(m, "m.batching=auto") == 64);
  CHECK(to_try(m, "m.max_batch_size=3") == 3);
  CHECK(to_try(m, "m.max_batch_size=1") == 1);
  CHECK(to_try(m, "m.preferred_batch_sizes=100") == 100);
  CHECK(to_try(m, "m.batching=on") == 1);
  CHECK(to_try(m, "m.batching=off") == 1);
  CHECK(to_try(model({rows("a")}, {rows("c", {fixed_dim(3)})}), "m.batching=auto") == 1);
  CHECK(to_try(model({rows("a", {variable_dim("s0", 1, 2)})}, {rows("c", {variable_dim("s0", 1, 2)})}),
               "m.batching=auto") == 2);
}

TEST_CASE("batch policy: priorities, timeouts and the queue") {
  const ModelSignature m = model({rows("a")}, {rows("c")});
  CHECK(policy(m, "m.priority_levels=5").default_priority == 3);
  CHECK(policy(m, "m.queue=7").queue == 7);
  CHECK(policy(m, "m.queue_timeout=3ms").timeout == std::chrono::milliseconds(3));
  CHECK(policy(m, "m.timeout_action=delay").reject_late == false);
  CHECK(policy(m, "m.batch_delay=100us").delay == std::chrono::microseconds(100));
  CHECK(policy(m, "m.batch_delay=0").delay == std::chrono::microseconds(0));
  CHECK_THROWS_WITH(policy(m, "m.priority_levels=2000"),
                    "setting priority_levels of model 'm' must be 1000 or less, got 2000");
  ServerConfig config;
  config.set_model("m.priority_levels=2", "test");
  config.set_model("m.default_priority=3", "test");
  CHECK_THROWS_WITH(batch_policy(m, config.model("m")),
                    "setting default_priority of model 'm' is more than priority_levels: 3 of 2");
  CHECK_THROWS_AS(with("m.preferred_batch_sizes=0"), Error);
  CHECK_THROWS_AS(with("m.batching=perhaps"), Error);
}

}  // namespace sconce::server::scheduling
