#include "viewer/model/incident_values.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace nanquest::viewer {
namespace {

/// What `read` holds, to be shared; null, and why in `error`, if it holds none.
template <class T>
std::shared_ptr<const T> kept(Result<T> read, std::string& error) {
  if (read) return std::make_shared<const T>(std::move(read).value());
  error = read.error().text();
  return nullptr;
}

}  // namespace

const TensorDetail* IncidentValues::detail(const std::string& path) const {
  return path_ == path ? detail_.get() : nullptr;
}

const TensorSlice* IncidentValues::slice(const std::string& path, std::int64_t plane) const {
  return detail(path) != nullptr && plane_ == plane ? slice_.get() : nullptr;
}

const ElementPage* IncidentValues::elements(const std::string& path, std::uint64_t element) const {
  const bool here = detail(path) != nullptr && elements_ != nullptr && elements_->at(element) != nullptr;
  return here ? elements_.get() : nullptr;
}

const TensorDetail* IncidentValues::read_detail(const OpenIncident& incident, const std::string& path,
                                                Progress* progress) {
  if (path_ == path && (detail_ || !error_.empty())) return detail_.get();
  path_ = path;
  error_.clear();
  detail_.reset(), slice_.reset(), elements_.reset();
  const auto tensor = std::ranges::find(incident.tensors, path, &StoredTensor::path);
  if (tensor != incident.tensors.end())
    detail_ = kept(load_detail(incident.reader_of(*tensor), *tensor, kReadElements, progress), error_);
  return detail_.get();
}

const TensorSlice* IncidentValues::read_slice(const OpenIncident& incident, const std::string& path,
                                              std::int64_t plane) {
  if (detail(path) == nullptr || slice(path, plane) != nullptr) return slice(path, plane);
  const StoredTensor& tensor = detail_->tensor;
  plane_ = plane;
  slice_ = kept(load_slice(incident.reader_of(tensor), tensor, plane), error_);
  return slice_.get();
}

const ElementPage* IncidentValues::read_elements(const OpenIncident& incident, const std::string& path,
                                                 std::uint64_t element) {
  if (detail(path) == nullptr || elements(path, element) != nullptr) return elements(path, element);
  const StoredTensor& tensor = detail_->tensor;
  elements_ = kept(load_elements(incident.reader_of(tensor), tensor, element), error_);
  return elements(path, element);
}

const SideBySide* IncidentValues::side(const std::string& name) const {
  return side_ != nullptr && side_->name == name ? side_.get() : nullptr;
}

const SideBySide* IncidentValues::read_side(const OpenIncident& incident, const std::string& name,
                                            Progress* progress) {
  if (name.empty() || side(name) != nullptr) return side(name);
  const std::vector<CulpritValues> all = culprit_values(incident);
  const auto values = std::ranges::find(all, name, &CulpritValues::name);
  side_ = std::make_shared<const SideBySide>(load_side_by_side(incident, *values, progress));
  return side_.get();
}

const Batch* IncidentValues::read_batch(const OpenIncident& incident, Progress* progress) {
  if (batch_ == nullptr)
    if (std::optional<Batch> read = load_batch(incident, progress))
      batch_ = std::make_shared<const Batch>(std::move(*read));
  return batch_.get();
}

}  // namespace nanquest::viewer
