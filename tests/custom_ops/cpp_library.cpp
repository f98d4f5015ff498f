// Needs a C++ function of libtorch, which we do not have.
namespace at {
int empty_of_torch(long);
}
extern "C" int use_torch() { return at::empty_of_torch(3); }
