#include "viewer/app/report_file.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "probe/snapshot/atomic_file.h"
#include "viewer/report/report.h"
#ifdef NANQUEST_WITH_WINDOW
#include "viewer/app/offscreen.h"
#endif

namespace nanquest::viewer {
namespace {

/// Pictures of the panels that show more than their text, light and dark; `note` says why there are none.
std::vector<ReportPicture> draw_pictures(Session& session, std::string& note) {
  std::vector<ReportPicture> pictures;
#ifdef NANQUEST_WITH_WINDOW
  for (const auto& [panel, height] :
       {std::pair{Panel::timeline, 560}, {Panel::norms, 640}, {Panel::tensor, 760}}) {
    if (panel == Panel::tensor && session.incident() == nullptr) continue;
    ReportPicture picture{panel, "", ""};
    for (const auto& [theme, png] : {std::pair{Theme::light, &picture.png}, {Theme::dark, &picture.dark}}) {
      const Result<Image> image = take_picture(session, {panel}, 1200, height, 1, theme);
      Result<std::string> bytes = image ? png_bytes(*image) : image.error();
      if (!bytes) {
        note = "Without pictures: " + bytes.error().message;
        return {};
      }
      *png = std::move(bytes).value();
    }
    pictures.push_back(std::move(picture));
  }
#else
  (void)session;
  note = "Without pictures: the nanquest-viewer that wrote this was built without Dear ImGui or EGL";
#endif
  return pictures;
}

}  // namespace

Result<ReportKind> report_kind(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".md" || ending == ".markdown") return ReportKind::markdown;
  if (ending == ".html" || ending == ".htm") return ReportKind::html;
  return Error{ErrorCode::usage, "--report " + path + ": its name says neither Markdown nor HTML",
               "end it in .md or .html"};
}

Status write_report(Session& session, ReportKind kind, const std::string& path) {
  std::string note;
  std::vector<ReportPicture> pictures;
  if (kind == ReportKind::html) pictures = draw_pictures(session, note);
  const std::string text =
      kind == ReportKind::markdown ? report_markdown(session) : report_html(session, pictures, note);
  const Status written = write_file_atomically(path, text);
  return written ? Status()
                 : Status(Error{ErrorCode::io, written.error().message,
                                "choose another place with --report FILE"});
}

}  // namespace nanquest::viewer
