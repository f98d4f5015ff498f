// Policy of Boost's special functions for poles and arguments outside of the domain: infinities and NaNs instead of
// exceptions.
#pragma once

#include <boost/math/policies/policy.hpp>

namespace sconce {

namespace policies = boost::math::policies;
using Quiet =
    policies::policy<policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
                     policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>,
                     policies::rounding_error<policies::ignore_error>,
                     policies::indeterminate_result_error<policies::ignore_error>, policies::promote_double<false>>;

}  // namespace sconce
