// How fast weights come from the page cache to their place, against memcpy of the same bytes out of a mapping.
//
//   build/release/tests/bench_staging [MEGABYTES [FOLDER]]
//
// Memory is new for each run (as for a staged set), or already touched. Best of several runs.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"

namespace {

namespace fs = std::filesystem;
using namespace sconce;
using Clock = std::chrono::steady_clock;

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

// Entries one after the other, 64-byte aligned.
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
  void complete(size_t) override {}
  void finish() override {}

 private:
  const Memory& memory_;
  std::vector<std::span<std::byte>> places_;
};

template <class F>
double best_rate(size_t bytes, bool touched, F&& work) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Memory memory(bytes + (size_t{1} << 20));
    if (touched) memory.touch();
    const Clock::time_point start = Clock::now();
    work(memory);
    best = std::max(best, static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best / 1e9;
}

// The rates of the first row are what the others are compared with.
template <class F>
void row(std::pair<double, double>& reference, const char* name, size_t bytes, F&& work) {
  const double fresh = best_rate(bytes, false, work), touched = best_rate(bytes, true, work);
  if (reference.first == 0) reference = {fresh, touched};
  std::printf("%-30s %6.2f GB/s %4.0f %%   %6.2f GB/s %4.0f %%\n", name, fresh, 100 * fresh / reference.first, touched,
              100 * touched / reference.second);
  std::fflush(stdout);
}

// Layers as models have them: a large matrix and two small vectors each.
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
  std::printf("%-30s %-20s %s\n", (std::to_string(bytes >> 20) + " MiB").c_str(), "new memory", "touched memory");
  std::pair<double, double> reference;
  row(reference, "memcpy out of a mapping", bytes, [&](const Memory& memory) {
    const std::vector<NamedTensor> tensors = read_safetensors(safetensors);
    size_t at = 0;
    for (const NamedTensor& t : tensors) {
      std::memcpy(memory.data() + at, t.tensor.data(), t.tensor.bytes());
      at += (t.tensor.bytes() + 63) / 64 * 64;
    }
  });
  const auto stage = [&](const char* name, const fs::path& path, const FileOptions& options) {
    row(reference, name, bytes, [&](const Memory& memory) {
      PlainUpdate update(memory);
      stage_file(update, path, options);
    });
  };
  stage("stage_file .safetensors", safetensors, {});
  SafetensorsEncoder encoder(WeightFile::open(safetensors));  // gives the same bytes: written by the same rules
  stage("stage_file .safetensors, SHA-256", safetensors, {.sha256 = digest_of(encoder)});
  stage("stage_file .npz", npz, {});
  row(reference, "WeightStream from read()", bytes, [&](const Memory& memory) {
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
  });
  fs::remove(safetensors);
  fs::remove(npz);
  return 0;
}
