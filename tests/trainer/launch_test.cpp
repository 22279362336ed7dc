// A program that was built without MPI (launch.cpp is compiled so here) reports that under mpirun.
#include "trainer/parallel/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace nanquest::trainer {
namespace {

/// The environment of a launcher, until it is destroyed.
class Environment {
 public:
  Environment(const char* rank, const char* size) : names_{rank, size} {
    setenv(rank, "1", 1);
    setenv(size, "4", 1);
  }
  ~Environment() {
    for (const char* name : names_) unsetenv(name);
  }

 private:
  const char* names_[2];
};

TEST(Launch, AProgramWithoutMpiSaysSoInOneLine) {
  for (const auto& [rank, size] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, std::pair{"PMI_RANK", "PMI_SIZE"}}) {
    const Environment of_mpirun(rank, size);
    const Launched by = launched();
    EXPECT_EQ(by.rank, 1) << rank;
    EXPECT_EQ(by.size, 4) << rank;
    const auto group = join(by);
    ASSERT_FALSE(group) << rank;
    EXPECT_EQ(group.error().code, ErrorCode::unsupported);
    const std::string text = group.error().text();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    for (const char* part : {"one of 4 processes of mpirun", "built without MPI", "libopenmpi-dev",
                             "-DNANQUEST_MPI=ON", "-m nanquest train"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Launch, OneProcessNeedsNobody) {
  const auto group = join(launched());
  ASSERT_TRUE(group) << group.error().text();
  EXPECT_EQ(*group, nullptr);
}

}  // namespace
}  // namespace nanquest::trainer
