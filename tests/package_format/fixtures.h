// The libraries that CMakeLists.txt makes of fixture_model.c, and packages around them.
#pragma once

#include <string>

#include "tests/package_format/generated_source.h"
#include "tests/package_format/raw_zip.h"

namespace sconce::testing {

inline std::string fixture(const std::string& name) {
  return content_of(std::string(PACKAGE_FIXTURES).append("/").append(name).append(".so"));
}

// model_appended with its weights (256 bytes 0, 1, 2...) behind it, as torch does: at a multiple of 16 KiB.
inline std::string appended_fixture() {
  std::string file = fixture("model_appended");
  file.append((16384 - file.size() % 16384) % 16384, ' ');
  for (int i = 0; i < 256; ++i) file.push_back(static_cast<char>(i));
  return file.append(u64(0x1122334455667788));
}

// Four constants of 128 + 64 + 64 bytes; the third is folded and stored nowhere.
inline std::vector<SourceConstant> fixture_constants() {
  SourceConstant buffer{"n", "n"};
  buffer.type = "Buffer";
  return {{"w", "l.w", "float32", 128, {4, 5}, {5, 1}},
          {"b", "l.b", "int64", 64, {3}, {1}},
          {"_FOLDED_CONST_x", "", "float32", 64, {1}, {1}, "FoldedConstant", true},
          buffer};
}

inline std::string fixture_source(bool include_weights = true, const std::string& body = "") {
  return constructor(15, {"arg0_1"}, 1, fixture_constants(), specs(1), include_weights) + "\n" +
         check(0, "arg0_1", "float32", {"arg0_1_size[0] < 2", "5 != arg0_1_size[1]"}) +
         run_impl("    auto arg0_1 = std::move(inputs[0]);\n    [[maybe_unused]] auto& n = constants_->at(3);\n" +
                  body);
}

// A package of torch 2.15's layout with one model.
inline RawZip package(const std::string& so, const std::string& source, std::vector<RawMember> more = {}) {
  RawZip zip;
  const std::string folder = "net/data/aotinductor/model/";
  zip.members.push_back({"net/archive_format", "pt2"});
  if (!source.empty()) zip.members.push_back({folder + "x.wrapper.cpp", source});
  zip.members.push_back({folder + "y.kernel.cpp", "#pragma omp parallel num_threads(6)\n"});
  zip.members.push_back(
      {folder + "x.wrapper_metadata.json",
       R"({"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "AVX2", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64", "owner": "me"})"});
  zip.members.push_back({folder + "x.wrapper.so", so});
  for (RawMember& member : more) zip.members.push_back(std::move(member));
  return zip;
}

}  // namespace sconce::testing
