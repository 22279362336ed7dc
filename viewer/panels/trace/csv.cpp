#include <array>
#include <cmath>
#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/op_graph.h"
#include "viewer/model/session.h"
#include "viewer/model/step_map.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {
namespace {

/// "12 14": the ops that made what it reads.
std::string producers_text(const TraceView& trace, OpId op) {
  std::string text;
  for (const OpId producer : trace.producers(op)) {
    if (!text.empty()) text += ' ';
    text += std::to_string(producer.row());
  }
  return text;
}

}  // namespace

Result<std::string> trace_csv(Session& session) {
  std::ostringstream out;
  out << "op,mark,phase,micro_batch,name,module,node,read_formats,read_amax,read_headroom_bits,read_nan,read_"
         "pos_inf,"
         "read_neg_inf,write_format,write_shape,write_amax,write_headroom_bits,write_nan,write_pos_inf,write_"
         "neg_inf,source,born,cast,producers,first_divergence,"
         "fp32_amax,fp32_nan,fp32_inf,fp32_zero,fp32_off,fp64_amax,fp64_nan,fp64_inf,fp64_zero,fp64_off\n";
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return out.str();
  const OpId diverges = incident->replayed ? incident->replayed->first_divergence() : OpId{};
  for (std::size_t i = 0; i < incident->trace.size(); ++i) {
    const TraceLine l = incident->trace.line(OpId{i});
    const auto amax = [](const ValueRange& r) {
      return r.has_amax && !r.none_finite() ? exact_number(r.amax) : std::string();
    };
    const auto room = [](const ValueRange& r) {
      return r.has_headroom ? exact_number(r.headroom) : std::string();
    };
    const auto replayed = [&](const ReplayedRun Replayed::*run) -> std::array<std::string, 5> {
      const auto v = incident->replayed ? (*incident->replayed.*run).at(OpId{i}) : std::nullopt;
      if (!v) return {};
      return {exact_number(v->amax), std::to_string(v->nan), std::to_string(v->inf), std::to_string(v->zero),
              std::isnan(v->off) ? "" : exact_number(v->off)};
    };
    const auto fp32 = replayed(&Replayed::fp32), fp64 = replayed(&Replayed::fp64);
    record(out, std::to_string(i), std::string(mark_words(incident->trace.mark(OpId{i}))),
           std::string(phase_name(l.phase)), std::to_string(incident->doc.ops[i].micro_batch), l.name,
           l.module, l.node, l.read_formats, amax(l.read), room(l.read), std::to_string(l.read.nan),
           std::to_string(l.read.pos_inf), std::to_string(l.read.neg_inf), l.write_format, l.write_shape,
           amax(l.written), room(l.written), std::to_string(l.written.nan), std::to_string(l.written.pos_inf),
           std::to_string(l.written.neg_inf), incident->trace.source(OpId{i}), born_words(*incident, OpId{i}),
           cast_text(incident->trace, OpId{i}), producers_text(incident->trace, OpId{i}),
           OpId{i} == diverges ? "1" : "", fp32[0], fp32[1], fp32[2], fp32[3], fp32[4], fp64[0], fp64[1],
           fp64[2], fp64[3], fp64[4]);
  }
  return out.str();
}

}  // namespace nanquest::viewer
