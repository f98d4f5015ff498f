// Runs the entries on their seeds and on some thousand damaged copies, equal in every run. tests/fuzz/run.sh does more
// of this with libFuzzer.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/files.h"
#include "tests/fuzz/entries.h"

namespace sconce::fuzz {
namespace {

using Random = std::mt19937_64;

constexpr size_t kRuns = 10000;

size_t below(Random& random, size_t limit) { return static_cast<size_t>(random() % limit); }

// Numbers to put into sizes, offsets and counts.
const uint64_t kEdges[] = {0,
                           1,
                           0x7f,
                           0x80,
                           0xff,
                           0x7fff,
                           0xffff,
                           0x7fffffff,
                           0x80000000,
                           0xffffffff,
                           0x7fffffffffffffff,
                           0x8000000000000000,
                           0xffffffffffffffff};

void damage(std::string& bytes, const std::string& other, Random& random) {
  if (bytes.empty()) bytes.assign(1, ' ');
  const size_t at = below(random, bytes.size());
  const size_t count = std::min(below(random, 16) + 1, bytes.size() - at);
  switch (below(random, 8)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2: {
      const uint64_t edge = kEdges[below(random, std::size(kEdges))];
      const size_t width = std::min(size_t{1} << below(random, 4), bytes.size() - at);
      bytes.replace(at, width, std::string(reinterpret_cast<const char*>(&edge), width));
      break;
    }
    case 3:
      bytes.erase(at, count);
      break;
    case 4:
      bytes.insert(at, bytes, below(random, bytes.size()), count);
      break;
    case 5:
      bytes.resize(at);
      break;
    case 6:
      bytes.insert(at, std::to_string(kEdges[below(random, std::size(kEdges))]));
      break;
    default:
      if (!other.empty()) bytes.replace(at, count, other, below(random, other.size()), count);
  }
}

}  // namespace

TEST_CASE("fuzz: libFuzzer runs every entry, and ./dev says how many there are") {
  std::ifstream list(source_path("tests/fuzz/entries.txt"));
  std::vector<std::string> listed, names;
  for (std::string line; std::getline(list, line);) listed.push_back(line);
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  CHECK(listed == names);
  std::ifstream script(source_path("dev"));
  const std::string text{std::istreambuf_iterator<char>(script), std::istreambuf_iterator<char>()};
  CHECK(text.find("each of its " + std::to_string(names.size()) + " entries") != std::string::npos);
}

TEST_CASE("fuzz: each entry takes most of its seeds") {
  for (const Entry& entry : entries()) {
    CAPTURE(std::string(entry.name));
    const std::vector<std::string> seeds = entry.seeds();
    CHECK(std::set<std::string>(seeds.begin(), seeds.end()).size() == seeds.size());
    size_t taken = 0;
    for (const std::string& seed : seeds) taken += entry.run(seed);
    CHECK(taken * 2 > seeds.size());
    entry.run("");
  }
}

TEST_CASE("fuzz: damaged input is refused or taken, and nothing else happens") {
  for (const Entry& entry : entries()) {
    CAPTURE(std::string(entry.name));
    const std::vector<std::string> seeds = entry.seeds();
    Random random(20240607);
    size_t taken = 0;
    for (size_t run = 0; run < kRuns; ++run) {
      std::string bytes = seeds[run % seeds.size()];
      const std::string& other = seeds[below(random, seeds.size())];
      for (size_t n = below(random, 4) + 1; n > 0; --n) damage(bytes, other, random);
      taken += entry.run(bytes);
    }
    CHECK(taken < kRuns);
  }
}

}  // namespace sconce::fuzz
