// The selected tensor: what was read of it, the current element and those around it. The batch, and its
// selected sample.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {
namespace {

std::uint64_t reals_of(DType dtype) {
  return dtype_is_complex(dtype) ? 2 : 1;
}

}  // namespace

/// The position in another tensor has no meaning in this one.
void Session::show_tensor(const std::string& path) {
  if (selection_.tensor != path) selection_.element = -1;
  selection_.tensor = path;
}

const StoredTensor* Session::stored_tensor() const {
  if (incident_ == nullptr) return nullptr;
  for (const StoredTensor& tensor : incident_->tensors)
    if (tensor.path == selection_.tensor) return &tensor;
  return nullptr;
}

/// What was read of a tensor, or why it couldn't be, belongs to one incident.
void Session::forget_tensor() {
  detail_.reset();
  slice_.reset();
  elements_.reset();
  side_.reset();
  batch_.reset();
  detail_path_.clear();
  tensor_error_.clear();
}

const TensorDetail* Session::read_detail() const {
  return incident_ != nullptr && detail_path_ == selection_.tensor ? detail_.get() : nullptr;
}

const TensorSlice* Session::read_slice(std::int64_t plane) const {
  return read_detail() != nullptr && slice_path_ == detail_path_ && slice_plane_ == plane ? slice_.get()
                                                                                          : nullptr;
}

bool Session::tensor_waits(std::int64_t plane) const {
  if (incident_ == nullptr || !incident_->holds(selection_.tensor)) return false;
  const bool failed = detail_path_ == selection_.tensor && !tensor_error_.empty();
  return !failed && read_slice(plane) == nullptr;
}

const TensorDetail* Session::tensor_detail() {
  if (incident_ == nullptr) return nullptr;
  if (detail_path_ == selection_.tensor && (detail_ || !tensor_error_.empty())) return detail_.get();
  detail_.reset();
  tensor_error_.clear();
  detail_path_ = selection_.tensor;
  for (const StoredTensor& tensor : incident_->tensors) {
    if (tensor.path != selection_.tensor) continue;
    Result<TensorDetail> detail = load_detail(incident_->reader_of(tensor), tensor, kReadElements, progress_);
    if (detail)
      detail_ = std::make_shared<TensorDetail>(std::move(detail).value());
    else
      tensor_error_ = detail.error().text();
  }
  return detail_.get();
}

const TensorSlice* Session::tensor_slice(std::int64_t plane) {
  const TensorDetail* detail = tensor_detail();
  if (detail == nullptr || read_slice(plane) != nullptr) return read_slice(plane);
  slice_.reset();
  Result<TensorSlice> slice = load_slice(incident_->reader_of(detail->tensor), detail->tensor, plane);
  slice_path_ = detail->tensor.path;
  slice_plane_ = plane;
  if (slice)
    slice_ = std::make_shared<TensorSlice>(std::move(slice).value());
  else
    tensor_error_ = slice.error().text();
  return slice_.get();
}

std::uint64_t Session::shown_element() const {
  if (selection_.element >= 0) return static_cast<std::uint64_t>(selection_.element);
  const TensorDetail* detail = read_detail();
  if (detail == nullptr || detail->scan.first_bad < 0) return 0;
  return static_cast<std::uint64_t>(detail->scan.first_bad) / reals_of(detail->tensor.dtype);
}

void Session::select_element(std::uint64_t element) {
  const StoredTensor* tensor = stored_tensor();
  if (tensor != nullptr && element < element_count(tensor->shape))
    selection_.element = static_cast<std::int64_t>(element);
}

const ElementPage* Session::read_elements() const {
  const bool here = read_detail() != nullptr && elements_ != nullptr && elements_path_ == selection_.tensor &&
                    elements_->at(shown_element()) != nullptr;
  return here ? elements_.get() : nullptr;
}

bool Session::elements_wait() const {
  const TensorDetail* detail = read_detail();
  return detail != nullptr && detail->scan.count > 0 && tensor_error_.empty() && read_elements() == nullptr;
}

const ElementPage* Session::elements() {
  const TensorDetail* detail = tensor_detail();
  if (detail == nullptr || !elements_wait()) return read_elements();
  Result<ElementPage> page =
      load_elements(incident_->reader_of(detail->tensor), detail->tensor, shown_element());
  elements_path_ = selection_.tensor;
  elements_.reset();
  if (page)
    elements_ = std::make_shared<ElementPage>(std::move(page).value());
  else
    tensor_error_ = page.error().text();
  return read_elements();
}

Result<std::string> Session::select_bad(Direction direction) {
  const StoredTensor* tensor = stored_tensor();
  if (tensor == nullptr) return Error{ErrorCode::usage, "no stored tensor is selected", ""};
  const std::optional<std::uint64_t> from =
      selection_.element < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(selection_.element));
  const TensorDetail* detail = read_detail();
  if (detail != nullptr && !detail->partial && detail->scan.non_finite() == 0)
    return tensor->name + ": every element is finite";
  const Result<std::optional<std::uint64_t>> found =
      find_bad(incident_->reader_of(*tensor), *tensor, from, direction, progress_);
  if (!found) return found.error();
  if (!*found) return tensor->name + ": every element is finite";
  const std::uint64_t at = **found;
  select_element(at);
  std::string text = "element " + grouped(at) + " of " + grouped(element_count(tensor->shape));
  const ElementPage* page = elements();
  const Element* element = page == nullptr ? nullptr : page->at(at);
  if (element != nullptr)
    text += (element->position.empty() ? "" : " " + element->position) + ": " + element->value;
  if (!from) return text;
  if (at == *from) return text + ", the only bad one";
  const bool wrapped = direction == Direction::forward ? at < *from : at > *from;
  return text + (wrapped
                     ? (direction == Direction::forward ? ", from the start again" : ", from the end again")
                     : "");
}

std::string Session::element_text() const {
  const ElementPage* page = read_elements();
  const Element* element = page == nullptr ? nullptr : page->at(shown_element());
  if (element == nullptr) return "";
  const std::string place =
      element->position.empty() ? fmt::format("[{}]", element->index) : element->position;
  return fmt::format("{}{} = {}  {}  {}", selection_.tensor, place, element->exact, element->hex,
                     element->bits);
}

void Session::select_sample(std::int64_t sample) {
  if (incident_ == nullptr || sample < 0 || sample >= sample_count(incident_->doc)) return;
  selection_.sample = sample;
}

/// The first that the verdict blames.
void Session::start_sample() {
  selection_.sample = kNone;
  if (verdict_ && !verdict_->poison.empty()) select_sample(std::ranges::min(verdict_->poison));
}

const Batch* Session::batch() {
  if (batch_waits())
    if (std::optional<Batch> read = load_batch(*incident_, progress_))
      batch_ = std::make_shared<Batch>(std::move(*read));
  return batch_.get();
}

}  // namespace nanquest::viewer
