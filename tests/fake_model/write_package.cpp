// Writes the package of a fake model with its declarations, for tests that only reach it through the program.
// usage: fake_package_writer PATH [MODEL]
#include <exception>
#include <iostream>

#include "fake_package.h"

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) return 2;
  fake::write_package(argv[1], {{"model", fake::model(argc == 3 ? argv[2] : "fake_model")}});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
