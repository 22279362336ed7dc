/// IncidentValues: the values of an open incident that were read since it was opened: the selected tensor's,
/// the culprit's side by side, the batch's. Each is read on first use, and only the newest of its kind is
/// kept. A copy is cheap: what was read is shared and never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "viewer/model/batch.h"
#include "viewer/model/elements.h"
#include "viewer/model/incident.h"
#include "viewer/model/side_by_side.h"

namespace nanquest::viewer {

/// Of one incident: the same is given each time. Functions that are const read nothing; those that read
/// return null if it can't be read, or if there is nothing.
class IncidentValues {
 public:
  /// What was read of the tensor `path`; null for nothing.
  const TensorDetail* detail(const std::string& path) const;
  const TensorSlice* slice(const std::string& path, std::int64_t plane) const;
  const ElementPage* elements(const std::string& path, std::uint64_t element) const;
  /// Why the tensor that was read last couldn't be; "" if it could.
  const std::string& error() const { return error_; }
  /// True if `path` is the tensor that was read last, and it couldn't be.
  bool failed(const std::string& path) const { return path_ == path && !error_.empty(); }

  const TensorDetail* read_detail(const OpenIncident& incident, const std::string& path, Progress* progress);
  /// These two need the detail of `path`.
  const TensorSlice* read_slice(const OpenIncident& incident, const std::string& path, std::int64_t plane);
  const ElementPage* read_elements(const OpenIncident& incident, const std::string& path,
                                   std::uint64_t element);

  /// The culprit's values of that name (culprit_values).
  const SideBySide* side(const std::string& name) const;
  const SideBySide* read_side(const OpenIncident& incident, const std::string& name, Progress* progress);

  const Batch* batch() const { return batch_.get(); }
  const Batch* read_batch(const OpenIncident& incident, Progress* progress);

 private:
  std::string path_, error_;  ///< of the tensor that was read last
  std::shared_ptr<const TensorDetail> detail_;
  std::shared_ptr<const TensorSlice> slice_;
  std::int64_t plane_ = -1;  ///< of `slice_`
  std::shared_ptr<const ElementPage> elements_;
  std::shared_ptr<const SideBySide> side_;
  std::shared_ptr<const Batch> batch_;
};

}  // namespace nanquest::viewer
