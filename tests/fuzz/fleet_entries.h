// Entries for what comes from elsewhere, or was left on the disk: remote servers' answers, signatures, journals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sconce::fuzz {

// An address of the command line.
bool run_address(std::string_view text);
// The lines of an answer's head, and what its fields say.
bool run_answer_head(std::string_view text);
// A page of S3's listing, in XML; a hub's tree, in JSON; and which of their files are taken over.
bool run_listing(std::string_view text);
bool run_hub_tree(std::string_view text);
// The journal of a download.
bool run_download_journal(std::string_view text);
// A signature; an archive with one inside.
bool run_bundle(std::string_view text);
bool run_signed_archive(std::string_view bytes);
// A journal of kept sets with its seal, and without.
bool run_sealed(std::string_view text);

std::vector<std::string> address_seeds();
std::vector<std::string> answer_head_seeds();
std::vector<std::string> listing_seeds();
std::vector<std::string> hub_tree_seeds();
std::vector<std::string> download_journal_seeds();
std::vector<std::string> bundle_seeds();
std::vector<std::string> signed_archive_seeds();
std::vector<std::string> sealed_seeds();

}  // namespace sconce::fuzz
