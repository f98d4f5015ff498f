#include "sconce/package.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "package_format/archive/archive_reader.h"
#include "sconce/error.h"
#include "tests/package_format/fixtures.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

std::shared_ptr<const Package> open(const TempFolder& folder, const RawZip& zip, const char* name = "net.pt2") {
  return Package::open(folder.write(name, build(zip)));
}

void refused(const RawZip& zip, ErrorCode code, const char* reason) {
  const TempFolder folder;
  try {
    open(folder, zip);
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
    CHECK_MESSAGE(std::string(error.what()).find(reason) != std::string::npos, error.what());
    // Which file it is, once.
    const std::string text = error.what(), path = (folder.path() / "net.pt2").native();
    CHECK_MESSAGE(text.find(path) != std::string::npos, text);
    CHECK_MESSAGE(text.find(path) == text.rfind(path), text);
    return;
  }
  FAIL("accepted, but expected: " << reason);
}

const std::string kFolder = "net/data/aotinductor/model/";

}  // namespace

TEST_CASE("package: all that it says about its model") {
  const TempFolder folder;
  const auto package = open(
      folder, testing::package(
                  fixture("model_2_15"), fixture_source(),
                  {{kFolder + "x.wrapper.json", R"({"nodes": [{"name": "b", "node": {"target": "aten::mm"}}]})"}}));
  REQUIRE(package->models().size() == 1);
  const ModelSpec& model = package->model();
  CHECK(model.name == "model");
  CHECK(model.device_key == "cpu");
  CHECK(model.platform == "linux");
  CHECK(model.machine == "x86_64");
  CHECK(model.cpu_isa == "AVX2");
  CHECK(model.compute_capability.empty());
  CHECK(model.metadata.at("owner") == "me");
  CHECK(model.march == "x86-64-v3");
  CHECK(model.threads == 6);
  CHECK(model.has_source);
  CHECK(model.so_member == "data/aotinductor/model/x.wrapper.so");
  CHECK(model.so_bytes == fixture("model_2_15").size());
  CHECK(model.imports == std::vector<std::string>{"aoti_torch_cpu_mm_out", "aoti_torch_get_dtype"});
  CHECK(model.proxy_targets == std::vector<std::string>{"aten::mm"});
  CHECK(model.call_spec.known);
  CHECK(model.call_spec.input_leaf == std::vector<size_t>{0});
  CHECK(model.inputs[0].dtype == DType::kFloat32);
  CHECK(model.inputs[0].device == Device{});  // a CPU package
  CHECK(model.inputs[0].dims[0].min == 2);
  CHECK(model.constants.size() == 4);
  CHECK(package->producer() == "torch 2.15 or later");
  package->verify();
}

TEST_CASE("package: its members, and the progress of their check") {
  const TempFolder folder;
  const auto package = open(folder, testing::package(fixture("model_2_15"), fixture_source()));
  const std::vector<PackageMember> members = package->members();
  REQUIRE(members.size() == package->archive().members().size());
  uint64_t all = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    CHECK(members[i].name == package->archive().members()[i].name);
    CHECK(members[i].bytes == package->archive().members()[i].size);
    all += members[i].bytes;
  }
  std::vector<uint64_t> said;
  package->verify([&](uint64_t done, uint64_t total) {
    CHECK(total == all);
    said.push_back(done);
  });
  REQUIRE(said.size() >= members.size());
  CHECK(std::is_sorted(said.begin(), said.end()));
  CHECK(said.back() == all);
  CHECK_THROWS_AS(package->verify([](uint64_t, uint64_t) { throw Error(ErrorCode::kCancelled, "enough"); }), Error);
}

TEST_CASE("package: a stripped one still tells what its library tells") {
  const TempFolder folder;
  const auto package = open(folder, testing::package(fixture("model_2_15"), ""));
  const ModelSpec& model = package->model();
  CHECK(!model.has_source);
  CHECK(model.inputs.empty());
  CHECK(model.call_spec.known);
  CHECK(model.call_spec.args.leaves() == 1);
  CHECK(model.call_spec.input_leaf.empty());
  CHECK(model.imports.size() == 2);
  CHECK(model.march.empty());
}

TEST_CASE("package: a bare library and a directory") {
  const TempFolder folder;
  const auto bare = Package::open(folder.write("bare.so", fixture("model_2_7")));
  CHECK(bare->model().name == "model");
  CHECK(bare->model().device_key == "cpu");
  CHECK(bare->model().call_spec.known);
  CHECK(bare->producer() == "torch 2.7");
  for (const RawMember& member : testing::package(fixture("model_2_15"), fixture_source()).members)
    folder.write("dir/" + member.name, member.content);
  for (const char* path : {"dir", "dir/net"}) {
    const auto directory = Package::open(folder.path() / path);
    CHECK(directory->model().inputs.size() == 1);
    CHECK(directory->model().weights_form == WeightsForm::kEmbedded);
  }
}

TEST_CASE("package: several models, and one called so that its name is another one's prefix") {
  const TempFolder folder;
  RawZip zip = testing::package(fixture("model_2_15"), fixture_source());
  zip.members.push_back({"net/data/aotinductor/model_b/z.wrapper.so", fixture("model_2_15")});
  const auto package = open(folder, zip);
  REQUIRE(package->models().size() == 2);
  CHECK(package->model().name == "model");
  CHECK(package->model("model_b").so_member == "data/aotinductor/model_b/z.wrapper.so");
  CHECK(!package->model("model_b").has_source);
  CHECK_THROWS_WITH_AS(package->model("other"), doctest::Contains("it has: model, model_b"), Error);
}

TEST_CASE("package: torch 2.6 has one source with the kernels in it and no root folder") {
  const TempFolder folder;
  const std::string source =
      constructor(6, {"arg0_1"}, 1, {}, specs(1)) +
      run_impl("    auto arg0_1 = std::move(inputs[0]);\n    f((const float*)(arg0_1.data_ptr()));\n");
  const auto package =
      open(folder, {{{"version", "0"},
                     {"archive_format", "pt2"},
                     {"data/aotinductor/model/h.cpp", "#pragma omp parallel num_threads(3)\n" + source},
                     {"data/aotinductor/model/h_metadata.json", R"({"AOTI_DEVICE_KEY": "cpu"})"},
                     {"data/aotinductor/model/h.so", fixture("model_2_6")}}});
  CHECK(package->producer() == "torch 2.6");
  CHECK(package->model().threads == 3);
  CHECK(package->model().inputs[0].dtype == DType::kFloat32);
  CHECK(!package->model().inputs[0].has_shape);
}

TEST_CASE("package: kinds that are refused by name") {
  const std::string so = fixture("model_2_15");
  refused({{{"net/archive_format", "pt2"},
            {kFolder + "x.wrapper.cpp", ""},
            {kFolder + "x.wrapper_compile_flags.json", "{}"}}},
          ErrorCode::kUnsupported, "sources only");
  refused({{{"net/archive_format", "pt2"}, {kFolder + "readme", ""}}}, ErrorCode::kUnsupported,
          "no compiled library: model model");
  refused({{{"net/archive_format", "pt2"}, {"net/models/model.json", "{}"}}}, ErrorCode::kUnsupported,
          "ExportedProgram only");
  refused({{{"net/data.pkl", ""}, {"net/constants.pkl", ""}, {"net/code/__torch__/m.py", ""}}}, ErrorCode::kUnsupported,
          "TorchScript");
  refused({{{"archive/data.pkl", ""}, {"archive/data/0", ""}}}, ErrorCode::kUnsupported, "torch.save checkpoint");
  refused({{{"hello", "world"}}}, ErrorCode::kUnsupported, "not an AOTInductor package");
  refused({}, ErrorCode::kUnsupported, "not an AOTInductor package");
  refused(testing::package(so, "", {{kFolder + "launcher.so", so}}), ErrorCode::kUnsupported,
          "several libraries for one model");
  refused(testing::package(so, "", {{kFolder + "custom_objs_config.json", R"({"obj": "custom_obj_0"})"}}),
          ErrorCode::kUnsupported, "TorchBind objects");
  refused(testing::package(fixture("model_2_5"), ""), ErrorCode::kUnsupported, "before 2.6");
  const TempFolder folder;
  CHECK(open(folder, testing::package(so, "", {{kFolder + "custom_objs_config.json", "{}"}}))->models().size() ==
        1);  // torch 2.7
}

TEST_CASE("package: damaged members are named") {
  const std::string so = fixture("model_2_15");
  refused(testing::package("not a library", ""), ErrorCode::kCorruptPackage, "x.wrapper.so");
  for (const char* text : {"", "[", "[1]", "3"}) {
    refused(testing::package(so, "", {{kFolder + "custom_objs_config.json", text}}), ErrorCode::kCorruptPackage,
            "custom_objs_config.json");
    refused(testing::package(so, "", {{kFolder + "x.wrapper.json", text}}), ErrorCode::kCorruptPackage,
            "x.wrapper.json");
  }
  refused(testing::package(so, "", {{kFolder + "x.wrapper.json", R"({"nodes": [{"node": {}}]})"}}),
          ErrorCode::kCorruptPackage, "without a target");
  RawZip zip = testing::package(so, fixture_source());
  for (RawMember& member : zip.members) {
    if (member.name.ends_with("format") || member.name.ends_with("kernel.cpp")) continue;
    RawMember sound = member;
    member.crc_central = member.crc_local = 1;
    refused(zip, ErrorCode::kCorruptPackage, member.name.c_str());
    member = sound;
  }
}

TEST_CASE("package: a library that is mostly weights is checked by verify only") {
  const TempFolder folder;
  std::string so = fixture("model_appended");
  so.append((16384 - so.size() % 16384) % 16384, ' ');
  const size_t weights = 20 << 20;
  so.append(weights, 'w').append(u64(0x1122334455667788));
  // The placeholder's first number counts weights and magic.
  const std::string counted = u64(264);
  so.replace(so.find(counted + u64(0x1122334455667788)), 8, u64(weights + 8));
  RawZip zip = testing::package(
      so,
      constructor(15, {}, 1, {{"w", "w", "uint8", static_cast<int64_t>(weights), {1}, {1}}}, specs(0)) + run_impl(""));
  for (RawMember& member : zip.members)
    if (member.name.ends_with(".so")) member.crc_central = member.crc_local = 1;
  const auto package = open(folder, zip);
  CHECK(package->model().weights_form == WeightsForm::kAppended);
  CHECK(package->model().weights_bytes == weights);
  CHECK_THROWS_WITH_AS(package->verify(), doctest::Contains("x.wrapper.so"), Error);
}

TEST_CASE("package: packing a directory") {
  const TempFolder folder;
  for (const RawMember& member : testing::package(fixture("model_2_15"), fixture_source()).members)
    folder.write("dir/" + member.name, member.content);
  for (const char* source : {"dir", "dir/net"}) {
    const auto out = folder.path() / "my.model.pt2";
    pack_directory(folder.path() / source, out);
    const auto package = Package::open(out);
    package->verify();
    CHECK(package->archive().root() == "my.model/");
    CHECK(package->model().inputs.size() == 1);
    CHECK(package->archive().read_text(*package->archive().find("byteorder")) == "little");
    CHECK(package->archive().find(".data/serialization_id")->size == 40);
    CHECK(package->archive().find("archive_version") != nullptr);
  }
  CHECK_THROWS_AS(pack_directory(folder.path() / "absent", folder.path() / "x.pt2"), Error);
  CHECK_THROWS_AS(pack_directory(folder.path() / "my.model.pt2", folder.path() / "x.pt2"), Error);
  std::filesystem::create_directory(folder.path() / "none");
  CHECK_THROWS_WITH_AS(pack_directory(folder.path() / "none", folder.path() / "x.pt2"),
                       doctest::Contains("not an AOTInductor package"), Error);
  CHECK(!std::filesystem::exists(folder.path() / "x.pt2"));
}

TEST_CASE("package: bytes in memory say what the file says, and are not copied") {
  const TempFolder folder;
  for (const bool bare : {false, true}) {
    const std::string file =
        bare ? fixture("model_2_15") : build(testing::package(fixture("model_2_15"), fixture_source()));
    const auto from_file = Package::open(folder.write("net", file));
    const auto package = Package::open(bytes_of(file), nullptr, "the net");
    CHECK(package->path() == "the net");
    CHECK(package->producer() == from_file->producer());
    REQUIRE(package->models().size() == 1);
    const ModelSpec &model = package->model(), &expected = from_file->model();
    CHECK(model.name == expected.name);
    CHECK(model.device_key == expected.device_key);
    CHECK(model.imports == expected.imports);
    CHECK(model.inputs.size() == expected.inputs.size());
    CHECK(model.constants.size() == expected.constants.size());
    CHECK(model.weights_bytes == expected.weights_bytes);
    package->verify();
    const ArchiveReader& archive = package->archive();
    for (const ArchiveMember& member : archive.members()) {
      CHECK(archive.maps(archive.view(member)));
      CHECK(archive.view(member).data() == bytes_of(file).data() + member.offset);
    }
    CHECK(!archive.maps(bytes_of(fixture_source())));
    // Memory is nobody's file: its pages would not come back. A small file is copied, so neither would its.
    CHECK(!archive.rereadable(bytes_of(file)));
    if (file.size() <= (64 << 10))
      for (const ArchiveMember& member : from_file->archive().members())
        CHECK(!from_file->archive().rereadable(from_file->archive().view(member)));
    archive.give_up_pages(bytes_of(file));
    CHECK(archive.view(archive.members().back()).size() == archive.members().back().size);
    package->verify();
  }
}

TEST_CASE("package: the owner of its bytes lives as long as the package") {
  auto owner = std::make_shared<const std::string>(build(testing::package(fixture("model_2_15"), fixture_source())));
  const std::weak_ptr<const std::string> watched = owner;
  auto package = Package::open(bytes_of(*owner), owner);
  owner.reset();
  REQUIRE(!watched.expired());
  package->verify();
  CHECK(package->path() == "<memory>");
  package.reset();
  CHECK(watched.expired());
}

TEST_CASE("package: bytes in memory that are no package get the errors of files") {
  const TempFolder folder;
  const std::string whole = build(testing::package(fixture("model_2_15"), fixture_source()));
  const auto outcome = [](auto open) {
    try {
      open();
    } catch (const Error& error) {
      return std::string(wire_name(error.code())) + ": " + error.what();
    }
    return std::string("none");
  };
  const auto in_memory = [&](const std::string& bytes, const std::string& name) {
    // At the very end of its allocation, so that a sanitizer sees any byte that is read beyond it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    return outcome([&] { Package::open(std::as_bytes(std::span(exact)), nullptr, name); });
  };
  std::vector<std::string> bad{"", "P", "PK", "text", "\177ELF", whole.substr(1)};
  for (size_t bytes = 1; bytes < whole.size(); bytes += whole.size() / 97) bad.push_back(whole.substr(0, bytes));
  for (size_t at = 0; at < whole.size(); at += 211) {  // one byte differs
    bad.push_back(whole);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 0x5a);
  }
  size_t refused = 0;
  for (size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    const auto path = folder.write("net.pt2", bad[i]);
    const std::string expected = outcome([&] { Package::open(path); });
    CHECK(in_memory(bad[i], path.native()) == expected);
    refused += expected != "none";
  }
  CHECK(refused > 100);
  CHECK(in_memory("text", "<memory>").find("<memory>") != std::string::npos);
  CHECK_THROWS_AS(Package::open(std::span<const std::byte>()), Error);
  CHECK(outcome([] {
          Package::open(std::span(static_cast<const std::byte*>(nullptr), 8));
        }).starts_with("INVALID_ARGUMENT"));
}
