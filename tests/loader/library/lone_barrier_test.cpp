#include "src/loader/library/lone_barrier.h"

#include <doctest/doctest.h>

#include <vector>

#include "package_format/elf_image.h"
#include "src/loader/library/shared_library.h"
#include "tests/loader/sample_file.h"

using namespace sconce;
using namespace sconce::loader;

extern "C" void GOMP_barrier();  // libgomp's

namespace {

SharedLibrary loaded(const char* name) {
  const std::vector<std::byte> bytes = sample(name);
  return SharedLibrary::load(ElfImage(bytes, name));
}
void* barrier_of(const SharedLibrary& library) { return library.function<void*()>("sample_barrier")(); }
void* gnu_barrier() { return reinterpret_cast<void*>(&GOMP_barrier); }
void other_barrier() {}

}  // namespace

TEST_CASE("lone barrier: a team waits for all of its threads, one thread for none") {
  const SharedLibrary library = loaded("sample_barrier");
  CHECK(barrier_of(library) != gnu_barrier());
  auto* const rounds = library.function<int(int, int, int*)>("sample_rounds");
  for (const int threads : {1, 2, 3, 1, 4}) {
    CAPTURE(threads);
    std::vector<int> written(16 * static_cast<size_t>(threads));
    CHECK(rounds(threads, 2000, written.data()) == 2000 * threads);
  }
}

TEST_CASE("lone barrier: libraries with tasks or with another run time keep their barrier") {
  CHECK(barrier_of(loaded("sample_tasks")) == gnu_barrier());
  SharedLibrary library = loaded("sample_barrier");
  void* const other = reinterpret_cast<void*>(&other_barrier);
  library.rebind("GOMP_barrier", other);
  skip_lone_barriers(library);
  CHECK(barrier_of(library) == other);
  SharedLibrary none = loaded("sample_model");
  skip_lone_barriers(none);
  CHECK(!none.imports("GOMP_barrier"));
}
