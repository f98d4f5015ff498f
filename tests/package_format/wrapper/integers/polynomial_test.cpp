#include "package_format/wrapper/integers/polynomial.h"

#include <doctest/doctest.h>

using namespace sconce::rows;

namespace {

Polynomial of(Atom atom) { return Polynomial::of(atom); }

}  // namespace

TEST_CASE("polynomial: sums and products have one form") {
  Atoms atoms;
  const Polynomial s = of(atoms.size()), t = of(atoms.size());
  CHECK(s * t + s == s * (t + Polynomial(1)));
  CHECK((s + t) * (s - t) == s * s - t * t);
  CHECK((s - s).is(0));
  CHECK_FALSE((s + Polynomial(INT64_MAX) + Polynomial(1)).known());
  CHECK_FALSE((Polynomial(INT64_MAX) * Polynomial(2)).known());
}

TEST_CASE("polynomial: quotients and remainders of places within a row") {
  Atoms atoms;
  const Polynomial row = of(atoms.index(kRow)), inner = of(atoms.index(kFixed, Polynomial(31)));
  const Polynomial place = Polynomial(32) * row + inner;
  CHECK(atoms.quotient(place, Polynomial(32)) == row);
  CHECK(atoms.remainder(place, Polynomial(32)) == inner);
  CHECK(atoms.remainder(place, Polynomial(8)) == atoms.remainder(inner, Polynomial(8)));
  // 5 does not divide a row.
  CHECK((atoms.nature(atoms.remainder(place, Polynomial(5))) & kPlaced) != 0);
  CHECK((atoms.nature(atoms.quotient(row, Polynomial(2))) & kStray) != 0);
  const Polynomial s = of(atoms.size());
  const Polynomial within = of(atoms.index(kFixed, Polynomial(4) * s - Polynomial(1)));
  CHECK(atoms.quotient(Polynomial(4) * s * row + within, Polynomial(4) * s) == row);
}

TEST_CASE("polynomial: bounds hold for all sizes from 1 on") {
  Atoms atoms;
  const Polynomial s = of(atoms.size());
  const Polynomial i = of(atoms.index(kFixed, s - Polynomial(1))), j = of(atoms.index(kFixed, Polynomial(7)));
  CHECK(atoms.within(Polynomial(8) * i + j, Polynomial(8) * s));
  CHECK_FALSE(atoms.within(Polynomial(8) * i + j + Polynomial(1), Polynomial(8) * s));
  CHECK_FALSE(atoms.within(i - j, s));
  CHECK(atoms.within(Polynomial(7) - j, Polynomial(8)));
  CHECK_FALSE(atoms.within(of(atoms.index(kFixed)), s));
}
