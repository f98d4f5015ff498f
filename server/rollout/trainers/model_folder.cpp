#include "server/rollout/trainers/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr uintmax_t kMaxIndex = uintmax_t{64} << 20;

// Trainers name files by absolute paths. Removes the directory from the beginning of a path.
std::string below(const std::string& directory, const std::string& path) {
  if (!path.starts_with('/') || directory.empty()) return path;
  std::error_code ignored;
  for (const std::filesystem::path& base :
       {std::filesystem::path(directory), std::filesystem::weakly_canonical(directory, ignored)}) {
    std::string prefix = base.lexically_normal().native();
    if (prefix.empty()) continue;
    if (!prefix.ends_with('/')) prefix += '/';
    if (path.starts_with(prefix)) return path.substr(prefix.size());
  }
  return path;
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  SCONCE_CHECK(!error && size <= kMaxIndex, kCorruptPackage, kIndex, ": larger than ", kMaxIndex, " bytes");
  std::string text(static_cast<size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  SCONCE_CHECK(file.gcount() == static_cast<std::streamsize>(text.size()), kIo, kIndex, ": cannot be read");
  return text;
}

// The shard of each tensor.
std::map<std::string, std::string> read_index(const std::filesystem::path& path) {
  std::map<std::string, std::string> shards;
  const std::string text = read_text(path);
  const std::string where = kIndex;
  const ErrorContext context(where);
  JsonCursor::read_request(text, [&](JsonCursor& json, std::string_view key) {
    if (key != "weight_map") {
      json.skip();
      return;
    }
    json.object("'weight_map'", [&](std::string_view name) {
      const std::string tensor(name);
      shards[tensor] = json.string("the name of a shard");
    });
  });
  SCONCE_CHECK(!shards.empty(), kCorruptPackage, "no 'weight_map', or an empty one");
  return shards;
}

}  // namespace

ModelFolder::ModelFolder(const std::string& directory, const std::string& path) {
  std::string name = below(directory, path);
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  const auto open = [&](const std::string& file) -> std::filesystem::path {
    files_.push_back(std::make_unique<WeightsFile>(directory, file));
    return files_.back()->path();
  };
  if (name.ends_with(".safetensors")) {
    const std::filesystem::path file = open(name);
    weights_ = WeightFile::open(file, {.format = WeightFormat::kSafetensors});
    return;
  }
  const std::string prefix = name.empty() || name == "." ? "" : name + "/";
  // The folder has a single file, or an index of several files.
  std::filesystem::path single;
  const std::exception_ptr problem = exception_of([&] { single = open(prefix + "model.safetensors"); });
  if (!problem) {
    weights_ = WeightFile::open(single, {.format = WeightFormat::kSafetensors});
    return;
  }
  if (describe_failure(problem).code != ErrorCode::kNotFound) std::rethrow_exception(problem);
  std::filesystem::path index;
  const std::exception_ptr no_index = exception_of([&] { index = open(prefix + kIndex); });
  if (no_index) {
    SCONCE_CHECK(describe_failure(no_index).code != ErrorCode::kNotFound, kNotFound,
                 "no model.safetensors and no model.safetensors.index.json in the folder below weights_dir: '",
                 excerpt(path), "'");
    std::rethrow_exception(no_index);
  }
  const std::map<std::string, std::string> shards = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, shard] : shards) names.insert(shard);
  std::vector<std::filesystem::path> paths;
  for (const std::string& shard : names) {
    SCONCE_CHECK(shard.find('/') == std::string::npos && shard.ends_with(".safetensors"), kCorruptPackage, kIndex,
                 ": not the name of a shard: '", excerpt(shard), "'");
    paths.push_back(open(prefix + shard));
  }
  weights_ = WeightFile::open_shards(paths);
  std::set<std::string_view> there;
  for (const WeightEntry& entry : weights_->entries()) there.insert(entry.name);
  for (const auto& [tensor, shard] : shards)
    SCONCE_CHECK(there.contains(tensor), kCorruptPackage, kIndex, " names the tensor '", excerpt(tensor), "', which '",
                 excerpt(shard), "' does not have");
}

}  // namespace sconce::server::rollout
