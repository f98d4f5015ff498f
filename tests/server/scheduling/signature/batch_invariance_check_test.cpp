// packages/batching.tar.xz, loaded as the control thread loads them; make_batching_packages.py says what each computes.
#include "server/scheduling/signature/batch_invariance_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "doctest/doctest.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/signature/probe_rows.h"

namespace sconce::server::scheduling {
namespace {

const std::string kFolder = SCONCE_BATCHING_PACKAGES;
const std::string kMixed = "a try showed that a row's outputs depend on the other rows";
const std::string kPlaced = "a try showed that a row's outputs depend on its place or on the number of rows";

// The reason why requests run one by one; "" if they share runs. `proof`: as the package's source shows; else as if it
// were proved that they may, so that the trial decides.
std::string alone(const std::string& model, bool proof, const std::string& setting = "m.batching=auto",
                  RowEffort effort = RowEffort::kFull) {
  ServerConfig config;
  config.set_model(setting, "test");
  const std::shared_ptr<Model> loaded = Model::load(Package::open(kFolder + "/" + model + ".pt2"));
  ModelSignature interface("m", 1, loaded->info().spec);
  if (!proof) interface.spec.rows = {.by = RowProof::By::kSource};
  const int64_t rows = rows_to_try(interface, config.model("m"));
  if (rows > 1) interface.row_finding = try_rows(*loaded, interface, rows, effort);
  const BatchPolicy policy = batch_policy(interface, config.model("m"));
  CHECK(policy.alone.empty() == (policy.max_rows > 1));
  return policy.alone;
}

void check_mixed(const std::string& model, const std::string& setting = "m.batching=auto") {
  CAPTURE(model);
  CHECK(alone(model, false, setting) == kMixed);
  // With one neighbour only, a row that depends on its neighbour looks like one that depends on its own place.
  const std::string few = alone(model, false, setting, RowEffort::kFew);
  CHECK((few == kMixed || few == kPlaced));
  CHECK_FALSE(alone(model, true).empty());
}

void check_joined(const std::string& model) {
  CAPTURE(model);
  CHECK(alone(model, true).starts_with("it is not proved that rows do not influence each other: "));
}

void check_shared(const std::string& model, const std::string& setting = "m.batching=auto") {
  CAPTURE(model);
  for (const RowEffort effort : {RowEffort::kFull, RowEffort::kFew}) CHECK(alone(model, true, setting, effort) == "");
}

}  // namespace

TEST_CASE("row trial: activations quantised by the largest of all rows, 16, 64 and 512 columns") {
  for (const char* model : {"dynamic_int8_16", "dynamic_int8_64", "dynamic_int8_512", "dynamic_int8_bfloat16"}) {
    check_mixed(model);
    check_joined(model);
  }
}

TEST_CASE("row trial: two rows are enough to be tried, and to share a run") {
  for (const char* most : {"m.max_batch_size=2", "m.max_batch_size=3"}) {
    check_mixed("dynamic_int8_64", most);
    check_mixed("flip_batch", most);
    check_mixed("cumsum_batch", most);
    check_shared("mlp", most);
    check_shared("attention", most);
    CHECK(alone("position", false, most) == kPlaced);
  }
}

TEST_CASE("row trial: batch normalisation in training mode") {
  check_mixed("batch_norm_training");
  check_joined("batch_norm_training");
  check_mixed("minus_mean");
}

TEST_CASE("row trial: a condition on all rows") {
  check_mixed("cond_sum");
  check_joined("cond_sum");
  check_mixed("where_sum");
  check_joined("where_far_sum");  // the values of made-up rows are too small to show the dependency
}

TEST_CASE("row trial: top-k, sort and argsort over the batch") {
  for (const char* model : {"topk_batch", "sort_batch", "argsort_batch"}) check_mixed(model);
}

TEST_CASE("row trial: softmax and cumsum over the batch") {
  check_mixed("softmax_batch");
  check_mixed("cumsum_batch");
}

TEST_CASE("row trial: rows in another order, and rows that look at one of them") {
  check_mixed("flip_batch");
  check_mixed("first_row");
}

TEST_CASE("row trial: answers by position and by the number of rows") {
  for (const char* model : {"position", "position_integer", "count"}) {
    CAPTURE(model);
    for (const RowEffort effort : {RowEffort::kFull, RowEffort::kFew})
      CHECK(alone(model, false, "m.batching=auto", effort) == kPlaced);
    check_joined(model);
  }
}

TEST_CASE("row trial: NaN and infinity of a neighbour") {
  check_mixed("where_any_nan");
  check_mixed("nothing_of_the_sum");
}

TEST_CASE("row trial: rows of integers") { check_mixed("tokens_mean"); }

TEST_CASE("row trial: a trial that cannot tell is no counterexample, and a proof stands") {
  const std::string unknown = "it is not known whether rows influence each other: ";
  for (const RowEffort effort : {RowEffort::kFull, RowEffort::kFew}) {
    const auto reason = [&](const char* name) {
      const std::shared_ptr<Model> model = Model::load(Package::open(kFolder + "/" + name + ".pt2"));
      const InvarianceFinding found = try_rows(*model, ModelSignature("m", 1, model->info().spec), 64, effort);
      CHECK(found.kind == InvarianceFinding::Kind::kUnknown);
      CHECK(alone(name, false, "m.batching=auto", effort) == "");
      return found.reason;
    };
    CHECK(reason("noise") == unknown + "it does not answer the same twice");
    CHECK(reason("always_the_same") == unknown + "it answers the same to all made-up inputs");
  }
}

TEST_CASE("row trial: of inputs that are too large or not described nothing is known") {
  const std::shared_ptr<Model> loaded = Model::load(Package::open(kFolder + "/mlp.pt2"));
  const auto reason = [&](auto&& change) {
    ModelSpec spec = loaded->info().spec;
    change(spec.inputs[0]);
    const ModelSignature interface("m", 1, spec);
    const InvarianceFinding found = try_rows(*loaded, interface, 64);
    CHECK(found.kind == InvarianceFinding::Kind::kUnknown);
    return found.reason;
  };
  const std::string input =
      "it is not known whether rows influence each other: it does not run on made-up inputs: "
      "input '";
  CHECK(reason([](TensorSpec& x) { x.dims[1] = {1 << 25, 1 << 25, {}}; }).starts_with(input));
  CHECK(reason([](TensorSpec& x) { x.dims[1] = {1 << 25, 1 << 25, {}}; }).ends_with("' is too large to be made up"));
  CHECK(reason([](TensorSpec& x) { x.dtype.reset(); }).ends_with("' is not described in full"));
  CHECK(reason([](TensorSpec& x) { x.strides.clear(); }).ends_with("' is not described in full"));
  CHECK(reason([](TensorSpec& x) { x.dtype = DType::kFloat4E2M1FNx2; }).find("nothing can be made up for input '") !=
        std::string::npos);
}

TEST_CASE("row trial: floats that become indices of a small table are made up within its bounds") {
  check_shared("float_indices");
}

TEST_CASE("row trial: the user's own word decides") {
  CHECK(alone("dynamic_int8_64", true, "m.batching=on") == "");
  CHECK(alone("mlp", true, "m.batching=off") == "setting batching is off");
  CHECK(alone("mlp", true, "m.max_batch_size=1") == "setting max_batch_size is 1");
}

TEST_CASE("row trial: rows of perceptrons and convolutions are independent") {
  for (const char* model : {"mlp", "mlp_bfloat16", "mlp_double", "convnet", "convnet_any_size", "image_bytes"})
    check_shared(model);
}

TEST_CASE("row trial: rows of attention, of layer norms and of recurrent networks are independent") {
  for (const char* model : {"attention", "attention_bfloat16", "encoder", "layer_norm", "lstm"}) check_shared(model);
}

TEST_CASE("row trial: rows of statically quantised models and of those with a scale for each row are independent") {
  check_shared("static_int8");
  check_shared("per_row_int8");
}

TEST_CASE("row trial: classes, top-k and sort within a row are independent") {
  for (const char* model : {"classes", "sort_columns", "sine"}) check_shared(model);
}

TEST_CASE("row trial: every model of the archive has the verdict that its list gives it") {
  std::set<std::string> share;
  std::ifstream list(kFolder + "/may_share.txt");
  for (std::string name; std::getline(list, name);) share.insert(name);
  CHECK(share.size() > 10);
  size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".pt2") continue;
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    for (const RowEffort effort : {RowEffort::kFull, RowEffort::kFew})
      CHECK(alone(name, true, "m.batching=auto", effort).empty() == share.contains(name));
    ++models;
  }
  CHECK(models > 2 * share.size());
}

TEST_CASE("row trial: made-up rows are the same wherever they stand") {
  const RowStyle style{.unit = 0x1p-23};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64, DType::kBool, DType::kComplex64}) {
    for (const RowKind kind : {RowKind::kOrdinary, RowKind::kSmall, RowKind::kConstant, RowKind::kZeros,
                               RowKind::kLargeUp, RowKind::kLargeDown, RowKind::kNotANumber, RowKind::kInfinite}) {
      const Tensor tensor = Tensor::empty(std::array<int64_t, 2>{3, 40}, dtype);
      for (const int64_t first : {0, 2}) CHECK(fill_rows(tensor, 0, first, 1, {.kind = kind, .seed = 7}, style, {}));
      CHECK(fill_rows(tensor, 0, 1, 1, {.kind = RowKind::kOrdinary, .seed = 8}, style, {}));
      const size_t bytes = 40 * tensor.itemsize();
      const auto* data = static_cast<const std::byte*>(tensor.data());
      CHECK(std::equal(data, data + bytes, data + 2 * bytes));
      CHECK_FALSE(std::equal(data, data + bytes, data + bytes));
    }
  }
}

}  // namespace sconce::server::scheduling
