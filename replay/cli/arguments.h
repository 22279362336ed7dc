/// The command line of nanquest-replay: what the flags set, and who declares them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "replay/cli/commands.h"

namespace nanquest::cli {

/// Everything that the flags set; `action` is what to do after parsing.
struct Arguments {
  Common common;
  RunArguments run;
  ReproArguments repro;
  std::string what;
  int rows = 20;
  DiagnoseArguments diagnose;
  HeadroomArguments headroom;
  JudgeArguments judge;
  CollectArguments collect;
  RanksArguments ranks;
  std::vector<std::string> more;      ///< snapshots of other ranks, after the first
  std::vector<std::string> settings;  ///< texts of --set
  RewindArguments rewind;
  DiffArguments diff;
  RedactArguments redact;
  MinimalArguments minimal;
  EmbedArguments embed;
  std::function<int()> action;
};

/// --model and --load, of every sub-command that reads a snapshot's values.
void add_model(CLI::App& app);
void add_load(CLI::App& app);
/// The snapshot and what all sub-commands of one share.
void add_common(CLI::App& app, Common& common, bool required);
void add_device(CLI::App& app, Common& common);
void add_diagnose_flags(CLI::App& app, Arguments& a);
/// A sub-command; `action` runs after all is parsed.
CLI::App* subcommand(CLI::App& app, Arguments& a, const char* name, const char* about,
                     std::function<int()> action);

/// redact, minimal, embed and collect: those that make files to be given away (arguments_of_copies.cpp).
void add_copies(CLI::App& app, Arguments& a);
/// Those over several steps: of several ranks, of two runs, of a tape (arguments_of_several.cpp).
void add_ranks(CLI::App& app, Arguments& a);
void add_diff(CLI::App& app, Arguments& a);
void add_rewind(CLI::App& app, Arguments& a);
/// What `ranks` is asked for, with the flags that it shares with others.
RanksArguments asked_of_ranks(const Arguments& a);

}  // namespace nanquest::cli
