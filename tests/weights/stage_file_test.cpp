// Files of all formats, staged into an update that keeps their bytes. Those of NumPy and of the safetensors library are
// compared with what the readers of tensor_files make of them, which have expectations of their own.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "package_format/archive/archive_writer.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "src/device/file_source.h"
#include "src/support/element_walk.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/package_format/fixtures.h"
#include "tests/weights/fake_update.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

namespace fs = std::filesystem;

const fs::path kData = source_path("tests/tensor_files/data");

std::string row_major(const Tensor& t) {
  std::string bytes(t.bytes(), '\0');
  std::vector<int64_t> strides(t.sizes().size());
  contiguous_strides(t.sizes(), strides.data());
  const size_t item = t.itemsize();
  walk_elements(t.sizes(), t.strides(), strides, [&](int64_t from, int64_t to) {
    std::memcpy(&bytes[static_cast<size_t>(to) * item], t.data_as<char>() + from * static_cast<int64_t>(item), item);
  });
  return bytes;
}

void check_same(const FakeUpdate& update, const std::vector<NamedTensor>& expected) {
  REQUIRE(update.whole());
  CHECK(update.size() == expected.size());
  for (const NamedTensor& one : expected) {
    CAPTURE(one.name);
    const WeightEntry* entry = update.entry(one.name);
    REQUIRE(entry);
    CHECK(entry->dtype == one.tensor.dtype());
    CHECK(entry->shape == std::vector<int64_t>(one.tensor.sizes().begin(), one.tensor.sizes().end()));
    CHECK(update.bytes(one.name) == row_major(one.tensor));
  }
}

FakeUpdate staged(const fs::path& path, const FileOptions& options = {}, bool one_scratch = true) {
  FakeUpdate update(one_scratch);
  stage_file(update, path, options);
  return update;
}

Error refusal(const fs::path& path, const FileOptions& options = {}) {
  FakeUpdate update;
  try {
    stage_file(update, path, options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "accepted");
}

bool says(const Error& error, ErrorCode code, const std::string& text) {
  INFO(std::string(error.what()));
  const bool right = error.code() == code && std::string(error.what()).find(text) != std::string::npos;
  CHECK(right);
  return right;
}

Sha256Digest digest(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.finish();
}

std::string content(int from, size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(from + static_cast<int>(i));
  return bytes;
}

// One that reads entries itself, as a device's does.
class TakingUpdate final : public FakeUpdate, public FileTaker {
 public:
  bool takes(size_t entry) const override { return entry % 2 == 0; }
  void take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick) override {
    uint64_t done = 0;
    for (const FilePart& part : parts) {
      CHECK(takes(part.entry));
      ++taken;
      const std::span<std::byte> to = memory(part.entry);
      CHECK(::pread(part.file, to.data(), to.size(), static_cast<off_t>(part.offset)) ==
            static_cast<ssize_t>(to.size()));
      complete(part.entry);
      tick(done += to.size());
    }
  }
  int taken = 0;
};

const std::string kFolder = "net/data/aotinductor/model/";

// The weights of package_format's fixtures: bytes 0, 1, 2...
void check_fixture(const FakeUpdate& update, bool with_buffer = true) {
  REQUIRE(update.whole());
  CHECK(update.size() == (with_buffer ? 3 : 2));
  CHECK(update.bytes("l.w") == content(0, 80));
  CHECK(update.entry("l.w")->shape == std::vector<int64_t>{4, 5});
  CHECK(update.bytes("l.b") == content(128, 24));
  CHECK(update.entry("l.b")->dtype == DType::kInt64);
  if (with_buffer) CHECK(update.bytes("n") == content(192, 64));
}

std::vector<ConstantSpec> fixture_specs() {
  const TempFolder folder;
  const auto package =
      Package::open(folder.write("net.pt2", build(testing::package(fixture("model_2_15"), fixture_source()))));
  return package->model().constants;
}

}  // namespace

TEST_CASE("stage file: safetensors, npz stored and deflated, npy in both orders of elements and bytes") {
  for (const char* name : {"all.safetensors", "stored.npz", "deflated.npz", "fortran.npy", "big_endian.npy",
                           "scalar.npy", "empty.npy", "version3.npy"})
    for (const bool one_scratch : {false, true}) {
      CAPTURE(name);
      check_same(staged(kData / name, {}, one_scratch), read_tensors(kData / name));
    }
}

TEST_CASE("stage file: arrays in Fortran's order and the other byte order within a .npz") {
  const TempFolder folder;
  RawZip zip;
  for (const char* name : {"fortran.npy", "big_endian.npy", "scalar.npy", "empty.npy"})
    zip.members.push_back({.name = name, .content = content_of(kData / name), .deflated = zip.members.size() % 2 == 0});
  const fs::path path = folder.write("weights.zip", build(zip));
  check_same(staged(path), read_npz(path));
}

TEST_CASE("stage file: tensors that take many blocks, in any format") {
  const TempFolder folder;
  std::vector<NamedTensor> tensors;
  Tensor large = Tensor::empty(std::vector<int64_t>{3, 1'000'001}, DType::kFloat32);
  for (int64_t i = 0; i < large.numel(); ++i) large.data_as<uint32_t>()[i] = static_cast<uint32_t>(i * 2654435761u);
  tensors.push_back({"large", large});
  tensors.push_back({"small", large.as_strided(std::vector<int64_t>{7}, std::vector<int64_t>{1}, 0)});
  write_safetensors(folder.path() / "w.safetensors", tensors);
  write_npz(folder.path() / "w.npz", tensors);
  check_same(staged(folder.path() / "w.safetensors"), tensors);
  check_same(staged(folder.path() / "w.npz"), tensors);
  const std::string values = row_major(large);
  const std::string header = "{'descr': '>f4', 'fortran_order': True, 'shape': (1000001, 3), }\n";
  std::string npy = "\x93NUMPY";
  npy += {'\1', '\0', static_cast<char>(header.size()), '\0'};
  const fs::path path = folder.write("layer.weight.npy", npy + header + values);
  check_same(staged(path), {{"layer.weight", read_npy(path)}});
  RawZip zip;
  zip.members.push_back({.name = "layer.weight.npy", .content = npy + header + values, .deflated = true});
  check_same(staged(folder.write("fortran.npz", build(zip))), {{"layer.weight", read_npy(path)}});
}

TEST_CASE("stage file: a .npz as any writer of archives makes it, and its stored members damaged") {
  const TempFolder folder;
  for (const bool zip64 : {false, true})
    for (const bool descriptors : {false, true}) {
      CAPTURE(zip64);
      CAPTURE(descriptors);
      const fs::path path = folder.path() / "w.npz";
      ArchiveWriter writer(path, {.descriptors = descriptors, .zip64 = zip64});
      for (const char* name : {"fortran.npy", "big_endian.npy", "scalar.npy", "empty.npy", "version3.npy"})
        writer.add(name, content_of(kData / name));
      writer.finish();
      check_same(staged(path), read_npz(path));
      std::string file = content_of(path);
      const size_t scalar = file.find("\x93NUMPY", file.find("scalar.npy"));
      REQUIRE(scalar != std::string::npos);
      for (const size_t at : {size_t{100}, size_t{130}}) {  // in the header's padding, in the data
        std::string damaged = file;
        damaged[scalar + at] = at == 100 ? '\n' : '\x55';
        says(refusal(folder.write("bad.npz", damaged)), ErrorCode::kCorruptPackage, "scalar.npy: its CRC differs");
      }
    }
}

TEST_CASE("stage file: damaged members of a .npz are seen by their CRC") {
  const TempFolder folder;
  std::string file = content_of(kData / "stored.npz");
  const size_t at = file.find("\x93NUMPY");
  REQUIRE(at != std::string::npos);
  file[at + 128] ^= 1;
  says(refusal(folder.write("bad.npz", file)), ErrorCode::kCorruptPackage, "bad.npz: ");
}

TEST_CASE("stage file: weights of another package, wherever it keeps them") {
  const TempFolder folder;
  const auto write = [&](const std::string& so, bool inside, std::vector<RawMember> more = {}, bool deflated = false) {
    RawZip zip = testing::package(so, fixture_source(inside), std::move(more));
    if (deflated)
      for (RawMember& member : zip.members) member.deflated = true;
    return folder.write("net.pt2", build(zip));
  };
  check_fixture(staged(write(fixture("model_2_15"), true)));
  check_fixture(staged(write(fixture("model_2_15"), true, {}, true)));
  check_fixture(staged(write(appended_fixture(), true)));
  check_fixture(staged(write(fixture("model_2_15"), false, {{kFolder + "x.wrapper_weights.blob", content(0, 256)}})));
  check_fixture(
      staged(write(fixture("model_2_15"), false, {{kFolder + "x.wrapper_weights.blob", content(0, 256)}}, true)));

  const std::string pickle = "ctorch._utils\n_rebuild_tensor_v2\n.";
  const auto saved = [&](const std::string& bytes) {
    return build({{{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}, {"archive/data/0", bytes}}});
  };
  const std::string config = R"({"l.w": ["weight_0", [4, 5], [5, 1], 2], "l.b": ["weight_1", [3], [1], 0],
                                 "n": ["weight_0", [16], [1], 6]})";
  const FakeUpdate files = staged(write(fixture("model_2_15"), false,
                                        {{kFolder + "weights_config.json", config},
                                         {"net/data/weights/weight_0", saved(content(0, 88))},
                                         {"net/data/weights/weight_1", saved(content(50, 24))}}));
  CHECK(files.bytes("l.w") == content(8, 80));
  CHECK(files.bytes("l.b") == content(50, 24));
  CHECK(files.bytes("n") == content(24, 64));
}

TEST_CASE("stage file: a package that is a folder, and one of several models") {
  const TempFolder folder;
  for (const RawMember& member : testing::package(fixture("model_2_15"), fixture_source(false),
                                                  {{kFolder + "x.wrapper_weights.blob", content(0, 256)}})
                                     .members)
    folder.write("dir/" + member.name, member.content);
  check_fixture(staged(folder.path() / "dir"));
  says(refusal(folder.path() / "dir", {.sha256 = Sha256Digest{}}), ErrorCode::kInvalidArgument,
       "a folder has no SHA-256");
  const fs::path one = folder.write("net.pt2", build(testing::package(fixture("model_2_15"), fixture_source())));
  check_fixture(staged(one, {.package_model = "model"}));
  says(refusal(one, {.package_model = "other"}), ErrorCode::kNotFound, "other");
}

TEST_CASE("stage file: constants that the graph writes stay with the replica") {
  const TempFolder folder;
  const std::string source = fixture_source(true, "    cpp_fused_0((float*)(n.data_ptr()));\n");
  check_fixture(staged(folder.write("net.pt2", build(testing::package(fixture("model_writable"), source)))), false);
}

TEST_CASE("stage file: constants in strides of their own become row-major; packed ones are refused") {
  const TempFolder folder;
  std::vector<SourceConstant> constants = fixture_constants();
  constants[0].stride = {1, 4};
  constants[0].offset = 3;
  constants[1].shape = {2, 3};
  constants[1].stride = {0, 1};  // expanded
  const auto write = [&] {
    const std::string source = constructor(15, {"arg0_1"}, 1, constants, specs(1)) + "\n" + run_impl("");
    return folder.write("net.pt2", build(testing::package(fixture("model_2_15"), source)));
  };
  const FakeUpdate update = staged(write());
  std::string expected;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 5; ++column) expected += content(4 * (3 + row + 4 * column), 4);
  CHECK(update.bytes("l.w") == expected);
  CHECK(update.bytes("l.b") == content(128, 24) + content(128, 24));

  constants[0].offset = 13;  // one element beyond 128 bytes
  says(refusal(write()), ErrorCode::kCorruptPackage, "constant is larger than its place");
  constants[0] = fixture_constants()[0];
  constants[0].more =
      "    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout__mkldnn);\n"
      "    constants_info_[0].opaque_metadata = {1L, 0L};\n";
  says(refusal(write()), ErrorCode::kUnsupported, "packed by oneDNN");
}

TEST_CASE("stage file: a raw blob of the model's own layout") {
  const TempFolder folder;
  FileOptions options{.constants = fixture_specs()};
  const fs::path path = folder.write("weights.blob", content(0, 256));
  check_fixture(staged(path, options));
  options.format = WeightFormat::kBlob;
  check_fixture(staged(path, options));
  options.constants[0].strides = {1, 4};
  std::string expected;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 5; ++column) expected += content(4 * (row + 4 * column), 4);
  CHECK(staged(path, options).bytes("l.w") == expected);
  options.constants[0].mutated = true;
  CHECK(staged(path, options).size() == 2);
  options.constants[0].assumed = true;  // it may be a weight
  CHECK(staged(path, options).size() == 3);
  says(refusal(folder.write("short.blob", content(0, 255)), options), ErrorCode::kCorruptPackage, "255 and 256 bytes");
  options.format = WeightFormat::kDetect;
  says(refusal(folder.write("short.blob", content(0, 255)), options), ErrorCode::kUnsupported, "256 bytes of weights");
  says(refusal(path), ErrorCode::kUnsupported, "not a .safetensors, .npz, .npy or .pt2 file");
  says(refusal(path, {.format = WeightFormat::kBlob}), ErrorCode::kInvalidArgument,
       "together with the model's constants");
}

TEST_CASE("stage file: the digest of a file, whatever its format") {
  const TempFolder folder;
  std::vector<fs::path> paths{
      folder.write("net.pt2", build(testing::package(fixture("model_2_15"), fixture_source())))};
  for (const char* name : {"all.safetensors", "stored.npz", "deflated.npz", "fortran.npy", "empty.npy"})
    paths.push_back(kData / name);
  for (const fs::path& path : paths) {
    CAPTURE(path.string());
    Sha256Digest right = digest(content_of(path));
    CHECK(staged(path, {.sha256 = right}).whole());
    right[31] ^= std::byte{1};
    says(refusal(path, {.sha256 = right}), ErrorCode::kInvalidArgument, "SHA-256 differs: " + path.string());
  }
}

TEST_CASE("stage file: progress rises to the end; it and the flag cancel between blocks") {
  const TempFolder folder;
  Tensor tensor = Tensor::empty(std::vector<int64_t>{10'000'000}, DType::kUInt8);
  std::memset(tensor.data(), 5, tensor.bytes());
  const fs::path path = folder.path() / "w.safetensors";
  write_safetensors(path, std::vector<NamedTensor>{{"w", tensor}});
  std::vector<uint64_t> steps;
  FakeUpdate update;
  stage_file(update, path, {.progress = [&](uint64_t done, uint64_t total) {
               CHECK(total == 10'000'000);
               steps.push_back(done);
             }});
  CHECK(steps.size() >= 3);
  CHECK(steps.front() == 0);
  CHECK(steps.back() == 10'000'000);
  CHECK(std::is_sorted(steps.begin(), steps.end()));

  std::atomic<bool> cancel{false};
  FakeUpdate half;
  const FileOptions options{.progress = [&](uint64_t done, uint64_t) { cancel = done > 0; }, .cancel = &cancel};
  CHECK(contains(error_from(ErrorCode::kCancelled, [&] { stage_file(half, path, options); }), "of 10000000 bytes"));
  CHECK(half.completed() == 0);
}

TEST_CASE("stage file: an update that reads files itself gets what lies there as it is to be, the rest as ever") {
  for (const char* name : {"all.safetensors", "stored.npz", "deflated.npz", "fortran.npy", "big_endian.npy"}) {
    CAPTURE(name);
    TakingUpdate update;
    std::vector<uint64_t> steps;
    stage_file(update, kData / name, {.progress = [&](uint64_t done, uint64_t total) {
                 CHECK(done <= total);
                 steps.push_back(done);
                 if (steps.size() > 1) CHECK(steps[steps.size() - 2] <= done);
                 if (update.whole()) CHECK(done == total);
               }});
    check_same(update, read_tensors(kData / name));
    CHECK((update.taken > 0) == (std::string(name) == "all.safetensors"));
  }
  // A digest is of bytes that were read here.
  TakingUpdate digested;
  const fs::path path = kData / "all.safetensors";
  stage_file(digested, path, {.sha256 = digest(content_of(path))});
  check_same(digested, read_tensors(path));
  CHECK(digested.taken == 0);

  const TempFolder folder;
  Tensor tensor = Tensor::empty(std::vector<int64_t>{1000}, DType::kFloat32);
  std::memset(tensor.data(), 5, tensor.bytes());
  const fs::path two = folder.path() / "two.safetensors";
  write_safetensors(two, std::vector<NamedTensor>{{"a", tensor}, {"b", tensor}});
  std::atomic<bool> cancel{false};
  TakingUpdate half;
  const FileOptions options{.progress = [&](uint64_t done, uint64_t) { cancel = done > 0; }, .cancel = &cancel};
  CHECK(contains(error_from(ErrorCode::kCancelled, [&] { stage_file(half, two, options); }), "of 8000 bytes"));
  CHECK(half.completed() < 2);
}

TEST_CASE("stage file: a file that is written to or cut off meanwhile is refused, by an error") {
  const TempFolder folder;
  const auto tensor = Tensor::empty(std::vector<int64_t>{20'000'000}, DType::kUInt8);
  std::memset(tensor.data(), 5, tensor.bytes());
  const fs::path path = folder.path() / "w.safetensors";
  for (const bool cut : {false, true}) {
    write_safetensors(path, std::vector<NamedTensor>{{"w", tensor}});
    bool once = false;
    const Error error = refusal(path, {.progress = [&](uint64_t done, uint64_t) {
                                  if (done == 0 || once) return;
                                  once = true;
                                  if (cut) return fs::resize_file(path, 5'000'000);
                                  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                                  file.seekp(1000);
                                  file << "x";
                                }});
    says(error, ErrorCode::kFailedPrecondition, cut ? "became shorter while it was read" : "changed while it was read");
  }
}

TEST_CASE("stage file: what is no file, and files that lie") {
  const TempFolder folder;
  says(refusal(folder.path() / "none.safetensors"), ErrorCode::kIo, "none.safetensors");
  says(refusal("/dev/zero"), ErrorCode::kIo, "not a regular file");
  says(refusal(std::string(5000, 'x')), ErrorCode::kIo, "cannot open file");
  says(refusal("/dev/zero/x", {.format = WeightFormat::kPackage}), ErrorCode::kIo, "/dev/zero/x");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  says(refusal(folder.path() / "pipe"), ErrorCode::kIo, "not a regular file");
  says(refusal(folder.write("empty", "")), ErrorCode::kUnsupported, "not a .safetensors");
  says(refusal(folder.write("empty.safetensors", "")), ErrorCode::kCorruptPackage, "ends within its header");
  const std::string good = content_of(kData / "all.safetensors");
  for (size_t end = 0; end < good.size(); end += 97)
    says(refusal(folder.write("cut.safetensors", good.substr(0, end))), ErrorCode::kCorruptPackage, "cut.safetensors");
  says(refusal(folder.write("long.safetensors", good + "x")), ErrorCode::kCorruptPackage, "bytes of no tensor");
  const std::string npy = content_of(kData / "fortran.npy");
  says(refusal(folder.write("cut.npy", npy.substr(0, npy.size() - 1))), ErrorCode::kCorruptPackage,
       "wrong size of data");
  says(refusal(kData / "object.npy"), ErrorCode::kUnsupported, "object.npy");
  says(refusal(kData / "other_member.npz"), ErrorCode::kUnsupported, "readme.txt");
  says(refusal(folder.write("text", "this is no weights file")), ErrorCode::kUnsupported, "text");
}

TEST_CASE("stage file: an update's refusal comes before any byte is read") {
  const TempFolder folder;
  const fs::path path = folder.path() / "w.safetensors";
  write_safetensors(path, std::vector<NamedTensor>{{"refused", Tensor::empty(std::vector<int64_t>{3}, DType::kInt8)}});
  bool progressed = false;
  says(refusal(path, {.progress = [&](uint64_t, uint64_t) { progressed = true; }}), ErrorCode::kNotFound, "refused");
  CHECK(!progressed);
}

TEST_CASE("safetensors encoder: any file becomes a stream that decodes to the same weights, in pieces of any size") {
  const TempFolder folder;
  for (const char* name : {"all.safetensors", "stored.npz", "fortran.npy", "empty.npy"})
    for (const size_t piece : {size_t{16}, size_t{48}, size_t{1} << 20}) {
      CAPTURE(name);
      CAPTURE(piece);
      // complex128 is in the .npz: no dtype of safetensors.
      if (std::string(name) == "stored.npz") {
        CHECK_THROWS_WITH_AS(SafetensorsEncoder(WeightFile::open(kData / name)), doctest::Contains("complex128"),
                             Error);
        continue;
      }
      SafetensorsEncoder encoder(WeightFile::open(kData / name));
      std::string bytes;
      std::vector<std::byte> block(piece);
      while (const size_t n = encoder.read(block)) bytes.append(reinterpret_cast<const char*>(block.data()), n);
      CHECK(bytes.size() == encoder.bytes());
      SafetensorsEncoder again(WeightFile::open(kData / name));
      CHECK(to_hex(digest_of(again)) == to_hex(digest(bytes)));
      check_same(staged(folder.write("out.safetensors", bytes)), read_tensors(kData / name));
    }
}

TEST_CASE("stage file: names that save_model() left out, also through the encoder and from shards") {
  const TempFolder folder;
  std::string json = R"({"__metadata__":{"b":"a","format":"pt"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string bytes(1, static_cast<char>(json.size()));
  bytes += std::string(7, '\0') + json + "xy";
  const std::filesystem::path path = folder.write("tied.safetensors", bytes);
  const std::vector<std::string> tied{"b"};
  CHECK(WeightFile::open(path)->entries()[0].tied == tied);
  CHECK(WeightFile::open_shards(std::vector{path})->entries()[0].tied == tied);
  SafetensorsEncoder encoder(WeightFile::open(path));
  std::string again;
  std::vector<std::byte> block(64);
  while (const size_t n = encoder.read(block)) again.append(reinterpret_cast<const char*>(block.data()), n);
  CHECK(WeightFile::open(folder.write("again.safetensors", again))->entries()[0].tied == tied);
}
