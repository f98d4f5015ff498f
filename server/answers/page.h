// GET /: a short page that says what is served and how to use it.
#pragma once

#include <string>

#include "server/models/repository.h"

namespace sconce::server {

std::string page_text(const Catalog& catalog, std::string_view url, bool html);

}  // namespace sconce::server
