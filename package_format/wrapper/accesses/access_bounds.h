// Whether generated code stays within its tensors for sizes that are smaller than those it was compiled for.
//
// torch.export assumes that a size is 2 or more, and lets x[1] through for a dimension that was declared to begin at 1.
// PyTorch's code is right for all sizes that it assumes; what has to be shown is that it stays within its tensors for
// the smaller ones. Two ways to show 0 <= element < elements of the tensor:
//
// - A bound that no size takes part in, once loops over sizes are at their ends, is the same for all sizes.
// - Arithmetic: the difference is a polynomial of sizes and loop variables that is 0 or more, given what the loops, the
//   conditions and the checks around the access say.
//
// Where neither does, an example may show the contrary: the smallest sizes, and places of the loops, for which the
// access is made and lies outside of its tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "package_format/wrapper/integers/polynomial.h"

namespace sconce::rows {

// An access that is made where all facts are 0 or more, and that is not shown to lie within its tensor.
struct OpenAccess {
  std::string tensor;
  Polynomial element, elements;
  std::vector<Polynomial> facts;
};

class AccessBounds {
 public:
  static constexpr int kMaxSteps = 2'000;     // of arithmetic: some milliseconds
  static constexpr size_t kMaxOpen = 10'000;  // more accesses are not kept

  explicit AccessBounds(Atoms& atoms) : atoms_(atoms) {}

  // Polynomials that are 0 or more until `leave` with what `mark` gave before.
  size_t mark() const noexcept { return facts_.size(); }
  void assume(Polynomial fact) {
    if (fact.known()) facts_.push_back(std::move(fact));
  }
  void leave(size_t mark) { facts_.resize(mark); }
  // Whether the statement runs depends on a size, until it is `false` again.
  bool depends() const noexcept { return depends_; }
  void set_depends(bool depends) noexcept { depends_ = depends; }
  // Whether a condition that is not among the facts decides if the statement runs, until it is `false` again.
  bool guarded() const noexcept { return guarded_; }
  void set_guarded(bool guarded) noexcept { guarded_ = guarded; }
  bool sized(const Polynomial& value) const { return (atoms_.nature(value) & (kSized | kStray)) != 0; }

  // Notes an access of a tensor with so many elements; unknown: their number is not known.
  void access(std::string_view tensor, const Polynomial& element, const Polynomial& elements);
  // The first access that leaves its tensor, or else may leave it; "": none.
  const std::string& problem() const noexcept { return problem_; }
  // Whether an example shows that it does.
  bool leaves() const noexcept { return leaves_; }
  // Those of which is known when they are made. Conditions that are no facts leave out the accesses behind them.
  const std::vector<OpenAccess>& open() const noexcept { return open_; }
  // Whether value >= 0 where all facts are 0 or more; false if that is not known.
  bool follows(const Polynomial& value, const std::vector<Polynomial>& facts);

 private:
  Polynomial at_end(const Polynomial& difference, bool last) const;
  bool same_for_all_sizes(Polynomial difference) const;
  bool not_negative(const Polynomial& value, int depth) const;
  bool shared(const Polynomial& element, const Polynomial& elements) const;
  int64_t smallest(Atom size) const;
  bool has_example(const Polynomial& element, const Polynomial& elements) const;

  Atoms& atoms_;
  std::vector<Polynomial> facts_;
  bool depends_ = false, guarded_ = false;
  mutable int steps_ = kMaxSteps, steps_of_ends_ = kMaxSteps;  // in access(), and in follows()
  std::string problem_;
  bool leaves_ = false;
  std::vector<OpenAccess> open_;
};

}  // namespace sconce::rows
