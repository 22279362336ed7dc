/// sentences: what a verdict says of its own proof, the same for terminal, Markdown and viewer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "replay/verdict/verdict.h"

namespace nanquest {

/// "aten::addmm in blocks.1 (op 34)"; without a module that is "" and a number below 0.
std::string op_words(std::string_view op, std::string_view module, std::int64_t number = -1);

/// "aten::log in head (op 12)"; for an outside value its name and first reader.
std::string blamed_text(const Blamed& blamed);

/// "aten::log in head, micro-batch 3 of 4, stage 2 of 2, op 12": the culprit's op, for one of several ranks.
std::string op_text(const RankCulprit& culprit);

/// True if a collective brought the bad values from another rank.
bool arrived(const Verdict& verdict);

/// The rank that was first, if it is another one and known from its file; else null. Lives as long as
/// `verdict`.
const RankCulprit* other_rank(const Verdict& verdict);

/// The result of replacing suspects' bad values; "" if nothing was tried.
std::string blame_text(const BlameInfo& blame);

/// "DOMAIN: 3 of 3 bad elements lie below 0; against it: …". All facts against a claim, and the first fact
/// for it.
std::string claim_text(const Claim& claim);

/// How the fix was tested: "with \"…\" the step is finite. A control change of the same size did not help,
/// and no smaller change is a fix".
std::string fix_text(const Fix& fix);

/// What became of all that was tried, where none of it is a fix.
std::string no_fix_text(const Verdict& verdict);

/// The result of a change, and why a finite step is no fix: "finite, but 3 ops now give zeros alone where
/// fp64 gives numbers".
std::string trial_text(const Counterfactual& trial);

/// "DIVERGENCE (values grew over many steps), cured for the run by lr=*0.5: 64 steps past the failure; tried
/// in vain: clip=1.0; losses of all runs: …".
std::string root_text(const RootCause& root);

/// "the step came back bit for bit (360 written outputs compared)", or how much of it did not and why that
/// may be.
std::string reproduction_text(const Reproduction& reproduction);

/// "more precision only delays it: the values keep growing (fp32 finite, fp64 finite)"; "" if nothing was
/// found.
std::string precision_text(const Verdict& verdict);

/// "12 ops (aten::mul (8), aten::add_ (4)), the loss and 3 gradients"; "" if everything was looked at.
std::string unseen_text(const Unseen& unseen);

/// Why a finite step is on record: "on record because the loss was 7.9, usually 1.9 to 2.3"; "" for a step
/// that is on record for another reason.
std::string on_record_text(const Verdict& verdict);

/// For a step in which nothing harmful was found: that there is none and why the step is on record, or what
/// could not be looked at.
std::string nothing_text(const Verdict& verdict);

/// What to do if not everything was looked at.
std::string unseen_advice();

}  // namespace nanquest
