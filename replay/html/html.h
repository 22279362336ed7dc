/// html: the frame of HTML files that need no other file: style sheet, and the script that sorts and searches
/// their tables.
///
///     write_file_atomically("out.html", html::document("A and B", "", "<section>…</section>"));
#pragma once

#include <string>
#include <string_view>

namespace nanquest::html {

/// Text as it stands between tags and in attributes.
std::string escaped(std::string_view text);

/// A whole file. `title` is text; `links` and `body` are HTML, `links` stays visible above the body.
std::string document(std::string_view title, std::string_view links, std::string_view body);

}  // namespace nanquest::html
