// Measures how fast weights are staged from the page cache, compared with memcpy of the same bytes from a mapping.
//
//   build/release/tests/bench_staging [MEGABYTES [FOLDER]]
//
// Measures with new memory, as for a staged set, and with memory that was touched before. Prints the best of several
// runs.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"

namespace {

namespace fs = std::filesystem;
using namespace sconce;
constexpr int kRuns = 5;

class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    SCONCE_CHECK(data_ != MAP_FAILED, kOutOfMemory, "no memory for ", bytes, " bytes");
  }
  ~Memory() { ::munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }
  void touch() const { std::memset(data_, 1, bytes_); }

 private:
  std::byte* data_;
  size_t bytes_;
};

// Places entries one after the other, 64-byte aligned.
class PlainUpdate final : public WeightUpdate {
 public:
  explicit PlainUpdate(const Memory& memory) : memory_(memory) {}
  void declare(std::span<const WeightEntry> entries) override {
    size_t at = 0;
    for (const WeightEntry& entry : entries) {
      size_t bytes = dtype_bytes(entry.dtype);
      for (const int64_t size : entry.shape) bytes *= static_cast<size_t>(size);
      places_.emplace_back(memory_.data() + at, bytes);
      at += (bytes + 63) / 64 * 64;
    }
  }
  std::span<std::byte> memory(size_t entry) override { return places_[entry]; }
  void set_label(std::string) override {}
  void complete(size_t) override {}
  void finish() override {}

 private:
  const Memory& memory_;
  std::vector<std::span<std::byte>> places_;
};

// CPU time of this thread, on which other work on the machine has less influence.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Row {
  const char* name;
  std::function<void(const Memory&)> work;
  double best_s[2] = {1e9, 1e9};  // in new memory, in touched memory
};

// Rows take turns, so that other work on the machine affects all of them. Row 0 is the baseline.
void measure(std::vector<Row>& rows, size_t bytes) {
  for (int run = 0; run < kRuns; ++run)
    for (Row& row : rows)
      for (const bool touched : {false, true}) {
        const Memory memory(bytes + (size_t{1} << 20));
        if (touched) memory.touch();
        const double start = cpu_seconds();
        row.work(memory);
        row.best_s[touched] = std::min(row.best_s[touched], cpu_seconds() - start);
      }
  std::printf("%-34s %-20s %s\n", (std::to_string(bytes >> 20) + " MiB, GB per CPU second").c_str(), "new memory",
              "touched memory");
  for (const Row& row : rows) {
    std::printf("%-34s", row.name);
    for (const int touched : {0, 1})
      std::printf(" %6.2f %5.0f %%      ", static_cast<double>(bytes) / row.best_s[touched] / 1e9,
                  100 * rows[0].best_s[touched] / row.best_s[touched]);
    std::printf("\n");
  }
}

// Layers as in models: each has a large matrix and two small vectors.
std::vector<NamedTensor> make_tensors(size_t bytes) {
  std::vector<NamedTensor> tensors;
  uint32_t state = 1;
  for (int64_t layer = 0; bytes > 0; ++layer) {
    const auto add = [&](const char* name, std::vector<int64_t> sizes) {
      Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
      for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.data_as<float>()[i] = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24f;
      tensors.push_back({"layers." + std::to_string(layer) + "." + name, tensor});
      bytes -= std::min(bytes, tensor.bytes());
    };
    add("weight", {2048, 2048});
    add("bias", {2048});
    add("scale", {1});
  }
  return tensors;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 512;
  const fs::path folder = argc > 2 ? fs::path(argv[2]) : fs::temp_directory_path();
  const fs::path safetensors = folder / "sconce_staging.safetensors", npz = folder / "sconce_staging.npz";
  size_t bytes = 0;
  {
    const std::vector<NamedTensor> tensors = make_tensors(megabytes << 20);
    for (const NamedTensor& t : tensors) bytes += t.tensor.bytes();
    write_safetensors(safetensors, tensors);
    write_npz(npz, tensors);
  }
  const auto stage = [](const fs::path& path, const FileOptions& options) {
    return [path, options](const Memory& memory) {
      PlainUpdate update(memory);
      stage_file(update, path, options);
    };
  };
  std::vector<Row> rows;
  rows.push_back({"memcpy out of a mapping", [&](const Memory& memory) {
                    size_t at = 0;
                    for (const NamedTensor& t : read_safetensors(safetensors)) {
                      std::memcpy(memory.data() + at, t.tensor.data(), t.tensor.bytes());
                      at += (t.tensor.bytes() + 63) / 64 * 64;
                    }
                  }});
  rows.push_back({"stage_file .safetensors", stage(safetensors, {})});
  SafetensorsEncoder encoder(WeightFile::open(safetensors));  // writes the same bytes by the same rules
  rows.push_back({"stage_file .safetensors, SHA-256", stage(safetensors, {.sha256 = digest_of(encoder)})});
  rows.push_back({"stage_file .npz", stage(npz, {})});
  rows.push_back({"WeightStream from read()", [&](const Memory& memory) {
                    std::ifstream file(safetensors, std::ios::binary);
                    PlainUpdate update(memory);
                    WeightStream stream(update);
                    for (;;) {
                      const std::span<std::byte> room = stream.next();
                      file.read(reinterpret_cast<char*>(room.data()), static_cast<std::streamsize>(room.size()));
                      if (file.gcount() == 0) break;
                      stream.advance(static_cast<size_t>(file.gcount()));
                    }
                    stream.end();
                  }});
  measure(rows, bytes);
  fs::remove(safetensors);
  fs::remove(npz);
  return 0;
}
