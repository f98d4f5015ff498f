#include "server/cli/bench_report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/commands/scratch_folder.h"
#include "tests/errors.h"

namespace sconce::server::cli {
namespace {

OrderedJson document(double scale = 1, const std::string& package = "m.pt2") {
  std::vector<float> times;
  for (int i = 1; i <= 100; ++i) times.push_back(static_cast<float>(scale * 1e-5 * (1 + i / 50.0)));
  const OrderedJson bins = time_bins(times);
  const OrderedJson latency = {{"p50", 2e-5 * scale}, {"p90", 2.8e-5 * scale}, {"p99", 3e-5 * scale}};
  OrderedJson rows = OrderedJson::array();
  rows.push_back({{"replicas", 1},
                  {"threads", 0},
                  {"load_s", 0.01},
                  {"latency_s", latency},
                  {"latency_bins", bins},
                  {"callers", 1},
                  {"runs_per_s", 1000 / scale},
                  {"loaded_latency_s", latency},
                  {"loaded_latency_bins", bins},
                  {"memory_bytes", 1 << 20}});
  return {{"package", package}, {"sconce", "0.1.0"}, {"measurements", rows}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("bench report: each time is in the bin that begins before it and ends after it") {
  for (const float time : {3e-9F, 5e-6F, 1.0F, 7.5F}) {
    const OrderedJson bins = time_bins(std::vector<float>{time, time});
    REQUIRE(bins.size() == 1);
    const double bin = bins[0][0].get<double>();
    CHECK(bins[0][1] == 2);
    CHECK(std::exp2(bin / 16) <= static_cast<double>(time) * 1.000001);
    CHECK(std::exp2((bin + 1) / 16) > static_cast<double>(time));
  }
  CHECK(time_bins({}).empty());
  CHECK(time_bins(std::vector<float>{0}).size() == 1);
}

TEST_CASE("bench report: a page holds its figures, and a later call reads them") {
  const ScratchFolder folder;
  const OrderedJson written = document(1, "</script><b>.pt2");
  const std::string page = bench_page(written, nullptr);
  CHECK(read_bench(folder.write("earlier.html", page)) == written);
  CHECK(read_bench(folder.write("earlier.json", written.dump(2))) == written);
  CHECK(!has(page, "<b>"));
  CHECK(has(page, "<svg"));
  CHECK(has(page, "p99"));
  CHECK(!has(page, "class=\"was\""));
}

TEST_CASE("bench report: what is no such file is named") {
  const ScratchFolder folder;
  for (const char* const text : {"", "{}", "[]", "<html></html>", "{\"measurements\": []}", "{\"measurements\": 3}"}) {
    const std::string path = folder.write("x", text);
    CHECK_THROWS_WITH_AS(read_bench(path), doctest::Contains(path.c_str()), Error);
  }
  CHECK_THROWS_WITH_AS(read_bench(folder / "absent"), doctest::Contains("absent"), Error);
}

TEST_CASE("bench report: compared with an earlier one") {
  const OrderedJson now = document(0.5), before = document();
  const std::string page = bench_page(now, &before);
  CHECK(has(page, "50 % less"));
  CHECK(has(page, "100 % more"));
  CHECK(has(page, "class=\"number good\""));
  CHECK(!has(page, "class=\"number bad\""));
  CHECK(has(page, "class=\"was\""));
  CHECK(has(bench_page(before, &now), "class=\"number bad\""));
  const OrderedJson* const same = same_measurement(before, now["measurements"][0]);
  REQUIRE(same);
  CHECK(describe_change(now["measurements"][0], *same) ==
        "one caller: p50 50 % less, one caller: p99 50 % less, all callers: runs/s 100 % more, all callers: p99 50 % "
        "less, memory of the process the same");
}

TEST_CASE("bench report: an earlier one with other replicas is none") {
  OrderedJson before = document();
  before["measurements"][0]["replicas"] = 2;
  const OrderedJson now = document();
  CHECK(!same_measurement(before, now["measurements"][0]));
  CHECK(has(bench_page(now, &before), "no such measurement"));
}

TEST_CASE("bench report: an earlier file may have anything in it") {
  const OrderedJson now = document();
  for (const char* const row :
       {"3", "null", "{}", R"({"latency_bins": 3})", R"({"latency_bins": [[1], 2, [1e300, 1], [3, -1]]})",
        R"({"latency_bins": [[9223372036854775807, 1]]})", R"({"latency_s": {"p50": "x"}, "load_s": -1})"}) {
    OrderedJson before = document();
    OrderedJson odd = OrderedJson::parse(row);
    if (odd.is_object())
      for (const char* const key : {"replicas", "threads", "callers"}) odd[key] = now["measurements"][0][key];
    before["measurements"][0] = odd;
    CHECK(has(bench_page(now, &before), "</html>"));
    CHECK(has(bench_page(before, &now), "</html>"));
  }
}

}  // namespace sconce::server::cli
