// Package: the content of a package (models, signature, call spec, weights). None of its code runs. Immutable once
// open, so thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/device.h"
#include "sconce/dtype.h"

namespace sconce {

// One dimension of an input: fixed (min == max) or a range. Dimensions with equal symbols have equal sizes. A recorded
// minimum of 2 is reported as recorded, since torch.export specialises 0 and 1. Model nevertheless accepts size 1 (on
// the CPU also 0) if every size computed from it stays valid (sizes/size_relations.h) and, on the CPU, the generated
// source shows no access outside its tensors (Dim::smallest).
struct Dim {
  int64_t min = 0;
  int64_t max = INT64_MAX;  // INT64_MAX: unbounded
  // "s77"; for outputs also "2*s77"; empty if the size is fixed or the source has no symbol.
  std::string symbol;
  // For an input with a recorded minimum of 2, or computed from one: the smallest accepted value of its symbols. 2:
  // for smaller values the source accesses memory outside of its tensors.
  int64_t smallest = 0;
  bool is_static() const noexcept { return min == max; }
};

// The range of valid elements of an input according to the generated source: indices of its tables, divisors. Used to
// make dummy inputs. Requests are not checked against it; the model checks them.
struct ValueBounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool not_zero = false;

  bool known() const noexcept { return not_zero || std::isfinite(low) || std::isfinite(high); }
  // The nearest value within the bounds; whole: the nearest integer, if there is one.
  double nearest(double value, bool whole) const noexcept {
    if (!known()) return value;
    if (std::isnan(value)) value = 0;
    const double least = whole && std::ceil(low) <= std::floor(high) ? std::ceil(low) : low;
    const double most = whole && std::ceil(low) <= std::floor(high) ? std::floor(high) : high;
    value = std::max(least, std::min(most, whole ? std::round(value) : value));
    return value != 0 || !not_zero ? value : most >= 1 ? 1 : -1;
  }
};

struct TensorSpec {
  std::string name;            // as in the generated code: "arg0_1", "output0"
  std::optional<DType> dtype;  // nullopt: not recorded (source stripped, or torch 2.6)
  std::optional<Device> device;
  bool has_shape = false;  // false: rank and dims unknown
  std::vector<Dim> dims;
  std::vector<std::optional<int64_t>> strides;  // per dimension; nullopt where dynamic or unknown; empty if unknown
  bool none = false;                            // an output that is always None
  bool may_be_written = true;                   // for inputs: false if the source only reads it
  ValueBounds values{};                         // of an input's elements
};

enum class ConstantType : int8_t { kUnknown = 0, kParameter = 1, kBuffer = 2, kTensorConstant = 3, kFolded = 4 };

struct ConstantSpec {
  std::string name;  // as in the .so: "L__self___weight"
  std::string fqn;   // the user's: "layers.0.weight"; empty if the model has none (folded)
  std::optional<DType> dtype;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;      // storage offset in elements
  uint64_t data_size = 0;  // bytes as stored (padded to 64 on CPU)
  ConstantType type = ConstantType::kUnknown;
  bool folded = false;   // computed at load (runtime constant folding), not stored
  bool mutated = false;  // the graph writes it: each replica has its own
  bool assumed = false;  // nothing says whether the graph writes it, so it is treated as mutated
  bool opaque = false;   // oneDNN-packed
  std::vector<std::byte> opaque_metadata;
  std::optional<Device> device;
};

// torch.utils._pytree treespec.
struct SpecNode {
  enum class Kind { kLeaf, kNone, kTuple, kList, kDict, kOrderedDict, kDefaultDict, kNamedTuple, kDeque, kDataclass };
  Kind kind = Kind::kLeaf;
  std::string type;               // "builtins.dict"; a namedtuple's or dataclass's qualified name
  std::vector<std::string> keys;  // dict keys and field names as text, one per child
  std::vector<bool> int_keys;     // per key: whether it was an integer in Python
  std::vector<SpecNode> children;
  size_t leaves() const noexcept;
};

struct CallSpec {
  SpecNode args;    // tuple of positional arguments
  SpecNode kwargs;  // dict of keyword arguments, in recorded order
  SpecNode result;
  bool known = false;
  // For each input, the index of its leaf (flat over args, then kwargs), where the package or the numbers in the
  // inputs' names show that leaves were dropped; empty if unknown.
  std::vector<size_t> input_leaf;
};

enum class WeightsForm : int8_t { kNone, kEmbedded, kAppended, kBlob, kFiles, kUserProvided };

// Whether the rows of the batch are independent. The batch is the first dimension of all inputs. A row of an output
// then depends only on the same row of the inputs: not on other rows, on its position or on the batch size.
struct RowProof {
  enum class By : int8_t {
    kNothing,
    kExport,  // sconce.export, which stored the result in the package's metadata
    kSource,  // the generated source
  };
  By by = By::kNothing;
  std::string reason{};  // why there is no proof
  bool independent() const noexcept { return by != By::kNothing; }
};

// An access of generated code that is not proved to stay within its tensor for all sizes that the inputs' expressions
// accept. All members are expressions of the inputs' symbols, in Python's form: "3*(s77 // 2) - 1".
struct AccessBound {
  std::string access;             // "kernel cpp_fused_add_0: 'arg1_1'"
  std::vector<std::string> made;  // the access happens if each of them is 0 or more
  // index and count of elements: unless 0 <= element < elements, a request would access other memory
  std::string element, elements;
};

struct ModelSpec {
  std::string name;                                            // "model"
  std::string device_key;                                      // "cpu", "cuda"
  std::string platform, machine, cpu_isa, compute_capability;  // empty: not recorded
  std::string march;      // the recorded -march=, "native" included; empty: unknown
  std::string isa_flags;  // other recorded instruction sets: "avx2 fma f16c"
  std::map<std::string, std::string> metadata;
  bool has_source = false;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<ConstantSpec> constants;  // from the source; ModelInfo has the list of the loaded .so
  // Whether runs may write constants, according to the compiler's placement of them in the .so; true if unknown. A
  // model without source lists no constants before it is loaded.
  bool may_write_constants = false;
  CallSpec call_spec;
  WeightsForm weights_form = WeightsForm::kNone;
  uint64_t weights_bytes = 0;
  RowProof rows;
  std::string why_not_smaller;           // the access because of which a Dim::smallest is 2; empty: there is none
  std::vector<AccessBound> bounds;       // accesses to check per request, for a CPU model whose source was understood
  std::optional<DType> coarsest_buffer;  // bfloat16 or float16, if the graph has a buffer of that dtype
  bool loops = false;                    // the graph has a loop whose end may depend on values
  int threads = 0;                       // num_threads(N) of the compiled kernels; 0: none are parallel or unknown
  std::string so_member;                 // the model's .so in the archive
  uint64_t so_bytes = 0;
  std::vector<std::string> imports;        // undefined symbols of the .so
  std::vector<std::string> proxy_targets;  // operators that are called by name: "aten::_linalg_det.default"
};

// The strides of a tensor of these sizes: as recorded in the package, else dense.
std::vector<int64_t> strides_for(const TensorSpec& spec, std::span<const int64_t> sizes);

// A file of the archive or directory.
struct PackageMember {
  std::string name;    // without the archive's root folder
  uint64_t bytes = 0;  // of its content
  bool deflated = false;
  std::string path{};  // with the root folder
};

// A file of a directory held in memory.
struct MemoryFile {
  std::string path;  // below the directory
  std::span<const std::byte> bytes;
};

class ArchiveReader;  // package_format/archive/archive_reader.h

class Package {
 public:
  // Opens a .pt2 archive, a model's .so, or a directory laid out as an archive. kIo, kCorruptPackage, kUnsupported.
  static std::shared_ptr<const Package> open(const std::filesystem::path& path);

  // Opens an archive or a model's .so from memory, with the same checks. Errors and path() use `name` in place of a
  // path.
  //
  // Only code is copied. Members are views of the bytes, and so are constants, as long as a replica or a tensor uses
  // them. The package holds `owner` that long; without one, the caller keeps the bytes. The bytes must not change
  // meanwhile: unlike a file, memory cannot be watched. Constants that do not start at a multiple of 64 bytes are
  // copied, as from a file: align the bytes to 64 to have one copy of the weights. Constants that the model writes are
  // always copied.
  static std::shared_ptr<const Package> open(std::span<const std::byte> bytes,
                                             std::shared_ptr<const void> owner = nullptr,
                                             const std::string& name = "<memory>");

  // As above, for the files of a directory laid out as an archive.
  static std::shared_ptr<const Package> open(std::span<const MemoryFile> files,
                                             std::shared_ptr<const void> owner = nullptr,
                                             const std::string& name = "<memory>");

  const std::filesystem::path& path() const noexcept { return path_; }
  std::span<const ModelSpec> models() const noexcept { return models_; }
  // "" means the only model, or the one called "model". kNotFound lists the existing names.
  const ModelSpec& model(std::string_view name = {}) const;
  std::string producer() const { return producer_; }  // a guess: "torch 2.10 or later"
  std::vector<PackageMember> members() const;         // in the archive's order
  // The content of a member, by its index in members(); valid as long as the package. kCorruptPackage if its CRC is
  // wrong.
  std::span<const std::byte> content(size_t member) const;
  // Compares the CRC of every member, weights included. kCorruptPackage names the member. progress: called at
  // intervals with the bytes read and the total; an exception from it ends the comparison.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  void verify(const Progress& progress = {}) const;
  const ArchiveReader& archive() const noexcept { return *archive_; }

  ~Package();

 private:
  Package() = default;
  void read_models();
  std::filesystem::path path_;
  std::vector<ModelSpec> models_;
  std::string producer_;
  std::unique_ptr<ArchiveReader> archive_;
};

// Packs a directory with the archive's layout into a .pt2 file that Sconce and PyTorch read. The root folder is named
// after the file's stem. An existing file is replaced only when the new one is complete. kIo, and the errors of
// Package::open if the directory is not a package.
void pack_directory(const std::filesystem::path& directory, const std::filesystem::path& archive);

}  // namespace sconce
