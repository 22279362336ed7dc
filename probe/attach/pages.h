/// AttachSession::Pages: a step of a foreign program, running or over, as its file needs it.
#pragma once

#include "probe/attach/session.h"

namespace nanquest::attach {

class AttachSession::Pages final : public StepPages {
 public:
  Pages(AttachSession& session, record::Step& step, RoundFacts facts);

  const record::Step& step() const { return step_; }
  /// The step's tables, made at the first call, without what only a file needs.
  SnapshotDoc& doc();
  Recording* tables(Facts& told) override;
  void complete(Facts& told) override;
  /// After `tables`: the collective by which the culprit's values came from another process; "" if they did
  /// not.
  const std::string& arrived_by() const { return arrived_by_; }

 private:
  /// What ran between the last update and this step, where bad values came from there.
  void add_lead();

  AttachSession& session_;
  record::Step& step_;
  RoundFacts facts_;
  bool runs_;
  StepNames named_;
  std::optional<StepTables> tables_;
  std::unique_ptr<record::Step> held_;  ///< of the tape
  std::string arrived_by_;
};

}  // namespace nanquest::attach
