#include "package_format/wrapper/rows/row_state.h"

#include <algorithm>

namespace sconce::rows {
namespace {

constexpr std::string_view kMeet = "values of several rows meet";
// The number of elements that a tensor spans.
Polynomial elements_of(const std::vector<Polynomial>& sizes, const std::vector<Polynomial>& strides) {
  if (sizes.size() != strides.size()) return Polynomial::unknown();
  Polynomial last(1);
  for (size_t d = 0; d < sizes.size(); ++d) last = last + (sizes[d] - Polynomial(1)) * strides[d];
  return last;
}

constexpr std::string_view kPlacedValue = "a value depends on a row's place or on the number of rows";

}  // namespace

int RowState::reason(std::string_view why) {
  std::string text = place_;
  if (!text.empty()) text += ": ";
  text += why;
  const auto [at, added] = known_reasons_.emplace(text, static_cast<int>(reasons_.size()));
  if (added) reasons_.push_back(std::move(text));
  return at->second;
}

Dependence RowState::join(const Dependence& a, const Dependence& b) {
  if (a.reason >= 0) return a;
  if (b.reason >= 0) return b;
  if (a.row < 0 || a.row == b.row) return b;
  if (b.row < 0) return a;
  return mixed(kMeet);
}

std::optional<Polynomial> RowState::per_row(const Polynomial& value) const {
  Polynomial inner, rest;
  if (!value.coefficient(batch_, inner, rest) || !rest.is(0) || inner.is(0)) return std::nullopt;
  if ((atoms_.nature(inner) & (kPlaced | kData)) != 0) return std::nullopt;
  return inner;
}

Atom RowState::data(const Dependence& dependence) {
  if (bounds_) return atoms_.any(dependence.row >= 0 ? kSized : kFixed);
  const Atom atom = atoms_.index(kData);
  data_.emplace(atom, dependence);
  return atom;
}

Dependence RowState::of_data(const Polynomial& value) {
  Dependence result;
  if ((atoms_.nature(value) & kData) == 0) return result;
  for (const Atom atom : atoms_.data(value))
    if (const auto at = data_.find(atom); at != data_.end()) result = join(result, at->second);
  return result;
}

Dependence RowState::of_number(const Polynomial& value) {
  if (bounds_) return bounds_->sized(value) ? Dependence{0, -1} : Dependence{};
  if ((atoms_.nature(value) & kPlaced) != 0) return mixed(kPlacedValue);
  return of_data(value);
}

int RowState::add_mixed(std::string_view name, std::string_view why) {
  storages_.push_back({.name = name, .kind = Storage::Kind::kUnknown, .stride = {}, .span = {}, .mixed = reason(why)});
  return static_cast<int>(storages_.size()) - 1;
}

int RowState::add_storage(std::string_view name, const std::vector<Polynomial>& sizes,
                          const std::vector<Polynomial>& strides) {
  if (bounds_) {
    Storage storage{.name = name, .kind = Storage::Kind::kShared, .stride = {}, .span = {}};
    storage.elements = elements_of(sizes, strides);
    storages_.push_back(std::move(storage));
    return static_cast<int>(storages_.size()) - 1;
  }
  Storage storage{.name = name, .kind = Storage::Kind::kShared, .stride = {}, .span = {}};
  const auto carries = [&](const Polynomial& value) { return (atoms_.nature(value) & (kPlaced | kData)) != 0; };
  bool clear = sizes.size() == strides.size();
  std::optional<size_t> batch;
  for (size_t d = 0; clear && d < sizes.size(); ++d) {
    if (!carries(sizes[d])) continue;
    const std::optional<Polynomial> inner = per_row(sizes[d]);
    clear = !batch && inner && !carries(strides[d]);
    if (!clear) break;
    batch = d;
    storage.kind = Storage::Kind::kRows;
    storage.stride = *inner * strides[d];
    storage.span = storage.stride * Polynomial::of(batch_);
  }
  for (size_t d = 0; clear && d < sizes.size(); ++d) {
    if (d == batch || sizes[d].is(1) || !carries(strides[d])) continue;
    Polynomial whole, rest;
    clear = batch && strides[d].split(storage.span, whole, rest) && rest.is(0) && !carries(whole);
    storage.outer = true;
  }
  if (!clear) {
    return add_mixed(name, "'" + std::string(name) + "' has no dimension for the rows alone");
  }
  storages_.push_back(std::move(storage));
  return static_cast<int>(storages_.size()) - 1;
}

View RowState::add_dense(std::string_view name, const std::vector<Polynomial>& sizes) {
  View view{.storage = -1, .shaped = true, .sizes = sizes, .strides = {}, .offset = {}};
  view.strides.resize(sizes.size());
  Polynomial stride(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    view.strides[d] = stride;
    stride = stride * sizes[d];
  }
  view.storage = add_storage(name, view.sizes, view.strides);
  return view;
}

void RowState::mix(int storage, int reason) {
  Storage& mixed = storages_[static_cast<size_t>(storage)];
  if (mixed.mixed >= 0) return;
  mixed.mixed = reason;
  ++mixes_;
}

// The element is stride * row + rest, and the rest is the same for all rows and any batch size. The code stays within
// the storage for every row, the first and the last included, so 0 <= rest < stride.
//
// With other dimensions outside the batch, this does not follow: bounds must prove it.
std::optional<Atom> RowState::row_of(const Storage& storage, const Polynomial& element) {
  if (!element.known()) return std::nullopt;
  Atom row = -1;
  for (const Term& term : element.terms())
    for (const Atom atom : term.atoms) {
      if (atoms_.nature(atom) != kRow) continue;
      if (row >= 0 && row != atom) return std::nullopt;
      row = atom;
    }
  if (row < 0) return std::nullopt;
  Polynomial factor, rest;
  if (!element.coefficient(row, factor, rest) || factor != storage.stride) return std::nullopt;
  if (storage.outer) {
    Polynomial outer, inner;
    if (!rest.split(storage.span, outer, inner) || (atoms_.nature(outer) & kPlaced) != 0) return std::nullopt;
    if (!atoms_.within(inner, storage.stride)) return std::nullopt;
    rest = inner;
  }
  if ((atoms_.nature(rest) & kPlaced) != 0) return std::nullopt;
  return row;
}

Dependence RowState::access(Storage& storage, const Polynomial& element) {
  bounds_->access(place_ + ": '" + std::string(storage.name) + "'", element, storage.elements);
  return storage.mixed >= 0 || (storage.constant && bounds_->sized(element)) ? Dependence{0, -1} : Dependence{};
}

Dependence RowState::load(int number, const Polynomial& element) {
  Storage& storage = storages_[static_cast<size_t>(number)];
  if (bounds_) return access(storage, element);
  storage.touched = true;
  if (storage.mixed >= 0) return {-1, storage.mixed};
  if (storage.stale) return mixed("it reads '" + std::string(storage.name) + "' before that is written");
  const Dependence at = of_data(element);
  if (at.reason >= 0) return at;
  if (storage.kind == Storage::Kind::kShared) return join(at, of_number(element));
  const std::optional<Atom> row = row_of(storage, element);
  if (!row) return mixed("it reads '" + std::string(storage.name) + "' not row by row");
  return join(at, {*row, -1});
}

void RowState::store(int number, const Polynomial& element, const Dependence& value) {
  if (bounds_) {
    Storage& target = storages_[static_cast<size_t>(number)];
    access(target, element);
    if (value.row >= 0) mix(number, 0);
    return;
  }
  storages_[static_cast<size_t>(number)].touched = true;
  const Storage storage = storages_[static_cast<size_t>(number)];
  if (storage.mixed >= 0) return;
  Dependence all = join(value, of_data(element));
  if (storage.read_only) return mix(number, reason("it writes '" + std::string(storage.name) + "'"));
  if (all.reason >= 0) return mix(number, all.reason);
  if (storage.kind == Storage::Kind::kShared) {
    if (all.row >= 0 || (atoms_.nature(element) & kPlaced) != 0)
      mix(number, reason("'" + std::string(storage.name) + "' is made of all rows"));
    return;
  }
  const std::optional<Atom> row = row_of(storage, element);
  if (!row || (all.row >= 0 && all.row != *row))
    mix(number, reason("it writes '" + std::string(storage.name) + "' not row by row"));
}

void RowState::settle(const View& view, const BatchPlace& wanted) {
  if (view.storage < 0 || wanted.kind != BatchPlace::Kind::kDimension || wanted.outer.is(1)) return;
  Storage& storage = storages_[static_cast<size_t>(view.storage)];
  const size_t d = wanted.dimension;
  if (storage.touched || storage.kind != Storage::Kind::kRows || !view.offset.is(0) || d >= view.sizes.size()) return;
  if (view.sizes[d] != wanted.outer * Polynomial::of(batch_) || view.strides[d] * wanted.outer != storage.stride)
    return;
  storage.stride = view.strides[d];
  storage.span = storage.stride * Polynomial::of(batch_);
  storage.outer = true;
}

BatchPlace RowState::place_of(const View& view) {
  BatchPlace place;
  if (view.storage < 0 || !view.shaped) return place;
  const Storage& storage = storages_[static_cast<size_t>(view.storage)];
  if (storage.mixed >= 0 || storage.stale) return place;
  const auto carries = [&](const Polynomial& value) { return (atoms_.nature(value) & (kPlaced | kData)) != 0; };
  std::optional<size_t> batch;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (!carries(view.sizes[d])) continue;
    if (batch || !per_row(view.sizes[d])) return place;
    batch = d;
  }
  if (storage.kind == Storage::Kind::kShared) {
    // The same for all rows, possibly expanded to the batch.
    if (carries(view.offset)) return place;
    for (size_t d = 0; d < view.sizes.size(); ++d)
      if (!view.sizes[d].is(1) && (d == batch ? !view.strides[d].is(0) : carries(view.strides[d]))) return place;
    place.kind = BatchPlace::Kind::kNowhere;
    return place;
  }
  if (!batch || storage.kind != Storage::Kind::kRows) return place;
  const Polynomial factor = *per_row(view.sizes[*batch]);
  if (factor * view.strides[*batch] == storage.stride)
    place.inner = factor;
  else if (storage.outer && view.strides[*batch] == storage.stride)
    place.outer = factor;
  else
    return place;
  const auto outside = [&](const Polynomial& value) {
    Polynomial whole, rest;
    return !carries(value) ||
           (storage.outer && value.split(storage.span, whole, rest) && rest.is(0) && !carries(whole));
  };
  bool within = outside(view.offset);
  Polynomial reach;  // of the dimensions within a row
  if (!carries(view.offset)) reach = view.offset;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (d == *batch || view.sizes[d].is(1)) continue;
    within = within && outside(view.strides[d]);
    if (!carries(view.strides[d])) reach = reach + (view.sizes[d] - Polynomial(1)) * view.strides[d];
  }
  reach = reach + (place.inner - Polynomial(1)) * view.strides[*batch];
  if (!within || (storage.outer && !atoms_.within(reach, storage.stride))) return place;
  place.kind = BatchPlace::Kind::kDimension;
  place.dimension = *batch;
  return place;
}

}  // namespace sconce::rows
