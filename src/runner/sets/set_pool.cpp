#include "src/runner/sets/set_pool.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "src/device/cpu_arena.h"

namespace sconce::runner {
namespace {

// The elements of a dense tensor as they lie.
std::string_view block_of(const Tensor& tensor) { return {static_cast<const char*>(tensor.data()), tensor.bytes()}; }

bool same_form(const Tensor& a, const Tensor& b) {
  const auto same = [](IntSpan x, IntSpan y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  return a.defined() && b.defined() && a.layout() == Layout::kStrided && b.layout() == Layout::kStrided &&
         a.dtype() == b.dtype() && same(a.sizes(), b.sizes()) && same(a.strides(), b.strides()) && a.is_dense() &&
         b.is_dense();
}

// The values are compared on the host.
bool equal(const Tensor& a, const Tensor& b) {
  if (!same_form(a, b)) return false;
  if (a.storage() == b.storage()) return a.storage_offset() == b.storage_offset();
  if (a.bytes() == 0) return true;
  const Tensor here = on_host(a), there = on_host(b);
  return std::memcmp(here.data(), there.data(), here.bytes()) == 0;
}

// The hash of a whole storage's values; 0 if they cannot be compared.
uint64_t hash_of(const Tensor& tensor) {
  if (tensor.layout() != Layout::kStrided || !tensor.is_dense() || tensor.bytes() == 0) return 0;
  const Tensor here = on_host(tensor);
  return std::hash<std::string_view>()(block_of(here)) | 1;
}

// Small pieces of one update's memory live as long as its last one (WeightMemory): if others of them are shared, those
// that remain move, so that the memory goes.
constexpr size_t kSmall = 64 * 1024;

void compact(std::vector<Tensor>& tensors, std::unordered_map<const Storage*, Tensor>& shared) {
  if (std::none_of(shared.begin(), shared.end(), [](const auto& pair) { return pair.second.defined(); })) return;
  for (Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto found = shared.find(tensor.storage().get());
    const Storage& from = *tensor.storage();
    if (found == shared.end() || from.bytes() >= kSmall || from.device().type != DeviceType::kCpu) continue;
    if (!found->second.defined()) {
      StoragePtr storage = allocate_cpu(from.bytes());
      std::memcpy(storage->data(), from.data(), from.bytes());
      storage->set_immutable(from.immutable());
      found->second = Tensor(std::move(storage), tensor.dtype(), tensor.sizes(), tensor.strides(),
                             tensor.storage_offset(), tensor.layout());
    }
    tensor = found->second;
  }
}

bool has_storage(const ConstantSet& set, const Storage* storage) {
  const std::vector<Tensor>& tensors = set.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return t.defined() && t.storage().get() == storage; });
}

}  // namespace

bool SetPool::is_packaged(const Tensor& tensor, size_t constant) const noexcept {
  const Tensor& ours = packaged_->tensors()[constant];
  return ours.defined() && ours.storage() == tensor.storage();
}

template <class F>
void SetPool::for_each_counted(const ConstantSet& set, F&& visit) const {
  const std::vector<Tensor>& tensors = set.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || is_packaged(tensors[i], i)) continue;
    const Storage* const storage = tensors[i].storage().get();
    bool before = false;
    for (size_t j = 0; j < i && !before; ++j) before = tensors[j].defined() && tensors[j].storage().get() == storage;
    if (!before) visit(storage, i);
  }
}

std::shared_ptr<const ConstantSet> SetPool::share(const ConstantSet& set, const ConstantSet& active) const {
  std::vector<Tensor> tensors = set.tensors();
  std::unordered_map<const Storage*, Tensor> found;  // aliases of one storage stay aliases
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i];
    if (!tensor.defined() || is_packaged(tensor, i) || tensor.bytes() == 0) continue;
    // Replicas have such buffers, whatever set they run.
    if (table_.stored()[i].spec.mutated && active.tensors()[i].defined()) {
      tensor = active.tensors()[i];
      continue;
    }
    if (const auto known = found.find(tensor.storage().get()); known != found.end()) {
      if (known->second.defined()) tensor = known->second;
      continue;
    }
    const Storage* const own = tensor.storage().get();
    Tensor shared;
    if (equal(tensor, active.tensors()[i])) {
      shared = active.tensors()[i];
    } else if (equal(tensor, packaged_->tensors()[i])) {
      shared = packaged_->tensors()[i];
    } else if (const uint64_t hash = hash_of(tensor)) {
      std::vector<Tensor> candidates;
      {
        const MutexLock lock(mutex_);
        const auto [first, last] = by_hash_.equal_range(hash);
        for (auto it = first; it != last; ++it) candidates.push_back(entries_.at(it->second).tensor);
      }
      const auto same = std::find_if(candidates.begin(), candidates.end(),
                                     [&](const Tensor& candidate) { return equal(tensor, candidate); });
      if (same != candidates.end()) shared = *same;
    }
    found.emplace(own, shared);
    if (shared.defined()) tensor = shared;
  }
  compact(tensors, found);
  return std::make_shared<ConstantSet>(std::move(tensors));
}

std::string_view SetPool::would_drop(const ConstantSet& set, const ConstantSet& active) const {
  for (size_t i = 0; i < table_.stored().size(); ++i) {
    const Tensor &own = set.tensors()[i], &replicas = active.tensors()[i];
    if (table_.stored()[i].spec.assumed && own.defined() && replicas.defined() && !equal(own, replicas))
      return table_.stored()[i].public_name();
  }
  return {};
}

void SetPool::add(const ConstantSet& set) {
  std::vector<std::pair<const Storage*, Entry>> added;
  for_each_counted(set, [&](const Storage* storage, size_t constant) {
    const Tensor& tensor = set.tensors()[constant];
    bool known = false;
    {
      const MutexLock lock(mutex_);
      known = entries_.contains(storage);
    }
    added.emplace_back(storage, Entry{tensor, known ? 0 : hash_of(tensor), 1});
  });
  const MutexLock lock(mutex_);
  struct Undo {
    SetPool& pool;
    const std::vector<std::pair<const Storage*, Entry>>& added;
    size_t count = 0;
    bool done = false;
    ~Undo() {
      pool.mutex_.assert_held();
      while (!done && count > 0) pool.release(added[--count].first);
    }
  } undo{*this, added};
  for (const auto& [storage, entry] : added) {
    const auto [it, fresh] = entries_.emplace(storage, Entry{entry.tensor, 0, 0});
    ++it->second.sets;
    ++undo.count;
    if (!fresh || entry.hash == 0) continue;
    by_hash_.emplace(entry.hash, storage);
    it->second.hash = entry.hash;
  }
  undo.done = true;
}

void SetPool::release(const Storage* storage) noexcept {
  const auto it = entries_.find(storage);
  if (it == entries_.end() || --it->second.sets > 0) return;
  const auto [first, last] = by_hash_.equal_range(it->second.hash);
  const auto listed = std::find_if(first, last, [storage](const auto& pair) { return pair.second == storage; });
  if (listed != last) by_hash_.erase(listed);
  entries_.erase(it);
}

void SetPool::remove(const ConstantSet& set) noexcept {
  const MutexLock lock(mutex_);
  for_each_counted(set, [&](const Storage* storage, size_t) {
    mutex_.assert_held();
    release(storage);
  });
}

SetPool::Amount SetPool::further(const ConstantSet& set, const ConstantSet& active) const {
  Amount amount;
  const MutexLock lock(mutex_);
  for_each_counted(set, [&](const Storage* storage, size_t) {
    mutex_.assert_held();
    if (!entries_.contains(storage) && !has_storage(active, storage)) amount.add(*storage);
  });
  return amount;
}

SetPool::Amount SetPool::own(const ConstantSet& set, const ConstantSet& active) const {
  Amount amount;
  const MutexLock lock(mutex_);
  for_each_counted(set, [&](const Storage* storage, size_t) {
    mutex_.assert_held();
    const auto it = entries_.find(storage);
    if ((it == entries_.end() || it->second.sets == 1) && !has_storage(active, storage)) amount.add(*storage);
  });
  return amount;
}

SetPool::Amount SetPool::amount(const ConstantSet& active) const {
  std::vector<const Storage*> shared;
  for (const Tensor& tensor : active.tensors())
    if (tensor.defined()) shared.push_back(tensor.storage().get());
  std::sort(shared.begin(), shared.end());
  Amount amount;
  const MutexLock lock(mutex_);
  for (const auto& [storage, entry] : entries_)
    if (!std::binary_search(shared.begin(), shared.end(), storage)) amount.add(*storage);
  return amount;
}

}  // namespace sconce::runner
