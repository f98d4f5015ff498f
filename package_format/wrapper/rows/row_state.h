// How a graph's tensors relate to the rows of its batch.
//
// A tensor that carries the batch has a row stride: element i belongs to row floor(i / stride) (mod the batch size, if
// other dimensions lie outside the batch). All elements of a row are computed from that row alone, by code that
// depends neither on the row's position nor on the batch size; otherwise the tensor is mixed, with the reason. All
// other tensors are independent of the batch, or mixed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/accesses/access_bounds.h"
#include "package_format/wrapper/integers/polynomial.h"

namespace sconce::rows {

// The sources of a value.
struct Dependence {
  Atom row = -1;    // one row of the batch, at this position; -1: no row
  int reason = -1;  // why it may depend on several rows; -1: it depends on one
  bool operator==(const Dependence&) const = default;
  bool free() const noexcept { return row < 0 && reason < 0; }
};

struct Storage {
  enum class Kind : uint8_t { kShared, kRows, kUnknown };
  std::string_view name;
  Kind kind = Kind::kUnknown;
  Polynomial stride;                            // of rows, in elements
  Polynomial span;                              // elements of a run of all rows: stride * batch size; used if `outer`
  bool outer = false;                           // other dimensions may lie outside the batch
  bool read_only = false;                       // an input or a constant
  bool stale = false;                           // memory of an earlier tensor, not written since
  bool touched = false;                         // it was used: its layout is fixed
  int mixed = -1;                               // the reason
  Polynomial elements = Polynomial::unknown();  // number of elements; used when accesses are examined
  bool constant = false;
};

// A tensor: a storage, or a part of it.
struct View {
  int storage = -1;
  bool shaped = false;
  std::vector<Polynomial> sizes, strides;
  Polynomial offset;
};

// The position of the batch in a tensor.
struct BatchPlace {
  enum class Kind : uint8_t { kNowhere, kDimension, kUnclear };
  Kind kind = Kind::kUnclear;
  size_t dimension = 0;
  // The dimension's size is outer * rows * inner; inner or outer is 1.
  Polynomial inner{1}, outer{1};
  bool operator==(const BatchPlace&) const = default;
};

class RowState {
 public:
  RowState() : batch_(atoms_.size(kBatch)) {}

  Atoms& atoms() noexcept { return atoms_; }
  // Examines accesses instead of rows. A value then has a row if it depends on a size.
  void look_at_accesses() { bounds_.emplace(atoms_); }
  AccessBounds* bounds() noexcept { return bounds_ ? &*bounds_ : nullptr; }
  const AccessBounds* bounds() const noexcept { return bounds_ ? &*bounds_ : nullptr; }
  const Atoms& atoms() const noexcept { return atoms_; }
  Atom batch() const noexcept { return batch_; }
  // The kernel or operator that later reasons name.
  void set_place(std::string place) { place_ = std::move(place); }

  int reason(std::string_view why);
  const std::string& reason_text(int reason) const { return reasons_[static_cast<size_t>(reason)]; }
  Dependence mixed(std::string_view why) { return {-1, reason(why)}; }
  Dependence join(const Dependence& a, const Dependence& b);

  // `rows * inner` -> inner; nullopt if the batch size is not a factor of all terms.
  std::optional<Polynomial> per_row(const Polynomial& value) const;

  // A value that is computed from the integer: mixed if the integer depends on a row's position or on the batch size.
  Dependence of_number(const Polynomial& value);
  // The dependence of the tensor values that the integer was computed from.
  Dependence of_data(const Polynomial& value);
  Atom data(const Dependence& dependence);

  int add_storage(std::string_view name, const std::vector<Polynomial>& sizes, const std::vector<Polynomial>& strides);
  // A dense tensor.
  View add_dense(std::string_view name, const std::vector<Polynomial>& sizes);
  int add_mixed(std::string_view name, std::string_view why);
  Storage& storage(int number) { return storages_[static_cast<size_t>(number)]; }
  void mix(int storage, int reason);
  int mixes() const noexcept { return mixes_; }  // number of storages that have become mixed
  // Saves and restores the state of storages.
  std::vector<Storage> storages() const { return storages_; }
  void restore(std::vector<Storage> storages, int mixes) {
    storages_ = std::move(storages);
    mixes_ = mixes;
  }

  Dependence load(int storage, const Polynomial& element);
  // Records a store of `value`.
  void store(int storage, const Polynomial& element, const Dependence& value);

  BatchPlace place_of(const View& view);
  // A tensor whose first dimension combines rows and positions, [places * rows, ...], may have rows or positions
  // outermost. The operator that writes it first decides.
  void settle(const View& view, const BatchPlace& wanted);

 private:
  // The row of the element, if it is the variable of a loop over rows.
  std::optional<Atom> row_of(const Storage& storage, const Polynomial& element);

  Dependence access(Storage& storage, const Polynomial& element);

  Atoms atoms_;
  std::optional<AccessBounds> bounds_;
  Atom batch_;
  std::string place_;
  std::vector<Storage> storages_;
  std::vector<std::string> reasons_;
  std::unordered_map<std::string, int> known_reasons_;
  std::unordered_map<Atom, Dependence> data_;
  int mixes_ = 0;
};

}  // namespace sconce::rows
