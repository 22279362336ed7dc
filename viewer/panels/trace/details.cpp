// The lines below the list of ops.
#include <string>
#include <vector>

#include "imgui.h"
#include "viewer/panels/trace/cells.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

void op_links(UiState& state, const char* label, const std::vector<OpId>& ops, const TraceView& trace) {
  if (ops.empty()) return;
  ImGui::TextDisabled("%s", label);
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  for (std::size_t i = 0; i < ops.size() && i < 12; ++i) {
    const std::string text = std::to_string(ops[i].row()) + " " + trace.line(ops[i]).name;
    ImGui::SameLine();
    if (ImGui::GetCursorScreenPos().x + ImGui::CalcTextSize(text.c_str()).x >
        right - ImGui::GetFontSize() * 1.5f) {
      ImGui::TextDisabled("...");
      return;
    }
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::TextLink(text.c_str())) state.session.select_op(ops[i].row());
    ImGui::PopID();
  }
}

}  // namespace

void draw_op_details(UiState& state, const OpenIncident& incident, bool neighbours) {
  const OpId op = chosen_op(state);
  if (!op) return ImGui::TextDisabled("Click an op to follow it");
  const TraceLine line = incident.trace.line(op);
  std::string text = std::to_string(op.row()) + "  " + line.name + "  " + line.read_formats + " > " +
                     line.write_format + " " + line.write_shape;
  if (!line.node.empty()) text += "  in " + line.node;
  clipped_text(text, ImGui::GetContentRegionAvail().x);
  // A backward op is called by the engine; what it differentiates is called by the program.
  if (const OpId forward{get(incident.doc, op).forward_op}; forward)
    op_links(state, "derivative of", {forward}, incident.trace);
  if (const std::string source = incident.trace.source(op); !source.empty())
    clipped_text(source, ImGui::GetContentRegionAvail().x);
  if (neighbours) {
    ImGui::PushID("made");
    op_links(state, "producers", incident.trace.producers(op), incident.trace);
    ImGui::PopID();
    ImGui::PushID("read");
    op_links(state, "consumers", incident.trace.consumers(op), incident.trace);
    ImGui::PopID();
  }
  ImGui::PushID("path");
  const TraceView::Path path = incident.trace.path_from(op);
  op_links(state, path.to_loss ? "path to the loss" : "path to a gradient", path.ops, incident.trace);
  ImGui::PopID();
}

}  // namespace nanquest::viewer
