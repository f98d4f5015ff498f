// Writes the package of a fake model with its declarations, for tests that only reach it through the program.
// usage: fake_package_writer PATH
#include <exception>
#include <iostream>

#include "fake_package.h"

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  fake::write_package(argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
