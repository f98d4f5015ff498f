#include "src/runner/constants/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "src/runner/constants/finite_check.h"
#include "src/support/excerpt.h"
#include "src/tensor/copy.h"

namespace sconce::runner {
namespace {

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  contiguous_strides(shape, strides.data());
  return strides;
}

// Ignores the strides of dimensions of size 1.
bool is_row_major(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

// Whether Inductor turns such a constant into a literal.
bool is_inlined(const std::vector<int64_t>& shape) {
  constexpr int64_t kMaxElements = 8;
  return shape.empty() || (shape.size() == 1 && shape[0] <= kMaxElements);
}

bool is_empty(const std::vector<int64_t>& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// Memory for one tensor that is only passed through.
Tensor scratch_for(const WeightEntry& entry, size_t bytes) {
  size_t total = 0;
  const size_t offset = WeightMemory::place(bytes, total);
  const MemoryPromise promise("a weight update", total);
  const std::unique_ptr<WeightMemory, WeightMemory::Unref> memory(new WeightMemory(total));
  return Tensor(memory->piece(offset, bytes), entry.dtype, entry.shape, row_major(entry.shape));
}

std::span<std::byte> storage_bytes(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.storage()->data()), tensor.storage()->bytes()};
}

// As copy(), into a constant that may be an expanded view: one element in memory stands for all along a dimension of
// stride 0, so the values must be equal there.
void assign(const Tensor& values, Tensor& target, const std::string& name) {
  std::vector<int64_t> sizes(target.sizes().begin(), target.sizes().end());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (target.stride(static_cast<int64_t>(d)) == 0 && sizes[d] > 1) sizes[d] = 1;
  if (std::equal(sizes.begin(), sizes.end(), target.sizes().begin())) return copy(values, target);
  Tensor elements = target.as_strided(sizes, target.strides(), target.storage_offset());
  copy(values.as_strided(sizes, values.strides(), values.storage_offset()), elements);
  Tensor given = Tensor::empty(target.sizes(), target.dtype()), seen = Tensor::empty(target.sizes(), target.dtype());
  copy(values, given);
  copy(target, seen);
  SCONCE_CHECK(std::memcmp(given.data(), seen.data(), given.bytes()) == 0, kInvalidArgument, "constant '",
               excerpt(name), "': it is an expanded view of ", elements.numel(), " of its ", target.numel(),
               " elements (strides ", to_string(target.strides()), "), and the new values differ where it has one");
}

}  // namespace

Staging::Staging(const ConstantTable& table, std::span<const WeightEntry> entries, Rules rules)
    : table_(table), rules_(std::move(rules)), named_(table.stored().size()), named_by_(named_.size()) {
  std::sort(rules_.ignore.begin(), rules_.ignore.end());
  add(entries);
  if (!rules_.gradual) check_names();
}

void Staging::add(std::span<const WeightEntry> entries) {
  check_known(entries);
  for (const WeightEntry& declared : entries) {
    Entry& entry = entries_.emplace_back();
    entry.declared = declared;
    if (is_ignored(declared.name))
      ignore(entry);
    else
      add_targets(entry);
  }
}

void Staging::check_names() const {
  check_ignored();
  if (rules_.full) check_named();
}

bool Staging::is_ignored(std::string_view name) const noexcept {
  return std::binary_search(rules_.ignore.begin(), rules_.ignore.end(), name);
}

// Names all unknown entries at once, so that all can be ignored at once.
void Staging::check_known(std::span<const WeightEntry> entries) const {
  std::vector<const WeightEntry*> unknown;
  for (const WeightEntry& entry : entries)
    if (!is_ignored(entry.name) && !table_.has(entry.name) &&
        std::none_of(entry.tied.begin(), entry.tied.end(), [&](const std::string& name) { return table_.has(name); }))
      unknown.push_back(&entry);
  if (unknown.empty()) return;
  const bool inlined =
      std::all_of(unknown.begin(), unknown.end(), [](const WeightEntry* entry) { return is_inlined(entry->shape); });
  std::string names;  // as short as any text from outside
  size_t more = unknown.size();
  for (const WeightEntry* entry : unknown) {
    if (!names.empty() && names.size() + entry->name.size() > kExcerptBytes) break;
    names += (names.empty() ? "'" : ", '") + excerpt(entry->name) + "'";
    --more;
  }
  if (more > 0) names += " and " + std::to_string(more) + " more";
  SCONCE_FAIL(kNotFound, "the model has no constant ", names,
              inlined ? ": the compiler writes tensors of no dimension, and of one with up to 8 elements, into the "
                        "code, where they cannot be replaced, unless it is told always_keep_tensor_constants or "
                        "aot_inductor.use_runtime_constant_folding"
                      : ": what another model has, or what this one's graph makes no use of",
              "; ignore=NAME,... leaves such names out");
}

// The bytes still arrive and need a place.
void Staging::ignore(Entry& entry) const {
  int64_t bytes = static_cast<int64_t>(dtype_bytes(entry.declared.dtype));
  for (const int64_t size : entry.declared.shape)
    SCONCE_CHECK(size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes), kInvalidArgument, "constant '",
                 excerpt(entry.declared.name), "': invalid sizes");
  entry.bytes = static_cast<size_t>(bytes);
  entry.ignored = true;
}

// A misspelt name ignores nothing, and a name that is gone need not be ignored any more.
void Staging::check_ignored() const {
  for (const std::string& name : rules_.ignore) {
    const auto is_it = [&](const Entry& entry) { return entry.ignored && entry.declared.name == name; };
    SCONCE_CHECK(table_.has(name) || std::any_of(entries_.begin(), entries_.end(), is_it), kInvalidArgument,
                 "neither the weights nor the model have '", excerpt(name), "', which is to be ignored");
  }
}

void Staging::add_targets(Entry& entry) {
  entry.tied = !entry.declared.tied.empty();
  if (table_.has(entry.declared.name)) add_targets(entry, entry.declared.name);
  for (const std::string& name : entry.declared.tied)
    if (table_.has(name) && !is_ignored(name)) add_targets(entry, name);
  // Values are brought to the first layout, which should be row-major if one is.
  std::stable_partition(entry.targets.begin(), entry.targets.end(), [](const Target& t) { return t.row_major; });
}

void Staging::add_targets(Entry& entry, const std::string& name) {
  for (const size_t i : table_.indices(name)) {
    const ConstantSpec& spec = table_.stored()[i].spec;
    SCONCE_CHECK(!spec.opaque, kUnsupported, "constant '", excerpt(name),
                 "' is packed by the compiler (oneDNN) and cannot be replaced");
    SCONCE_CHECK(!spec.dtype || entry.declared.dtype == *spec.dtype, kInvalidArgument, "constant '", excerpt(name),
                 "': expected ", dtype_name(*spec.dtype), ", got ", dtype_name(entry.declared.dtype));
    SCONCE_CHECK(entry.declared.shape == spec.shape, kInvalidArgument, "constant '", excerpt(name),
                 "': expected shape ", to_string(IntSpan(spec.shape)), ", got ",
                 excerpt(to_string(IntSpan(entry.declared.shape))));
    entry.bytes = storage_bytes_needed(spec.shape, row_major(spec.shape), 0, dtype_bytes(entry.declared.dtype));
    entry.tied = entry.tied || table_.is_tied(i);
    if (is_named(i)) continue;
    named_[i] = true;
    named_by_[i] = entries_.size() - 1;
    const auto same = std::find_if(entry.targets.begin(), entry.targets.end(), [&](const Target& target) {
      return table_.stored()[target.constants.front()].spec.strides == spec.strides;
    });
    if (same != entry.targets.end()) {
      same->constants.push_back(i);
      continue;
    }
    Target& target = entry.targets.emplace_back();
    target.constants.push_back(i);
    target.row_major = is_empty(spec.shape) || is_row_major(spec.shape, spec.strides);
    target.bytes = storage_bytes_needed(spec.shape, spec.strides, 0, dtype_bytes(entry.declared.dtype));
  }
}

void Staging::check_named() const {
  for (size_t i = 0; i < named_.size(); ++i) {
    const StoredConstant& constant = table_.stored()[i];
    if (named_[i] || constant.may_be_left_out()) continue;
    SCONCE_CHECK(!constant.spec.opaque, kUnsupported, "a full update is not possible: constant '",
                 constant.public_name(), "' is packed by the compiler (oneDNN) and cannot be replaced");
    SCONCE_FAIL(kInvalidArgument, "a full update must name constant '", constant.public_name(), "'");
  }
}

void Staging::allocate() {
  allocated_ = true;
  const std::span<Entry> entries = std::span(entries_).subspan(placed_);
  if (!rules_.keep || entries.empty()) return;
  size_t total = 0;
  for (Entry& entry : entries)
    for (Target& target : entry.targets) target.offset = WeightMemory::place(target.bytes, total);
  if (!rules_.device) promise_ = MemoryPromise("a weight update", total);
  const std::unique_ptr<WeightMemory, WeightMemory::Unref> memory(new WeightMemory(total));
  for (Entry& entry : entries)
    for (Target& target : entry.targets) {
      const ConstantSpec& spec = table_.stored()[target.constants.front()].spec;
      target.tensor =
          Tensor(memory->piece(target.offset, target.bytes), entry.declared.dtype, spec.shape, spec.strides);
    }
  placed_ = entries_.size();
}

Staging::Entry& Staging::at(size_t entry, const char* what) {
  SCONCE_CHECK(allocated_, kFailedPrecondition, what, ": no entries have been declared");
  SCONCE_CHECK(entry < entries_.size(), kInvalidArgument, what, ": no entry ", entry, ", there are ", entries_.size());
  SCONCE_CHECK(!entries_[entry].complete, kFailedPrecondition, what, ": constant '", entries_[entry].declared.name,
               "' is complete already");
  return entries_[entry];
}

std::span<std::byte> Staging::memory(size_t index) {
  Entry& entry = at(index, "memory");
  spare_.clear();
  if (!entry.asked) {
    const bool direct = rules_.keep && !entry.targets.empty() && entry.targets.front().row_major;
    // Entries that go straight to a device need no host memory.
    if (rules_.device && rules_.keep)
      for (const Target& target : entry.targets) entry.promises.emplace_back("a weight update", target.bytes);
    if (entry.ignored)  // whatever its rank
      entry.scratch = scratch_for({{}, DType::kUInt8, {static_cast<int64_t>(entry.bytes)}}, entry.bytes);
    else if (!direct)
      entry.scratch = scratch_for(entry.declared, entry.bytes);
    entry.handed_out = storage_bytes(direct ? entry.targets.front().tensor : entry.scratch);
    entry.asked = true;
  }
  return entry.handed_out;
}

void Staging::scan(const Entry& entry, std::span<const std::byte> values) const {
  if (!rules_.check_finite) return;
  if (const auto found = first_not_finite(entry.declared.dtype, values))
    SCONCE_FAIL(kInvalidArgument, "constant '", excerpt(entry.declared.name), "': element ", *found, " of ",
                excerpt(to_string(IntSpan(entry.declared.shape))), " is not finite");
}

void Staging::complete(size_t index) {
  Entry& entry = at(index, "complete");
  SCONCE_CHECK(entry.asked || entry.bytes == 0, kFailedPrecondition, "complete: constant '", entry.declared.name,
               "' has no values yet");
  if (!entry.ignored) scan(entry, entry.handed_out);
  if (rules_.keep && entry.bytes > 0 && !entry.targets.empty()) {
    const Tensor& values = entry.scratch.defined() ? entry.scratch : entry.targets.front().tensor;
    for (Target& target : entry.targets)
      if (target.tensor.storage() != values.storage()) assign(values, target.tensor, entry.declared.name);
  }
  entry.handed_out = {};
  entry.complete = true;
  compare_twins(index);
}

void Staging::check_complete() const {
  SCONCE_CHECK(allocated_, kFailedPrecondition, "finish: no entries have been declared");
  for (const Entry& entry : entries_)
    SCONCE_CHECK(entry.complete, kFailedPrecondition, "finish: constant '", entry.declared.name, "' is not complete");
  if (rules_.gradual) check_names();
}

std::shared_ptr<const ConstantSet> Staging::finish(const ConstantSet& base) {
  check_complete();
  spare_.clear();
  std::vector<Tensor> tensors = base.tensors();
  for (Entry& entry : entries_)
    for (Target& target : entry.targets) {
      target.tensor.storage()->set_immutable(true);
      for (const size_t i : target.constants) tensors[i] = target.tensor;
    }
  auto set = std::make_shared<ConstantSet>(std::move(tensors));
  set->keep_blocks(std::move(blocks_));
  return set;
}

}  // namespace sconce::runner
