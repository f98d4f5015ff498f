// Packages made of fake models, in every form that sconce opens.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fake_knobs.h"

namespace fake {

// The fake models that are built (CMakeLists.txt): what is in fake_constants.h for each.
struct Model {
  std::string name = "fake_model";  // file name of its .so
  int64_t features = 4;
  bool state = false, folded = false, cuda = false, typed = true, loop = false;
  enum class Weights { kEmbedded, kAppended, kExternal, kNone } weights = Weights::kEmbedded;
};
Model model(const std::string& name);  // "fake_model", "fake_folded", "fake_state", "fake_appended", ...

// The .so, complete: weights that follow it are there.
std::vector<std::byte> library(const Model& model);
// All stored weights back to back, as a blob or a .so holds them.
std::vector<std::byte> weights(const Model& model);
// What stands for the source that PyTorch generates: the declarations that a signature is read from, in its words.
std::string source(const Model& model);
// Archive members of a package, below its root: name and content. Models by their name in the archive.
std::map<std::string, std::vector<std::byte>> members(const std::map<std::string, Model>& models,
                                                      bool with_source = true);

// Each replaces what is at the path.
void write_shared_object(const std::filesystem::path& path, const Model& model = {});
void write_directory(const std::filesystem::path& path, const std::map<std::string, Model>& models = {{"model", {}}},
                     bool with_source = true);

// A .pt2 whose root folder is the file's stem, as torch 2.8 and later write them.
void write_package(const std::filesystem::path& path, const std::map<std::string, Model>& models = {{"model", {}}},
                   bool with_source = true);

// The knobs of all fake models that are loaded in this process, in the order in which they were loaded.
std::vector<FakeKnobs*> loaded();

// What the model computes for one element of column `column`, with the stored weights.
inline float expected(float x, int64_t column) {
  return x * static_cast<float>(1 + column % 16) + static_cast<float>(10 * (column % 16));
}

}  // namespace fake
