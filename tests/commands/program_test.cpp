// The program as a person starts it: output, files and exit status of its subcommands, on the digits example.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <zip.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sconce/model.h"
#include "sconce/tensor_files.h"
#include "sconce/version.h"
#include "tests/commands/scratch_folder.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

const std::string kDigits = source_path("examples/digits/digits.pt2");

struct Result {
  int status = -1;
  std::string output;  // standard output and errors
};

Result start(const std::string& arguments) {
  Result result;
  FILE* pipe = ::popen((std::string(SCONCE_PROGRAM " ") + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The archive's files, without its root folder.
void unpack(const std::string& archive, const fs::path& folder) {
  zip_t* zip = zip_open(archive.c_str(), ZIP_RDONLY, nullptr);
  REQUIRE(zip);
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const std::string name = zip_get_name(zip, index, 0);
    zip_stat_t info;
    REQUIRE(zip_stat_index(zip, index, 0, &info) == 0);
    std::string bytes(info.size, '\0');
    zip_file_t* file = zip_fopen_index(zip, index, 0);
    REQUIRE(zip_fread(file, bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size()));
    zip_fclose(file);
    const fs::path path = folder / name.substr(name.find('/') + 1);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  zip_discard(zip);
}

}  // namespace

TEST_CASE("program: version, help, wrong usage") {
  CHECK(start("--version").output == "sconce " + version() + "\n");
  CHECK(start("--version").status == 0);
  CHECK(start("--help").status == 0);
  CHECK(contains(start("--help").output, "inspect"));
  CHECK(start("").status == 2);
  CHECK(start("no-such-command").status == 2);
  CHECK(start("inspect").status == 2);
  CHECK(start("run " + kDigits + " --format xml").status == 2);
  CHECK(start("run " + kDigits + " --size s6").status == 2);
  CHECK(start("bench " + kDigits + " --device tpu").status == 2);
  const Result both = start("run " + kDigits + " --size s6=2 --input x.npz");
  CHECK(both.status == 2);
  CHECK(contains(both.output, "--size does not go with --input"));
}

TEST_CASE("program: inspect, text and JSON, without colour in a pipe") {
  const Result text = start("inspect " + kDigits);
  CHECK(text.status == 0);
  CHECK(contains(text.output, "ARGS[0]"));
  CHECK(contains(text.output, "features.0.weight"));
  CHECK(contains(text.output, "aoti_torch_cpu_convolution"));
  CHECK(!contains(text.output, "\x1b"));
  const Result result = start("inspect --json " + kDigits);
  CHECK(result.status == 0);
  const auto json = nlohmann::json::parse(result.output);
  const auto& model = json.at("models").at(0);
  CHECK(model.at("inputs").at(0).at("dtype") == "float32");
  CHECK(model.at("inputs").at(0).at("shape").size() == 3);
  CHECK(model.at("inputs").at(0).at("shape").at(0).at("max") > 2);
  CHECK(model.at("inputs").at(0).at("shape").at(1) == 8);
  CHECK(model.at("outputs").size() == 2);
  CHECK(model.at("constants").size() == 8);
  CHECK(model.at("operators_missing").empty());
  CHECK(model.at("rows").at("proof") == "source");
  CHECK(model.at("rows").at("reason").is_null());
  CHECK(contains(text.output, "requests may share runs: proved by the generated source"));
}

TEST_CASE("program: random inputs run on a device only if the user says so") {
  for (const std::string command : {"run ", "bench --duration 0.01 "}) {
    const Result refused = start(command + kDigits + " --device cuda");
    CHECK(refused.status == 1);
    CHECK(contains(refused.output, "give inputs with --input, or say --random-inputs"));
    // Then something else is wrong: this package is for the CPU.
    const Result said = start(command + kDigits + " --device cuda --random-inputs");
    CHECK(said.status == 1);
    CHECK_FALSE(contains(said.output, "--random-inputs"));
    CHECK(start(command + kDigits + " --random-inputs").status == 0);
  }
}

TEST_CASE("program: a package with operators of a library") {
  const std::string package = source_path("tests/custom_ops/packages/rotate.pt2");
  const std::string library = " --op-library " SCONCE_GEOMETRY;
  const Result without = start("check " + package);
  CHECK(without.status == 1);
  CHECK(contains(without.output, "geometry::rotate"));
  CHECK(start("check " + package + library).status == 0);
  const Result ran = start("run " + package + library + " --size s6=3");
  CHECK_MESSAGE(ran.status == 0, ran.output);
  CHECK(contains(ran.output, "RESULT[1]  float32 [3, 2]"));
  const Result absent = start("run " + package + " --op-library /nonexistent.so");
  CHECK(absent.status != 0);
  CHECK(contains(absent.output, "/nonexistent.so"));
}

TEST_CASE("program: check tells sound, unable to run and unreadable apart") {
  const ScratchFolder folder;
  CHECK(start("check " + kDigits).status == 0);
  CHECK(start("check " + (folder / "none.pt2")).status == 2);
  const std::string whole = content_of(kDigits);
  folder.write("cut.pt2", whole.substr(0, whole.size() / 2));
  CHECK(start("check " + (folder / "cut.pt2")).status == 2);
  // A changed byte within the code: only its checksum tells.
  std::string damaged = whole;
  const size_t code = damaged.find(
      "\x7f"
      "ELF");
  REQUIRE(code != std::string::npos);
  damaged[code + 200000] = static_cast<char>(damaged[code + 200000] ^ 1);
  folder.write("damaged.pt2", damaged);
  const Result result = start("check " + (folder / "damaged.pt2"));
  CHECK(result.status == 2);
  CHECK(contains(result.output, ".wrapper.so"));
}

TEST_CASE("program: check of a path without a package names it and the reason") {
  const ScratchFolder folder;
  fs::create_directory(folder / "models");
  fs::copy_file(kDigits, folder / "models/digits.pt2");
  folder.write("empty.pt2", "");
  const auto refused = [](const std::string& path, int status, const std::string& reason) {
    const Result result = start("check " + path);
    CHECK(result.status == status);
    CHECK_MESSAGE(contains(result.output, reason), result.output);
    CHECK_MESSAGE(contains(result.output, path), result.output);
  };
  refused(folder / "none.pt2", 2, "No such file or directory");
  refused(folder / "empty.pt2", 2, "file is empty: ");
  refused(folder / "models", 1, "name a file in it: digits.pt2");
  refused(source_path(), 1, "directory is not an AOTInductor package");
  folder.write("page.pt2", "<!DOCTYPE html>");
  refused(folder / "page.pt2", 1, "neither a package nor a model library, but a web page or XML");
}

TEST_CASE("program: a model that asks for what nobody has will not run") {
  const ScratchFolder folder;
  // The operator's name in the dynamic symbols of a bare library, and nowhere else.
  const std::string archive = content_of(kDigits);
  const auto package = Package::open(kDigits);
  const size_t begin = archive.find(
      "\x7f"
      "ELF");
  std::string library = archive.substr(begin, package->model().so_bytes);
  const std::string name = "aoti_torch_cpu_convolution", other = "aoti_torch_cpu_konvolution";
  for (size_t at = 0; (at = library.find(name, at)) != std::string::npos;) library.replace(at, name.size(), other);
  folder.write("model.so", library);
  const Result result = start("check " + (folder / "model.so"));
  CHECK(result.status == 1);
  CHECK(contains(result.output, other));
  CHECK(start("run " + (folder / "model.so")).status == 1);
}

TEST_CASE("program: run reads inputs and writes outputs in every format") {
  const ScratchFolder folder;
  const int64_t sizes[] = {3, 8, 8};
  const NamedTensor images{"ARGS[0]", Tensor::empty(sizes, DType::kFloat32)};
  for (int i = 0; i < 192; ++i) images.tensor.data_as<float>()[i] = static_cast<float>(i % 17);
  write_npy(folder / "images.npy", images.tensor);
  write_safetensors(folder / "images.safetensors", {&images, 1});

  const Result npy =
      start("run " + kDigits + " --input ARGS[0]=" + (folder / "images.npy") + " --output " + (folder / "npy"));
  CHECK_MESSAGE(npy.status == 0, npy.output);
  CHECK(contains(npy.output, "RESULT[class]  int64 [3]"));
  const Tensor classes = read_npy(folder / "npy/RESULT[class].npy");
  const Tensor probabilities = read_npy(folder / "npy/RESULT[probabilities].npy");
  CHECK(to_string(probabilities.sizes()) == "[3, 10]");
  for (int64_t row = 0; row < 3; ++row) {
    const float* p = probabilities.data_as<float>() + row * 10;
    CHECK(std::max_element(p, p + 10) - p == classes.data_as<int64_t>()[row]);
  }

  for (const std::string format : {"npz", "safetensors", "json"}) {
    CAPTURE(format);
    const Result result = start("run " + kDigits + " --input " + (folder / "images.safetensors") + " --format " +
                                format + " --output " + (folder / format));
    CHECK_MESSAGE(result.status == 0, result.output);
  }
  for (const auto& tensors :
       {read_npz(folder / "npz/outputs.npz"), read_safetensors(folder / "safetensors/outputs.safetensors")}) {
    REQUIRE(tensors.size() == 2);
    CHECK(tensors[0].name == "RESULT[class]");
    CHECK(tensors[0].tensor.data_as<int64_t>()[2] == classes.data_as<int64_t>()[2]);
  }
  const auto json = nlohmann::json::parse(content_of(folder / "json/outputs.json"));
  CHECK(json.at("RESULT[class]").at(2) == classes.data_as<int64_t>()[2]);
  CHECK(json.at("RESULT[probabilities]").at(1).size() == 10);
}

TEST_CASE("program: run with random inputs repeats itself; bad inputs are named") {
  const Result a = start("run " + kDigits + " --seed 4"), b = start("run " + kDigits + " --seed 4");
  CHECK(a.status == 0);
  CHECK(a.output.substr(0, a.output.rfind("model in")) == b.output.substr(0, b.output.rfind("model in")));
  const ScratchFolder folder;
  const int64_t sizes[] = {3, 8, 9};
  const Tensor wrong = Tensor::empty(sizes, DType::kFloat32);
  write_npy(folder / "wrong.npy", wrong);
  const Result refused = start("run " + kDigits + " --input " + (folder / "wrong.npy"));
  CHECK(refused.status == 1);
  CHECK(contains(refused.output, "input 0"));
}

TEST_CASE("program: bench measures each combination") {
  const Result result = start("bench " + kDigits + " --duration 0.05 --replicas 1,2 --json");
  REQUIRE_MESSAGE(result.status == 0, result.output);
  const auto rows = nlohmann::json::parse(result.output).at("measurements");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].at("replicas") == 2);
  for (const auto& row : rows) {
    CHECK(row.at("latency_s").at("p50") <= row.at("latency_s").at("p99"));
    CHECK(row.at("runs_per_s") > 0);
    CHECK(row.at("memory_bytes") > 0);
  }
}

TEST_CASE("program: bench writes a page, and compares with an earlier one") {
  const ScratchFolder folder;
  const std::string before = folder / "before.html", after = folder / "after.html";
  const Result first = start("bench " + kDigits + " --duration 0.05 --html " + before);
  REQUIRE_MESSAGE(first.status == 0, first.output);
  const Result second = start("bench " + kDigits + " --duration 0.05 --html " + after + " --against " + before);
  REQUIRE_MESSAGE(second.status == 0, second.output);
  CHECK(contains(second.output, "than earlier: one caller: p50 "));
  const std::string page = read_text(after);
  CHECK(contains(page, "digits.pt2"));
  CHECK(contains(page, "replicas: 1, threads: as compiled, callers: 1"));
  CHECK(contains(page, "<path class=\"was\""));
  CHECK(!contains(read_text(before), "<path class=\"was\""));
  const Result json = start("bench " + kDigits + " --duration 0.05 --json");
  REQUIRE(json.status == 0);
  const std::string document = folder.write("before.json", json.output);
  CHECK(start("bench " + kDigits + " --duration 0.05 --against " + document).status == 0);
  const Result wrong = start("bench " + kDigits + " --duration 30 --against " + kDigits);
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.output, "not a page of sconce bench --html"));
}

TEST_CASE("program: inspect writes a page") {
  const ScratchFolder folder;
  const std::string path = folder / "digits.html";
  const Result result = start("inspect " + kDigits + " --html " + path);
  CHECK(result.status == 0);
  CHECK(result.output.empty());
  const std::string page = read_text(path);
  for (const char* const text : {"<!doctype html>", "RESULT[class]", "features.0.weight", "aoti_torch_cpu_convolution",
                                 "members of the archive", ".wrapper.so", "structure of the call"})
    CHECK_MESSAGE(contains(page, text), text);
  CHECK(!contains(page, "://"));
  CHECK(start("inspect " + kDigits + " --html /nowhere/x.html").status == 2);
}

TEST_CASE("program: ops lists what packages can call") {
  const Result all = start("ops");
  CHECK(all.status == 0);
  CHECK(contains(all.output, "aoti_torch_cpu_convolution\n"));
  CHECK(start("ops no_such_operator").status == 1);
  CHECK(nlohmann::json::parse(start("ops --json addmm").output).size() >= 1);
}

TEST_CASE("program: pack makes a package of a directory") {
  const ScratchFolder folder;
  unpack(kDigits, folder / "digits");
  const Result packed = start("pack " + (folder / "digits") + " " + (folder / "again.pt2"));
  CHECK_MESSAGE(packed.status == 0, packed.output);
  CHECK(start("check " + (folder / "again.pt2")).status == 0);
  const Result run = start("run " + (folder / "again.pt2")), original = start("run " + kDigits);
  CHECK(run.output.substr(0, run.output.rfind("model in")) ==
        original.output.substr(0, original.output.rfind("model in")));
  CHECK(start("pack " + (folder / "no-such-folder") + " " + (folder / "x.pt2")).status == 2);
  CHECK(!fs::exists(folder / "x.pt2"));
}

TEST_CASE("program: weights diff shows which tensors of two files differ, and how far") {
  const std::string folder = source_path("examples/digits/");
  const std::string second = folder + "digits-v2.safetensors";
  const Result same = start("weights diff " + second + " " + second);
  CHECK(same.status == 0);
  CHECK(contains(same.output, " 0 changed, 0 reshaped, 0 only in A, 0 only in B\n"));
  // A package and the file of another training: the same names, other values.
  const Result trained = start("weights diff " + kDigits + " " + second);
  CHECK(trained.status == 1);
  CHECK(contains(trained.output, "relative "));
  const nlohmann::json all = nlohmann::json::parse(start("weights diff --json " + kDigits + " " + second).output);
  const std::vector<NamedTensor> tensors = read_safetensors(second);
  CHECK(all.at("tensors") == tensors.size());
  CHECK(all.at("differences").size() + all.at("same").get<size_t>() == tensors.size());
  CHECK(!all.at("differences").empty());
  for (const nlohmann::json& tensor : all.at("differences")) {
    CHECK(tensor.at("state") == "changed");
    CHECK(tensor.at("cosine") < 1.0);
    CHECK(tensor.at("not_finite_b") == 0);
  }
  CHECK(start("weights diff " + second + " " + folder + "no-such-file.npz").status == 2);
}

}  // namespace sconce
