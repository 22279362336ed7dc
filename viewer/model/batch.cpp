#include "viewer/model/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "probe/trace/samples.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::int64_t kPictures = 1024;  // of a tensor
constexpr std::int64_t kCells = 32;       // of a picture, a side

/// Where the pixels of a sample lie: offset = row × down + column × right + channel × deep.
struct Picture {
  std::int64_t rows = 0, columns = 0, channels = 1, down = 0, right = 0, deep = 0;
};

/// Samples of pixels: [N, C, H, W] or [N, H, W, C] with 1, 3 or 4 channels, bytes also [N, H, W].
std::optional<Picture> picture_of(DType dtype, const std::vector<std::int64_t>& s) {
  if (!dtype_is_float(dtype) && dtype != DType::uint8) return std::nullopt;
  const auto colours = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
  const auto fits = [](std::int64_t rows, std::int64_t columns) {
    return std::min(rows, columns) >= 4 && std::max(rows, columns) <= 1 << 14;
  };
  if (s.size() == 4 && colours(s[1]) && fits(s[2], s[3]))
    return Picture{s[2], s[3], s[1], s[3], 1, s[2] * s[3]};
  if (s.size() == 4 && colours(s[3]) && fits(s[1], s[2]))
    return Picture{s[1], s[2], s[3], s[2] * s[3], s[3], 1};
  if (s.size() == 3 && dtype == DType::uint8 && fits(s[1], s[2])) return Picture{s[1], s[2], 1, s[2], 1, 0};
  return std::nullopt;
}

/// The pictures of a tensor while its pixels come in: sums of each cell and channel.
class Painter {
 public:
  Painter(const Picture& picture, std::int64_t samples)
      : of_(picture),
        samples_(std::min(samples, kPictures)),
        rows_(std::min(of_.rows, kCells)),
        columns_(std::min(of_.columns, kCells)),
        cells_(static_cast<std::size_t>(samples_ * rows_ * columns_)) {}

  void add(std::int64_t sample, std::int64_t at, double value) {
    if (sample >= samples_) return;
    std::int64_t row = at / of_.down, column = 0, channel = 0;
    if (of_.deep > 1) {  // channels first
      channel = at / of_.deep;
      row = at % of_.deep / of_.down;
      column = at % of_.down;
    } else {
      column = at % of_.down / of_.right;
      channel = of_.channels == 1 ? 0 : at % of_.right;
    }
    Sums& cell = cells_[static_cast<std::size_t>((sample * rows_ + row * rows_ / of_.rows) * columns_ +
                                                 column * columns_ / of_.columns)];
    if (!std::isfinite(value)) return cell.bad.add(value);
    if (channel > 2) return;  // how opaque it is
    cell.sum[channel] += value;
    ++cell.count[channel];
  }

  /// `all`: the values that are black and white.
  std::vector<Thumbnail> finish(const Extremes& all) const {
    std::vector<Thumbnail> out;
    const double span = all.has_finite() && all.max > all.min ? all.max - all.min : 1;
    const std::size_t area = static_cast<std::size_t>(rows_ * columns_);
    for (std::int64_t s = 0; s < samples_; ++s) {
      Thumbnail& picture = out.emplace_back(
          Thumbnail{static_cast<int>(rows_), static_cast<int>(columns_), std::vector<Thumbnail::Cell>()});
      for (std::size_t i = 0; i < area; ++i) {
        const Sums& cell = cells_[static_cast<std::size_t>(s) * area + i];
        const auto shade = [&](std::size_t channel) {
          const double mean = cell.count[channel] ? cell.sum[channel] / cell.count[channel] : all.min;
          return static_cast<std::uint8_t>(std::clamp(255 * (mean - all.min) / span, 0.0, 255.0));
        };
        const std::size_t second = of_.channels >= 3 ? 1 : 0, third = of_.channels >= 3 ? 2 : 0;
        picture.cells.push_back({shade(0), shade(second), shade(third), cell.bad});
      }
    }
    return out;
  }

 private:
  struct Sums {
    double sum[3] = {};
    std::uint32_t count[3] = {};
    Extremes bad;
  };
  Picture of_;
  std::int64_t samples_, rows_, columns_;
  std::vector<Sums> cells_;
};

void read(const SnapshotReader& reader, BatchTensor& out, Progress* progress) {
  const StoredTensor& t = out.tensor;
  const bool complex = dtype_is_complex(t.dtype), whole = !dtype_has_nan(t.dtype);
  const std::int64_t samples = out.by_sample ? t.shape[0] : 0, parts = complex ? 2 : 1;
  const std::int64_t row = samples > 0 ? static_cast<std::int64_t>(element_count(t.shape)) / samples : 0;
  out.samples.resize(static_cast<std::size_t>(samples));
  if (whole) out.values.resize(static_cast<std::size_t>(samples));
  const auto picture = out.by_sample ? picture_of(t.dtype, t.shape) : std::nullopt;
  std::optional<Painter> painter;
  if (picture) painter.emplace(*picture, samples);
  const auto visit = [&](const TensorData& data, std::uint64_t first) {
    std::int64_t at = static_cast<std::int64_t>(first) * parts;
    for_each_value(data, [&](double x) {
      out.all.add(x);
      const std::int64_t element = at++ / parts;
      if (row == 0) return;
      const std::int64_t sample = element / row;
      out.samples[static_cast<std::size_t>(sample)].add(x);
      if (painter) painter->add(sample, element % row, x);
      if (!whole) return;
      std::vector<std::int64_t>& values = out.values[static_cast<std::size_t>(sample)];
      if (values.size() < kBatchValues) values.push_back(static_cast<std::int64_t>(x));
    });
  };
  out.partial = element_count(t.shape) > kReadElements;
  const Status good = read_chunks(reader, t, kReadElements, progress, visit);
  if (!good) {
    out = {t, good.error().text(), {}, false, out.by_sample, {}, {}, {}};
    return;
  }
  if (painter) out.pictures = painter->finish(out.all);
}

}  // namespace

std::int64_t sample_count(const SnapshotDoc& doc) {
  const std::int64_t rows = batch_size(doc);
  return rows > 0 ? rows : static_cast<std::int64_t>(doc.sample_ids.size());
}

std::optional<Batch> load_batch(const OpenIncident& incident, Progress* progress) {
  Batch batch;
  batch.samples = sample_count(incident.doc);
  for (const NamedTensor& named : incident.doc.batch) {
    const auto stored = std::ranges::find(incident.tensors, named.data, &StoredTensor::path);
    BatchTensor& tensor = batch.tensors.emplace_back();
    const bool there = stored != incident.tensors.end();
    tensor.tensor =
        there ? *stored : StoredTensor{named.data, named.name, "batch", named.dtype, named.shape, 0};
    tensor.tensor.name = named.name;
    const std::vector<std::int64_t>& shape = tensor.tensor.shape;
    tensor.by_sample = batch.samples > 0 && !shape.empty() && shape[0] == batch.samples;
    if (there)
      read(incident.reader, tensor, progress);
    else
      tensor.error = "its values are not in the file";
    if (progress != nullptr && progress->stopped()) return std::nullopt;
  }
  return batch;
}

std::string values_text(const std::vector<std::int64_t>& values, std::size_t most, std::uint64_t all) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t stretch = 0; at < values.size() && stretch < most; ++stretch) {
    std::size_t end = at + 1;
    while (end < values.size() && values[end] == values[at]) ++end;
    const bool many = end - at > 3;
    if (!text.empty()) text += many && text.back() != ',' ? ", " : " ";
    if (!many) end = at + 1;
    text += std::to_string(values[at]);
    if (many) text += " x " + std::to_string(end - at) + (end < values.size() ? "," : "");
    at = end;
  }
  return at < all ? text + " ..." : text;
}

std::string marked_text(const std::string& text, const std::vector<std::int64_t>& tokens) {
  bool bytes = !tokens.empty() && tokens.size() <= text.size();
  for (std::size_t i = 0; bytes && i < tokens.size(); ++i)
    bytes = tokens[i] == static_cast<unsigned char>(text[i]) ||
            (text[i] == '?' && tokens[i] >= 0 && tokens[i] < 256);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto token = bytes && i < tokens.size() ? static_cast<unsigned>(tokens[i]) : c;
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c < 0x20 || c == 0x7f || token != c)
      out += fmt::format("\\x{:02x}", token);
    else
      out += text[i];
  }
  return out;
}

}  // namespace nanquest::viewer
