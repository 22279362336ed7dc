#include "replay/cause/source_line.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <vector>

namespace nanquest {
namespace {

/// Part of the line: [begin, end).
struct Span {
  std::size_t begin = 0, end = 0;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The line with the inside of strings and its comment blanked out, so that no name or bracket is found
/// there.
std::string code_of(const std::string& line) {
  std::string code = line;
  char quote = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (quote) {
      if (line[i] == '\\' && i + 1 < code.size()) code[i++] = '_';
      if (line[i] == quote)
        quote = 0;
      else
        code[i] = '_';
    } else if (line[i] == '\'' || line[i] == '"') {
      quote = line[i];
    } else if (line[i] == '#') {
      code.resize(i);
    }
  }
  return code;
}

constexpr std::size_t kNowhere = std::string::npos;

/// The bracket that closes the one at `open`.
std::size_t closing(const std::string& code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    if (code[i] == '(' || code[i] == '[' || code[i] == '{') ++depth;
    if ((code[i] == ')' || code[i] == ']' || code[i] == '}') && --depth == 0) return i;
  }
  return kNowhere;
}

std::size_t opening(const std::string& code, std::size_t close) {
  int depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (code[i] == ')' || code[i] == ']' || code[i] == '}') ++depth;
    if ((code[i] == '(' || code[i] == '[' || code[i] == '{') && --depth == 0) return i;
  }
  return kNowhere;
}

/// Where the names, calls, subscripts and brackets that end before `end` begin: of "a + b.c(d)" that of b.
std::size_t begin_of_operand(const std::string& code, std::size_t end) {
  std::size_t at = end;
  while (at > 0) {
    const char c = code[at - 1];
    if (is_word(c) || c == '.' || c == '"' || c == '\'') {
      --at;
    } else if (c == ')' || c == ']') {
      const std::size_t open = opening(code, at - 1);
      if (open == kNowhere) return kNowhere;
      at = open;
      if (at > 0 && !is_word(code[at - 1]) && code[at - 1] != ')' && code[at - 1] != ']') return at;
    } else {
      break;
    }
  }
  return at;
}

/// The end of the operand that begins at `begin`.
std::size_t end_of_operand(const std::string& code, std::size_t begin) {
  std::size_t at = begin;
  while (at < code.size()) {
    const char c = code[at];
    if (c == '(' || c == '[') {
      const std::size_t close = closing(code, at);
      if (close == kNowhere) return kNowhere;
      at = close + 1;
    } else if (is_word(c) || c == '.') {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

Span trimmed(const std::string& code, Span s) {
  while (s.begin < s.end && std::isspace(static_cast<unsigned char>(code[s.begin]))) ++s.begin;
  while (s.end > s.begin && std::isspace(static_cast<unsigned char>(code[s.end - 1]))) --s.end;
  return s;
}

/// The arguments of the call whose bracket is `open`; nothing if it goes on in the next line.
std::optional<std::vector<Span>> arguments(const std::string& code, std::size_t open) {
  const std::size_t close = closing(code, open);
  if (close == kNowhere) return std::nullopt;
  std::vector<Span> found;
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open + 1; i <= close; ++i) {
    if (i == close || (code[i] == ',' && depth == 0)) {
      if (const Span s = trimmed(code, {begin, i}); s.begin < s.end) found.push_back(s);
      begin = i + 1;
    }
    if (code[i] == '(' || code[i] == '[' || code[i] == '{') ++depth;
    if (code[i] == ')' || code[i] == ']' || code[i] == '}') --depth;
  }
  return found;
}

/// The names under which a program calls an op; the operator that means it, and which side of that is the
/// argument.
std::set<std::string> names_of(const std::string& op) {
  if (op == "linalg_vector_norm") return {"norm", "vector_norm"};
  if (op == "acos" || op == "asin") return {op, "arc" + op.substr(1)};
  if (op == "div") return {"div", "divide", "true_divide"};
  return {op};
}

std::string_view operator_of(const std::string& op) {
  return op == "div" || op == "reciprocal" ? "/" : op == "pow" ? "**" : "";
}

/// Modules whose functions take the tensor as an argument; anything else before the dot is the tensor itself.
bool is_module(const std::string& receiver) {
  static const std::set<std::string> modules = {"torch",        "F",  "functional",          "torch.linalg",
                                                "linalg",       "LA", "torch.nn.functional", "nn.functional",
                                                "torch.special"};
  return modules.contains(receiver);
}

/// The argument of the call of the name at [begin, end); nothing if the name is no call, or not on one line.
std::optional<Span> argument_of_call(const std::string& code, Span name, std::size_t position) {
  if (name.end >= code.size() || code[name.end] != '(') return std::nullopt;
  const bool dotted = name.begin > 0 && code[name.begin - 1] == '.';
  if (dotted) {
    const Span receiver{begin_of_operand(code, name.begin - 1), name.begin - 1};
    if (receiver.begin == kNowhere || receiver.begin == receiver.end) return std::nullopt;
    if (!is_module(code.substr(receiver.begin, receiver.end - receiver.begin))) {
      if (position == 0) return receiver;
      --position;
    }
  }
  const auto given = arguments(code, name.end);
  if (!given || position >= given->size()) return std::nullopt;
  const std::string text =
      code.substr((*given)[position].begin, (*given)[position].end - (*given)[position].begin);
  return text.find('=') == std::string::npos ? std::optional((*given)[position]) : std::nullopt;
}

/// Every place of the line where the operation's argument could stand.
std::vector<Span> candidates(const std::string& code, const SourceEdit& edit) {
  std::vector<Span> found;
  const std::set<std::string> names = names_of(edit.op);
  for (std::size_t i = 0; i < code.size();) {
    if (!is_word(code[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < code.size() && is_word(code[end])) ++end;
    if (names.contains(code.substr(i, end - i)))
      if (const auto argument = argument_of_call(code, {i, end}, edit.position)) found.push_back(*argument);
    i = end;
  }
  const std::string_view sign = operator_of(edit.op);
  for (std::size_t i = 0; !sign.empty() && (i = code.find(sign, i)) != kNowhere; i += sign.size()) {
    const std::size_t after = i + sign.size();
    if (sign == "/" && ((after < code.size() && (code[after] == '/' || code[after] == '=')) ||
                        (i > 0 && code[i - 1] == '/')))
      continue;
    const bool left = sign == "**";
    const std::size_t start = code.find_first_not_of(' ', after), stop = code.find_last_not_of(' ', i - 1);
    if (start == kNowhere || stop == kNowhere) continue;
    const Span s =
        left ? Span{begin_of_operand(code, stop + 1), stop + 1} : Span{start, end_of_operand(code, start)};
    // A power binds more tightly: the divisor of x / y ** 2 is y ** 2.
    const std::size_t next = left || s.end == kNowhere ? kNowhere : code.find_first_not_of(' ', s.end);
    if (next != kNowhere && code.compare(next, 2, "**") == 0) continue;
    if (s.begin != kNowhere && s.end != kNowhere && s.begin < s.end) found.push_back(s);
  }
  return found;
}

/// Number literals of the line with this value.
std::vector<Span> literals(const std::string& code, double value) {
  std::vector<Span> found;
  for (std::size_t i = 0; i < code.size();) {
    const bool begins = std::isdigit(static_cast<unsigned char>(code[i])) &&
                        (i == 0 || (!is_word(code[i - 1]) && code[i - 1] != '.'));
    if (!begins) {
      ++i;
      continue;
    }
    char* end = nullptr;
    const double number = std::strtod(code.c_str() + i, &end);
    const auto stop = static_cast<std::size_t>(end - code.c_str());
    const bool minus = i > 0 && code[i - 1] == '-' && value < 0;
    if ((minus ? -number : number) == value) found.push_back({minus ? i - 1 : i, stop});
    i = std::max(stop, i + 1);
  }
  return found;
}

/// An expression that can be followed by ".clamp()".
bool is_operand(const std::string& text) {
  return end_of_operand(text, 0) == text.size() && !std::isdigit(static_cast<unsigned char>(text[0]));
}

bool calls(const std::string& expression) {
  for (std::size_t i = 1; i < expression.size(); ++i)
    if (expression[i] == '(' &&
        (is_word(expression[i - 1]) || expression[i - 1] == ')' || expression[i - 1] == ']'))
      return true;
  return false;
}

/// `with` for this expression; what is computed in a call is computed once, however often it is used.
std::string filled(const std::string& with, const std::string& expression) {
  constexpr std::string_view kName = "argument";
  const bool once = with.find("{}", with.find("{}") + 1) == std::string::npos;
  const bool named = !once && calls(expression);
  std::string text;
  std::size_t used = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (with.compare(i, 2, "{}") != 0) {
      text += with[i];
      continue;
    }
    if (named)
      text += used == 0 ? "(" + std::string(kName) + " := " + expression + ")" : std::string(kName);
    else
      text += is_operand(expression) ? expression : "(" + expression + ")";
    ++used;
    ++i;
  }
  return text;
}

}  // namespace

std::optional<std::string> edited_line(const std::string& line, const SourceEdit& edit) {
  const std::string code = code_of(line);
  const std::vector<Span> places = edit.number ? literals(code, *edit.number) : candidates(code, edit);
  if (places.size() != 1) return std::nullopt;
  const Span at = places.front();
  const std::string expression = line.substr(at.begin, at.end - at.begin);
  return line.substr(0, at.begin) + (edit.number ? edit.with : filled(edit.with, expression)) +
         line.substr(at.end);
}

}  // namespace nanquest
