// The code of doctest, whose checks are in what seeds are made with. libFuzzer's programs run no cases.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
