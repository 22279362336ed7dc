// Whether files belong to one run, by their contents.
#include "probe/snapshot/one_run.h"

#include <gtest/gtest.h>

#include <string>

namespace nanquest {
namespace {

bool one_run(const std::string& command, const std::string& other) {
  return of_one_run({"a.h5", 2, {{"command", command}}}, {"b.h5", 2, {{"command", other}}}).ok();
}

TEST(OneRun, WhatALauncherAddsToACommandDoesNotCount) {
  EXPECT_TRUE(one_run("/a/python train.py --lr 1", "/b/python train.py --lr 1"));
  EXPECT_TRUE(one_run("python train.py --local_rank=0 --lr 1", "python train.py --local-rank 1 --lr 1"));
  EXPECT_FALSE(one_run("python train.py --lr 1", "python train.py --lr 2"));
}

TEST(OneRun, OfARayWorkerTheClusterCounts) {
  const std::string worker = "/a/python /p/ray/_private/workers/default_worker.py --cluster-id=";
  EXPECT_TRUE(one_run(worker + "7 --worker-id=1 --node-id=3", worker + "7 --worker-id=2 --node-id=4"));
  EXPECT_FALSE(one_run(worker + "7 --worker-id=1", worker + "8 --worker-id=1"));
}

}  // namespace
}  // namespace nanquest
