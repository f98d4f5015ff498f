// What a graph's tensors have to do with the rows of its batch.
//
// A tensor that carries the batch has a row stride: element i lies in row floor(i / stride) (mod the number of rows, if
// other dimensions lie outside the batch). All its elements of a row are computed from that row alone, by code that
// neither knows the row's place nor how many rows there are; else the tensor is mixed, with the reason. All other
// tensors are the same whatever the batch is, or mixed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/accesses/access_bounds.h"
#include "package_format/wrapper/integers/polynomial.h"

namespace sconce::rows {

// What a value is computed from.
struct Dependence {
  Atom row = -1;    // one row of the batch, at this place; -1: nothing of the batch
  int reason = -1;  // why it is not known to be of one row; -1: it is
  bool operator==(const Dependence&) const = default;
  bool free() const noexcept { return row < 0 && reason < 0; }
};

struct Storage {
  enum class Kind : uint8_t { kShared, kRows, kUnknown };
  std::string_view name;
  Kind kind = Kind::kUnknown;
  Polynomial stride;       // of rows, in elements
  Polynomial span;         // elements of a run of all rows: stride * number of rows; used if `outer`
  bool outer = false;      // other dimensions may lie outside the batch
  bool read_only = false;  // an input or a constant
  bool stale = false;      // memory of an earlier tensor, to which nothing was written since
  bool touched = false;    // it was used: its layout is settled
  int mixed = -1;          // the reason
  Polynomial elements = Polynomial::unknown();  // how many it has; used where accesses are looked at
  bool constant = false;
};

// A tensor: a storage, or a part of it.
struct View {
  int storage = -1;
  bool shaped = false;
  std::vector<Polynomial> sizes, strides;
  Polynomial offset;
};

// Where a tensor has the batch.
struct BatchPlace {
  enum class Kind : uint8_t { kNowhere, kDimension, kUnclear };
  Kind kind = Kind::kUnclear;
  size_t dimension = 0;
  // The dimension's size is outer * rows * inner; one of both is 1.
  Polynomial inner{1}, outer{1};
  bool operator==(const BatchPlace&) const = default;
};

class RowState {
 public:
  RowState() : batch_(atoms_.size(kBatch)) {}

  Atoms& atoms() noexcept { return atoms_; }
  // Looks at accesses instead of rows. A value then has a row if it depends on a size.
  void look_at_accesses() { bounds_.emplace(atoms_); }
  AccessBounds* bounds() noexcept { return bounds_ ? &*bounds_ : nullptr; }
  const AccessBounds* bounds() const noexcept { return bounds_ ? &*bounds_ : nullptr; }
  const Atoms& atoms() const noexcept { return atoms_; }
  Atom batch() const noexcept { return batch_; }
  // The kernel or operator that reasons name from now on.
  void set_place(std::string place) { place_ = std::move(place); }

  int reason(std::string_view why);
  const std::string& reason_text(int reason) const { return reasons_[static_cast<size_t>(reason)]; }
  Dependence mixed(std::string_view why) { return {-1, reason(why)}; }
  Dependence join(const Dependence& a, const Dependence& b);

  // `rows * inner` -> inner; nullopt if the number of rows is not a factor of all terms.
  std::optional<Polynomial> per_row(const Polynomial& value) const;

  // A value that is computed from the integer: mixed if the integer tells of a row's place or of the number of rows.
  Dependence of_number(const Polynomial& value);
  // The values of tensors that the integer was made of.
  Dependence of_data(const Polynomial& value);
  Atom data(const Dependence& dependence);

  int add_storage(std::string_view name, const std::vector<Polynomial>& sizes, const std::vector<Polynomial>& strides);
  // A dense tensor.
  View add_dense(std::string_view name, const std::vector<Polynomial>& sizes);
  int add_mixed(std::string_view name, std::string_view why);
  Storage& storage(int number) { return storages_[static_cast<size_t>(number)]; }
  void mix(int storage, int reason);
  int mixes() const noexcept { return mixes_; }  // how many storages have become mixed
  // What storages are now, and a return to that.
  std::vector<Storage> storages() const { return storages_; }
  void restore(std::vector<Storage> storages, int mixes) {
    storages_ = std::move(storages);
    mixes_ = mixes;
  }

  Dependence load(int storage, const Polynomial& element);
  // Notes that `value` is stored.
  void store(int storage, const Polynomial& element, const Dependence& value);

  BatchPlace place_of(const View& view);
  // A tensor of one dimension for rows and places, [places * rows, ...], may have rows or places outermost, as the
  // operator has it that writes it first.
  void settle(const View& view, const BatchPlace& wanted);

 private:
  // The row in which the element lies, if it is a loop's variable of rows.
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
