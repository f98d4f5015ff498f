// Checks that generated code stays within its tensors for sizes smaller than those it was compiled for.
//
// torch.export assumes that a size is 2 or more, and accepts x[1] for a dimension with a declared minimum of 1.
// PyTorch's code is correct for the sizes that it assumes; the proof here covers the smaller ones. It shows
// 0 <= element < elements of the tensor in one of two ways:
//
// - A bound that depends on no size, once loops over sizes are at their ends, is the same for all sizes.
// - Arithmetic: the difference is a polynomial of sizes and loop variables that is 0 or more, by the loops, the
//   conditions and the checks around the access.
//
// If both fail, an example may prove the opposite: smallest sizes and loop positions for which the access happens and
// lies outside of its tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "package_format/wrapper/integers/polynomial.h"

namespace sconce::rows {

// An access that happens if all facts are 0 or more, and that is not proved to lie within its tensor.
struct OpenAccess {
  std::string tensor;
  Polynomial element, elements;
  std::vector<Polynomial> facts;
};

class AccessBounds {
 public:
  static constexpr int kMaxSteps = 2'000;     // of arithmetic: takes some milliseconds
  static constexpr size_t kMaxOpen = 10'000;  // further accesses are not recorded

  explicit AccessBounds(Atoms& atoms) : atoms_(atoms) {}

  // Polynomials that are 0 or more, until leave() with the value that mark() returned before.
  size_t mark() const noexcept { return facts_.size(); }
  void assume(Polynomial fact) {
    if (fact.known()) facts_.push_back(std::move(fact));
  }
  void leave(size_t mark) { facts_.resize(mark); }
  // Whether execution of the statement depends on a size, until it is `false` again.
  bool depends() const noexcept { return depends_; }
  void set_depends(bool depends) noexcept { depends_ = depends; }
  // Whether a condition that is not among the facts decides about execution of the statement, until it is `false`
  // again.
  bool guarded() const noexcept { return guarded_; }
  void set_guarded(bool guarded) noexcept { guarded_ = guarded; }
  bool sized(const Polynomial& value) const { return (atoms_.nature(value) & (kSized | kStray)) != 0; }

  // Records an access of a tensor with this number of elements; unknown: the number is not known.
  void access(std::string_view tensor, const Polynomial& element, const Polynomial& elements);
  // The first access that leaves its tensor, or else that may leave it; "": none.
  const std::string& problem() const noexcept { return problem_; }
  // Whether an example proves that it leaves the tensor.
  bool leaves() const noexcept { return leaves_; }
  // The open accesses with known conditions. Accesses behind a condition that is not a fact are left out.
  const std::vector<OpenAccess>& open() const noexcept { return open_; }
  // Whether value >= 0 if all facts are 0 or more; false if unknown.
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
