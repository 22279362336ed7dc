// What is selected among the incident's values: a tensor and its current element, a sample of the batch.
#include <fmt/format.h>

#include <algorithm>

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
  if (incident() == nullptr) return nullptr;
  for (const StoredTensor& tensor : incident()->tensors)
    if (tensor.path == selection_.tensor) return &tensor;
  return nullptr;
}

std::string Session::culprit_name() const {
  return incident() == nullptr ? "" : shown_values(culprit_values(*incident()), selection_.tensor);
}

bool Session::tensor_waits(std::int64_t plane) const {
  if (incident() == nullptr || !incident()->holds(selection_.tensor)) return false;
  return !values_.failed(selection_.tensor) && read_slice(plane) == nullptr;
}

const TensorDetail* Session::tensor_detail() {
  return incident() == nullptr ? nullptr : values_.read_detail(*incident(), selection_.tensor, progress_);
}

const TensorSlice* Session::tensor_slice(std::int64_t plane) {
  return tensor_detail() == nullptr ? nullptr : values_.read_slice(*incident(), selection_.tensor, plane);
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

bool Session::elements_wait() const {
  const TensorDetail* detail = read_detail();
  return detail != nullptr && detail->scan.count > 0 && tensor_error().empty() && read_elements() == nullptr;
}

const ElementPage* Session::elements() {
  if (tensor_detail() == nullptr || !elements_wait()) return read_elements();
  return values_.read_elements(*incident(), selection_.tensor, shown_element());
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
      find_bad(incident()->reader_of(*tensor), *tensor, from, direction, progress_);
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
  if (incident() == nullptr || sample < 0 || sample >= sample_count(incident()->doc)) return;
  selection_.sample = sample;
}

/// The first that the verdict blames.
void Session::start_sample() {
  selection_.sample = kNone;
  if (verdict() && !verdict()->poison.empty()) select_sample(std::ranges::min(verdict()->poison));
}

const SideBySide* Session::culprit_side() {
  return culprit_waits() ? values_.read_side(*incident(), culprit_name(), progress_) : read_culprit_side();
}

const Batch* Session::batch() {
  return batch_waits() ? values_.read_batch(*incident(), progress_) : read_batch();
}

}  // namespace nanquest::viewer
