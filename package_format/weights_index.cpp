#include "package_format/weights_index.h"

#include <algorithm>
#include <cstring>

#include "package_format/text/json_text.h"
#include "package_format/text/json_value.h"
#include "package_format/torch_file.h"
#include "sconce/check.h"

namespace sconce {
namespace {

using json = SortedJson;

constexpr std::string_view kWeightsFolder = "data/weights/";
constexpr std::string_view kConstantsFolder = "data/constants/";
constexpr size_t kAppendedPlaceholderBytes = 16;  // the size of the appended weights, then the magic
constexpr size_t kMagicBytes = 8;
constexpr uintptr_t kAlignment = 64;

uint64_t stored_bytes(const ModelSpec& model) {
  uint64_t sum = 0;
  for (const ConstantSpec& constant : model.constants) {
    if (constant.folded) continue;
    SCONCE_CHECK(!__builtin_add_overflow(sum, constant.data_size, &sum), kCorruptPackage,
                 "constant lies about its size: ", constant.name);
  }
  return sum;
}

size_t stored_count(const ModelSpec& model) {
  return static_cast<size_t>(std::count_if(model.constants.begin(), model.constants.end(),
                                           [](const ConstantSpec& constant) { return !constant.folded; }));
}

struct Embedded {
  std::span<const std::byte> bytes;  // between the two symbols
  bool writable = true;              // unknown without the symbols
};

Embedded find_embedded(const ElfImage& so, const ModelSpec& model) {
  const auto start = so.exported("_binary_constants_bin_start");
  const auto end = so.exported("_binary_constants_bin_end");
  if (!start || !end) return {};
  SCONCE_CHECK(start->st_value <= end->st_value, kCorruptPackage, "weights end before they start: ", model.so_member);
  const uint64_t size = end->st_value - start->st_value;
  const Embedded found{so.bytes_at(start->st_value, size), so.writable(start->st_value)};
  SCONCE_CHECK(found.bytes.size() == size, kCorruptPackage, "weights lie outside the library: ", model.so_member);
  return found;
}

// Finds weights after the library's last section. The placeholder describes them: its first number is the size of the
// weights and of the magic after them, its second is the magic.
std::span<const std::byte> find_appended(std::span<const std::byte> so, std::span<const std::byte> placeholder) {
  if (placeholder.size() != kAppendedPlaceholderBytes) return {};
  uint64_t size, magic, at_end;
  std::memcpy(&size, placeholder.data(), sizeof size);
  std::memcpy(&magic, placeholder.data() + sizeof size, sizeof magic);
  if (size < kMagicBytes || size > so.size()) return {};
  std::memcpy(&at_end, so.data() + so.size() - kMagicBytes, sizeof at_end);
  return magic == at_end ? so.last(size).first(size - kMagicBytes) : std::span<const std::byte>();
}

// Places constants one after the other, each with the length that the source gives.
void locate_in_order(std::span<const std::byte> bytes, const ModelSpec& model, const std::string& where,
                     WeightsIndex& index) {
  SCONCE_CHECK(stored_bytes(model) == bytes.size(), kCorruptPackage,
               "weights are not as long as the constants: ", where, ": ", bytes.size(), " and ", stored_bytes(model),
               " bytes");
  uint64_t at = 0;
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const ConstantSpec& constant = model.constants[i];
    if (constant.folded) continue;
    index.locations.push_back({i, bytes.data() + at, constant.offset, constant.data_size});
    at += constant.data_size;
  }
}

// Bytes that the constant touches, from the start of the storage; nullopt if that overflows.
std::optional<uint64_t> bytes_needed(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                                     int64_t offset, DType dtype) {
  if (shape.size() != strides.size() || offset < 0) return std::nullopt;
  int64_t last = offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    int64_t reach;
    if (shape[d] < 0 || strides[d] < 0 || __builtin_mul_overflow(shape[d] - 1, strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return std::nullopt;
  }
  uint64_t bytes;
  if (__builtin_mul_overflow(static_cast<uint64_t>(last) + 1, dtype_bytes(dtype), &bytes)) return std::nullopt;
  return bytes;
}

json parse_object(const ArchiveReader& archive, const ArchiveMember& member) {
  json value = parse_json(archive.read_text(member), "member " + member.path);
  SCONCE_CHECK(value.is_object(), kCorruptPackage, "member is not a JSON object: ", member.path);
  return value;
}

std::optional<std::vector<int64_t>> integers(const json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<int64_t> values;
  for (const json& value : list) {
    if (!value.is_number_integer()) return std::nullopt;
    values.push_back(value.get<int64_t>());
  }
  return values;
}

// A constant stored in a file, which others may share.
struct FileEntry {
  std::string path;  // without the root folder
  bool pickled = false;
  int64_t offset = 0;
};

void locate_in_file(const ArchiveReader& archive, const FileEntry& entry, size_t i, const ModelSpec& model,
                    WeightsIndex& index) {
  const ConstantSpec& constant = model.constants[i];
  const ArchiveMember* member = archive.find(entry.path);
  SCONCE_CHECK(member != nullptr, kCorruptPackage, "constant's file is missing: ", constant.fqn, ": ", entry.path);
  const std::span<const std::byte> content = archive.view(*member);
  const std::span<const std::byte> bytes = entry.pickled ? torch_file_storage(content, member->path) : content;
  const auto needed = constant.dtype ? bytes_needed(constant.shape, constant.strides, entry.offset, *constant.dtype)
                                     : std::optional<uint64_t>();
  SCONCE_CHECK(needed && *needed <= bytes.size(), kCorruptPackage, "constant does not fit its file: ", constant.fqn,
               ": ", member->path, " has ", bytes.size(), " bytes");
  index.locations.push_back({i, bytes.data(), entry.offset, bytes.size()});
}

// weights_config.json: {FQN: [file, shape, strides, offset]}. torch.save wrote each file, a tensor.
FileEntry read_pickled_entry(const json& entries, const ConstantSpec& constant, const std::string& path) {
  const auto at = entries.find(constant.fqn);
  SCONCE_CHECK(at != entries.end(), kCorruptPackage, "constant has no file: ", constant.fqn, ": ", path);
  const bool sound = at->is_array() && at->size() == 4 && (*at)[0].is_string() && (*at)[3].is_number_integer() &&
                     integers((*at)[1]) == constant.shape && integers((*at)[2]) == constant.strides;
  SCONCE_CHECK(sound, kCorruptPackage, "constant's entry does not fit the source: ", constant.fqn, ": ", path);
  return {std::string(kWeightsFolder).append((*at)[0].get_ref<const std::string&>()), true, (*at)[3].get<int64_t>()};
}

// The payload configs of an ExportedProgram: {"config": {FQN: {"path_name", "use_pickle", "tensor_meta": {"sizes":
// [{"as_int"}], "strides", "storage_offset"}}}}. Each file has the raw bytes of a storage.
class ProgramWeights {
 public:
  ProgramWeights(const ArchiveReader& archive, const ModelFiles& files) {
    add(archive, files.program_weights, kWeightsFolder);
    add(archive, files.program_constants, kConstantsFolder);
  }

  bool has_all(const ModelSpec& model) const {
    return !sources_.empty() && std::all_of(model.constants.begin(), model.constants.end(), [&](const auto& constant) {
      return constant.folded || find(constant.fqn).first != nullptr;
    });
  }

  FileEntry read(const ConstantSpec& constant) const {
    const auto [value, folder] = find(constant.fqn);
    SCONCE_CHECK(value != nullptr, kCorruptPackage, "constant has no file: ", constant.fqn);
    const json& meta = value->is_object() ? value->value("tensor_meta", json()) : *value;
    const bool sound = value->is_object() && value->value("path_name", json()).is_string() && meta.is_object() &&
                       symbolic(meta.value("sizes", json())) == constant.shape &&
                       symbolic(meta.value("strides", json())) == constant.strides &&
                       symbolic(json::array({meta.value("storage_offset", json())})).has_value();
    SCONCE_CHECK(sound, kCorruptPackage, "constant's entry does not fit the source: ", constant.fqn);
    const int64_t offset = symbolic(json::array({meta["storage_offset"]}))->front();
    return {std::string(folder).append((*value)["path_name"].get_ref<const std::string&>()),
            value->value("use_pickle", json(false)) == true, offset};
  }

 private:
  struct Source {
    json value;
    std::string_view folder;
  };

  void add(const ArchiveReader& archive, const ArchiveMember* member, std::string_view folder) {
    if (member == nullptr) return;
    json value = parse_object(archive, *member);
    SCONCE_CHECK(value.contains("config") && value["config"].is_object(), kCorruptPackage,
                 "member has no list of weights: ", member->path);
    sources_.push_back({std::move(value["config"]), folder});
  }

  std::pair<const json*, std::string_view> find(const std::string& fqn) const {
    for (const Source& source : sources_)
      if (const auto at = source.value.find(fqn); at != source.value.end()) return {&*at, source.folder};
    return {nullptr, {}};
  }

  // [{"as_int": 5}]
  static std::optional<std::vector<int64_t>> symbolic(const json& list) {
    if (!list.is_array()) return std::nullopt;
    std::vector<int64_t> values;
    for (const json& value : list) {
      const json number = value.is_object() ? value.value("as_int", json()) : json();
      if (!number.is_number_integer()) return std::nullopt;
      values.push_back(number.get<int64_t>());
    }
    return values;
  }

  std::vector<Source> sources_;
};

void locate_in_files(const ArchiveReader& archive, const ModelFiles& files, const ModelSpec& model,
                     WeightsIndex& index) {
  const json pickled = files.weights_config ? parse_object(archive, *files.weights_config) : json();
  const ProgramWeights program(archive, files.weights_config ? ModelFiles() : files);
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const ConstantSpec& constant = model.constants[i];
    if (constant.folded) continue;
    const FileEntry entry = files.weights_config ? read_pickled_entry(pickled, constant, files.weights_config->path)
                                                 : program.read(constant);
    locate_in_file(archive, entry, i, model, index);
  }
}

}  // namespace

WeightsSummary summarise_weights(const ArchiveReader& archive, const ModelFiles& files, const ElfImage& so,
                                 bool include_weights, const ModelSpec& model) {
  const Embedded embedded = find_embedded(so, model);
  WeightsSummary summary{.form = WeightsForm::kNone, .bytes = 0, .writable = embedded.writable};
  if (model.has_source && stored_count(model) == 0) return summary;
  if (files.weights_blob) {
    summary.form = WeightsForm::kBlob;
    summary.bytes = files.weights_blob->size;
    return summary;
  }
  // Without a source, fewer bytes than a placeholder are the filler of an empty section.
  if (model.has_source ? include_weights : embedded.bytes.size() >= kAppendedPlaceholderBytes) {
    const auto appended = find_appended(archive.view(*files.so), embedded.bytes);
    summary.form = appended.empty() ? WeightsForm::kEmbedded : WeightsForm::kAppended;
    summary.bytes = appended.empty() ? embedded.bytes.size() : appended.size();
    return summary;
  }
  if (!model.has_source) return summary;
  const bool in_files = files.weights_config != nullptr || ProgramWeights(archive, files).has_all(model);
  summary.form = in_files ? WeightsForm::kFiles : WeightsForm::kUserProvided;
  summary.bytes = stored_bytes(model);
  return summary;
}

WeightsIndex locate_weights(const Package& package, const ModelSpec& model) {
  WeightsIndex index;
  index.form = model.weights_form;
  if (model.weights_form == WeightsForm::kNone || model.weights_form == WeightsForm::kUserProvided) return index;
  SCONCE_CHECK(model.has_source, kFailedPrecondition,
               "package has no generated source, which lists the constants: model ", model.name);
  index.locations.reserve(model.constants.size());
  const ArchiveReader& archive = package.archive();
  const ModelFiles files = find_files(archive, model.so_member);
  switch (model.weights_form) {
    case WeightsForm::kEmbedded: {
      const ElfImage so(archive.view(*files.so), files.so->path);
      locate_in_order(find_embedded(so, model).bytes, model, files.so->path, index);
      break;
    }
    case WeightsForm::kAppended: {
      const std::span<const std::byte> bytes = archive.view(*files.so);
      const ElfImage so(bytes, files.so->path);
      locate_in_order(find_appended(bytes, find_embedded(so, model).bytes), model, files.so->path, index);
      break;
    }
    case WeightsForm::kBlob:
      locate_in_order(archive.view(*files.weights_blob), model, files.weights_blob->path, index);
      break;
    case WeightsForm::kFiles:
      locate_in_files(archive, files, model, index);
      break;
    case WeightsForm::kNone:
    case WeightsForm::kUserProvided:
      break;
  }
  index.aligned = std::all_of(index.locations.begin(), index.locations.end(), [](const WeightLocation& location) {
    return location.bytes == 0 || reinterpret_cast<uintptr_t>(location.data) % kAlignment == 0;
  });
  return index;
}

}  // namespace sconce
