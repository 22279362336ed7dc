// A change of one line of Python: which expression is the operation's argument, and when that is not certain.
#include "replay/cause/source_line.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

const std::string kClamp = "{}.clamp(min=1e-08)", kFill = "{}.masked_fill({} == 0, 1)";

std::string edited(const std::string& line, const SourceEdit& edit) {
  return edited_line(line, edit).value_or("none");
}

TEST(SourceLine, ArgumentOfAFunctionOrAMethod) {
  const SourceEdit root{"sqrt", 0, 0, {}, kClamp};
  EXPECT_EQ(edited("    d = (a - b).sqrt()  # sqrt(x)", root),
            "    d = (a - b).clamp(min=1e-08).sqrt()  # sqrt(x)");
  EXPECT_EQ(edited("d = torch.sqrt(a - b)", root), "d = torch.sqrt((a - b).clamp(min=1e-08))");
  EXPECT_EQ(edited("d = f(x)[0].sqrt().mean() * 2", root), "d = f(x)[0].clamp(min=1e-08).sqrt().mean() * 2");
  const SourceEdit norm{"linalg_vector_norm", 0, 0, {}, kFill};
  EXPECT_EQ(edited("d = (a - b).norm(dim=1)", norm), "d = (a - b).masked_fill((a - b) == 0, 1).norm(dim=1)");
  EXPECT_EQ(edited("d = torch.norm(net(x) - y, dim=1)", norm),
            "d = torch.norm((argument := net(x) - y).masked_fill(argument == 0, 1), dim=1)");
}

TEST(SourceLine, DivisorsAndPowers) {
  const SourceEdit div{"div", 0, 1, {}, kFill};
  EXPECT_EQ(edited("y = h['a / b'] / n[i]", div), "y = h['a / b'] / n[i].masked_fill(n[i] == 0, 1)");
  EXPECT_EQ(edited("y = x.div(s)", div), "y = x.div(s.masked_fill(s == 0, 1))");
  EXPECT_EQ(edited("y = x / s.std()", div), "y = x / (argument := s.std()).masked_fill(argument == 0, 1)");
  EXPECT_EQ(edited("y = x / s ** 2", div), "none");
  EXPECT_EQ(edited("y = x // s", div), "none");
  EXPECT_EQ(edited("y = x ** 0.5", {"pow", 0, 0, {}, kClamp}), "y = x.clamp(min=1e-08) ** 0.5");
}

TEST(SourceLine, NumbersAreReplacedByValue) {
  const SourceEdit eps{"add", 0, 1, 1e-12, "1e-05"};
  EXPECT_EQ(edited("y = x + 1e-12", eps), "y = x + 1e-05");
  EXPECT_EQ(edited("y = x + 0.000000000001", eps), "y = x + 1e-05");
  EXPECT_EQ(edited("y = x + 1e-12 + 1e-12", eps), "none");
  EXPECT_EQ(edited("y = x + eps  # 1e-12", eps), "none");
}

TEST(SourceLine, NoneWhereItIsNotCertain) {
  const SourceEdit root{"sqrt", 0, 0, {}, kClamp};
  EXPECT_EQ(edited("y = x.sqrt() + z.sqrt()", root), "none");
  EXPECT_EQ(edited("y = torch.sqrt(", root), "none");
  EXPECT_EQ(edited("y = distance(x)  # x.sqrt()", root), "none");
  EXPECT_EQ(edited("print('x.sqrt()')", root), "none");
}

}  // namespace
}  // namespace nanquest
