#include "package_format/weights_index.h"

#include <doctest/doctest.h>

#include "package_format/archive/archive_reader.h"
#include "sconce/error.h"
#include "tests/package_format/fixtures.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

struct Opened {
  TempFolder folder;
  std::shared_ptr<const Package> package;
  WeightsIndex index() const { return locate_weights(*package, package->model()); }
};

std::unique_ptr<Opened> open(const RawZip& zip) {
  auto opened = std::make_unique<Opened>();
  opened->package = Package::open(opened->folder.write("net.pt2", build(zip)));
  return opened;
}

std::string content(uint8_t from, size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(from + i);
  return bytes;
}

std::string text_of(const WeightLocation& location) {
  return std::string(reinterpret_cast<const char*>(location.data), location.bytes);
}

// All 256 bytes 0, 1, 2... in the order of the stored constants.
void check_all(const Opened& opened) {
  const WeightsIndex index = opened.index();
  REQUIRE(index.locations.size() == 3);
  CHECK(index.locations[0].constant == 0);
  CHECK(text_of(index.locations[0]) == content(0, 128));
  CHECK(index.locations[1].constant == 1);
  CHECK(text_of(index.locations[1]) == content(128, 64));
  CHECK(index.locations[2].constant == 3);  // the folded one is stored nowhere
  CHECK(text_of(index.locations[2]) == content(192, 64));
}

const std::string kFolder = "net/data/aotinductor/model/";

}  // namespace

TEST_CASE("weights: embedded in the library") {
  const auto opened = open(package(fixture("model_2_15"), fixture_source()));
  const ModelSpec& model = opened->package->model();
  CHECK(model.weights_form == WeightsForm::kEmbedded);
  CHECK(model.weights_bytes == 256);
  CHECK(!model.constants[3].mutated);
  check_all(*opened);
}

TEST_CASE("weights: whether they are aligned depends on where the archive has the library") {
  for (const bool aligned : {true, false}) {
    RawZip zip = package(fixture("model_2_15"), fixture_source());
    for (RawMember& member : zip.members)
      if (member.name.ends_with(".so")) {
        // Its data begin behind all that is before it, its header and the padding.
        std::string before = build({{zip.members.begin(), zip.members.begin() + (&member - zip.members.data())}});
        const size_t at = before.find(u32(0x02014b50)) + 30 + member.name.size() + 4;
        const size_t padding = (64 - at % 64) % 64 + (aligned ? 0 : 3);
        member.local_extra = "FB" + u16(padding) + std::string(padding, 'Z');
      }
    const auto opened = open(zip);
    CHECK(opened->index().aligned == aligned);
    check_all(*opened);
  }
}

TEST_CASE("weights: embedded where the model may write them") {
  const auto opened =
      open(package(fixture("model_writable"), fixture_source(true, "    cpp_fused_0((float*)(n.data_ptr()));\n")));
  CHECK(opened->package->model().constants[3].mutated);
  CHECK(!opened->package->model().constants[0].mutated);
  check_all(*opened);
}

TEST_CASE("weights: without a source, where the library has its place for weights tells whether runs may write them") {
  const TempFolder folder;
  const auto may_write = [&](const std::string& so) {
    return Package::open(folder.write("bare.so", so))->model().may_write_constants;
  };
  for (const char* name : {"model_2_6", "model_2_7", "model_2_8", "model_2_10", "model_2_13", "model_2_15"})
    CHECK(!may_write(fixture(name)));
  CHECK(!may_write(appended_fixture()));
  CHECK(may_write(fixture("model_writable")));
  // Without such a place nobody knows.
  std::string without = fixture("model_2_15");
  const std::string symbol = "_binary_constants_bin_start";
  for (size_t at = 0; (at = without.find(symbol, at)) != std::string::npos; ++at) without[at] = '.';
  CHECK(may_write(without));
  // A package says the same, whether its weights are in the library or elsewhere.
  const std::string blob = kFolder + "x.wrapper_weights.blob";
  CHECK(!open(package(fixture("model_2_15"), ""))->package->model().may_write_constants);
  CHECK(!open(package(fixture("model_2_15"), "", {{blob, content(0, 256)}}))->package->model().may_write_constants);
  CHECK(open(package(fixture("model_writable"), "", {{blob, content(0, 256)}}))->package->model().may_write_constants);
}

TEST_CASE("weights: appended to the library") {
  const auto opened = open(package(appended_fixture(), fixture_source()));
  CHECK(opened->package->model().weights_form == WeightsForm::kAppended);
  CHECK(opened->package->model().weights_bytes == 256);
  check_all(*opened);
  // Without the magic at its end the library is cut off, and 16 bytes are no weights.
  std::string cut = appended_fixture();
  cut.resize(cut.size() - 1);
  const auto damaged = open(package(cut, fixture_source()));
  CHECK_THROWS_WITH_AS(damaged->index(), doctest::Contains("16 and 256 bytes"), Error);
}

TEST_CASE("weights: a binary blob") {
  const auto opened = open(
      package(fixture("model_2_15"), fixture_source(false), {{kFolder + "x.wrapper_weights.blob", content(0, 256)}}));
  CHECK(opened->package->model().weights_form == WeightsForm::kBlob);
  check_all(*opened);
  for (const size_t size : {255u, 257u, 0u}) {
    const auto wrong = open(package(fixture("model_2_15"), fixture_source(false),
                                    {{kFolder + "x.wrapper_weights.blob", content(0, size)}}));
    CHECK_THROWS_WITH_AS(wrong->index(), doctest::Contains("not as long as the constants: net/data"), Error);
  }
}

TEST_CASE("weights: pickled files") {
  const std::string pickle = "ctorch._utils\n_rebuild_tensor_v2\n.";
  const auto saved = [&](const std::string& bytes) {
    return build({{{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}, {"archive/data/0", bytes}}});
  };
  const std::string config = R"({"l.w": ["weight_0", [4, 5], [5, 1], 2], "l.b": ["weight_1", [3], [1], 0],
                                 "n": ["weight_0", [16], [1], 6]})";
  const auto with = [&](const std::string& text, const std::string& first = content(7, 88)) {
    return open(package(fixture("model_2_15"), fixture_source(false),
                        {{kFolder + "weights_config.json", text},
                         {"net/data/weights/weight_0", saved(first)},
                         {"net/data/weights/weight_1", saved(content(50, 24))}}));
  };
  const auto opened = with(config);
  CHECK(opened->package->model().weights_form == WeightsForm::kFiles);
  const WeightsIndex index = opened->index();
  REQUIRE(index.locations.size() == 3);
  CHECK(text_of(index.locations[0]) == content(7, 88));
  CHECK(index.locations[0].offset == 2);
  CHECK(text_of(index.locations[1]) == content(50, 24));
  CHECK(index.locations[2].data == index.locations[0].data);  // two constants share one storage
  CHECK(index.locations[2].offset == 6);

  CHECK_THROWS_WITH_AS(with(config, content(0, 87))->index(), doctest::Contains("does not fit its file: l.w"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"l.w": ["weight_0", [4, 5], [5, 1], 2]})")->index(),
                       doctest::Contains("has no file: l.b"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"l.w": ["weight_0", [5, 4], [4, 1], 2]})")->index(),
                       doctest::Contains("does not fit the source: l.w"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"l.w": ["weight_9", [4, 5], [5, 1], 2]})")->index(),
                       doctest::Contains("file is missing: l.w"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"l.w": ["weight_0", [4, 5], [5, 1], -1]})")->index(),
                       doctest::Contains("does not fit its file: l.w"), Error);
  CHECK_THROWS_WITH_AS(with("[]")->index(), doctest::Contains("not a JSON object"), Error);
}

TEST_CASE("weights: raw files of the ExportedProgram beside the model") {
  const auto entry = [](const char* file, const char* sizes, const char* strides, const char* offset) {
    return std::string(R"({"path_name": ")") + file +
           R"(", "is_param": true, "use_pickle": false, "tensor_meta": {"sizes": )" + sizes + R"(, "strides": )" +
           strides + R"(, "storage_offset": )" + offset + "}}";
  };
  const std::string w =
      entry("weight_0", R"([{"as_int": 4}, {"as_int": 5}])", R"([{"as_int": 5}, {"as_int": 1}])", R"({"as_int": 0})");
  const std::string b = entry("weight_1", R"([{"as_int": 3}])", R"([{"as_int": 1}])", R"({"as_int": 0})");
  const std::string n = entry("tensor_0", R"([{"as_int": 16}])", R"([{"as_int": 1}])", R"({"as_int": 0})");
  const auto with = [&](const std::string& weights) {
    return open(package(fixture("model_2_15"), fixture_source(false),
                        {{"net/data/weights/model_weights_config.json", R"({"config": {)" + weights + "}}"},
                         {"net/data/constants/model_constants_config.json", R"({"config": {"n": )" + n + "}}"},
                         {"net/data/weights/weight_0", content(0, 80)},
                         {"net/data/weights/weight_1", content(1, 24)},
                         {"net/data/constants/tensor_0", content(2, 64)}}));
  };
  const auto opened = with(R"("l.w": )" + w + R"(, "l.b": )" + b + R"(, "inlined": )" + b);
  CHECK(opened->package->model().weights_form == WeightsForm::kFiles);
  const WeightsIndex index = opened->index();
  REQUIRE(index.locations.size() == 3);
  CHECK(text_of(index.locations[0]) == content(0, 80));
  CHECK(text_of(index.locations[2]) == content(2, 64));
  // One that is not there leaves the weights to the user.
  CHECK(with(R"("l.w": )" + w)->package->model().weights_form == WeightsForm::kUserProvided);
  CHECK_THROWS_WITH_AS(with(R"("l.w": )" + b + R"(, "l.b": )" + b)->index(),
                       doctest::Contains("does not fit the source: l.w"), Error);
}

TEST_CASE("weights: none, left to the user, and unknown") {
  const auto user = open(package(fixture("model_2_15"), fixture_source(false)));
  CHECK(user->package->model().weights_form == WeightsForm::kUserProvided);
  CHECK(user->index().locations.empty());
  const std::string no_constants = constructor(15, {}, 1, {}, specs(0)) + run_impl("");
  const auto none = open(package(fixture("model_2_15"), no_constants));
  CHECK(none->package->model().weights_form == WeightsForm::kNone);
  CHECK(none->index().locations.empty());
  const auto stripped = open(package(fixture("model_2_15"), ""));
  CHECK(stripped->package->model().weights_form == WeightsForm::kEmbedded);
  CHECK(stripped->package->model().weights_bytes == 256);
  CHECK_THROWS_WITH_AS(stripped->index(), doctest::Contains("no generated source"), Error);
}

TEST_CASE("weights: constants that do not add up") {
  std::vector<SourceConstant> constants = fixture_constants();
  constants[0].data_size = 64;
  auto opened = open(package(fixture("model_2_15"), constructor(15, {}, 1, constants, specs(0)) + run_impl("")));
  CHECK_THROWS_WITH_AS(opened->index(), doctest::Contains("256 and 192 bytes"), Error);
  constants[0].data_size = constants[1].data_size = constants[3].data_size = INT64_MAX;
  CHECK_THROWS_WITH_AS(
      open(package(fixture("model_2_15"), constructor(15, {}, 1, constants, specs(0)) + run_impl("")))->index(),
      doctest::Contains("lies about its size"), Error);
}
