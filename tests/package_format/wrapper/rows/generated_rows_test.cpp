// row_sources.tar.xz has sources that PyTorch generated; make_row_sources.py says what each model computes, and had
// eager PyTorch tell which of them let rows meet.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "package_format/wrapper/rows/row_proof.h"
#include "package_format/wrapper/wrapper_source.h"

using namespace sconce;

namespace {

struct Source {
  std::string name, text;
  bool meet = false;
};

std::vector<Source> sources() {
  std::vector<Source> all;
  std::ifstream file(SCONCE_ROW_SOURCES);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("==== ")) {
      std::istringstream words(line.substr(5));
      std::string word;
      words >> word;
      all.push_back({.name = {}, .text = {}, .meet = word == "meet"});
      words >> all.back().name;
    } else if (!all.empty()) {
      all.back().text += line + "\n";
    }
  }
  return all;
}

RowProof proof_of(const std::string& text) {
  ModelSpec spec;
  spec.device_key = "cpu";
  const WrapperSource source = read_wrapper_source(text, spec);
  REQUIRE(source.found);
  const std::string_view before(text.data(), static_cast<size_t>(source.body.data() - text.data()));
  const std::array texts{before};
  rows::ParsedCode code(source, texts);
  prove_rows(code, spec);
  return spec.rows;
}

}  // namespace

TEST_CASE("generated rows: where rows meet, nothing is proved, and the reason names the kernel or operator") {
  size_t meet = 0;
  for (const Source& source : sources()) {
    if (!source.meet) continue;
    CAPTURE(source.name);
    const RowProof proof = proof_of(source.text);
    CHECK_FALSE(proof.independent());
    CHECK(proof.reason.size() > 10);
    ++meet;
  }
  CHECK(meet > 30);
}

TEST_CASE("generated rows: where rows are computed apart, that is proved") {
  size_t apart = 0;
  for (const Source& source : sources()) {
    if (source.meet) continue;
    CAPTURE(source.name);
    const RowProof proof = proof_of(source.text);
    CHECK_MESSAGE(proof.independent(), proof.reason);
    CHECK(proof.by == RowProof::By::kSource);
    ++apart;
  }
  CHECK(apart > 10);
}

TEST_CASE("generated rows: source that ends before its last statement proves nothing") {
  for (const Source& source : sources()) {
    if (source.name != "mlp") continue;
    for (size_t at = source.text.find("::run_impl("); at < source.text.rfind("output_handles["); at += 97) {
      ModelSpec spec;
      spec.device_key = "cpu";
      const std::string text = source.text.substr(0, at);
      const WrapperSource read = read_wrapper_source(text, spec);
      const std::array texts{std::string_view(text)};
      rows::ParsedCode code(read, texts);
      prove_rows(code, spec);
      CHECK_FALSE(spec.rows.independent());
    }
  }
}
