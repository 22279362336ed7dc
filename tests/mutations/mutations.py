"""Faults to be planted in the code of guarantees (docs/testing.md), and the test that must find each.

A row: the file (a path from the root, or of the Python package its name alone, wherever it lies), its text, what becomes of it, the
target that must be built ("" for Python), the test of ctest that must fail, and "day" or "night".
"""

MUTATIONS = [
    # The gate and what is an incident.
    ("probe/step/gate.cpp", "return non_finite == 0 && std::isfinite(norm);", "return non_finite == 0;", "step_test", "step_test", "day"),
    ("probe/step/gate.cpp", "all.norm = std::sqrt(sum);", "all.norm = sum;", "step_test", "step_test", "day"),
    ("probe/step/gate.cpp", "pass_.run(loss_scale == 1 ? 1 : 1 / loss_scale);", "pass_.run(1);", "step_test", "step_test", "day"),
    ("probe/step/judge.cpp", "if (!loss_finite || !facts.scaler_acts || !can_fall) return", "if (!loss_finite || !facts.scaler_acts) return",
     "nanquest_attach_python", "attach.outside_test", "day"),
    ("probe/step/incident_writer.cpp", "if (files_ < options_.max_files) return true;", "return true;", "probe_test", "probe_test", "day"),
    # What is undone, kept, and elected.
    ("probe/step/undo_log.cpp", "for (Buffer& b : buffers_) copy_values(b.copy, b.live);", "", "step_test", "step_test", "day"),
    ("probe/step/undo_log.cpp", "r.generator.set_state(r.state);", "", "step_test", "step_test", "day"),
    ("probe/step/file_budget.cpp", "if (file == first || (file->kind", "if ((file->kind", "step_test", "step_test", "day"),
    ("probe/step/election.cpp", " || behind == world_size_ / 2;", ";", "step_test scale_test", "step_test|scale_test", "day"),
    # Files.
    ("probe/snapshot/atomic_file.cpp", "if (!temporary.empty()) ::unlink(temporary.c_str());", "", "snapshot_test", "snapshot_test", "day"),
    ("probe/snapshot/check.cpp", "if (first >= 0 && count >= 0 && static_cast<std::uint64_t>(first + count) <= size) return;", "return;",
     "snapshot_test", "snapshot_test|fuzz_snapshot", "day"),
    ("probe/snapshot/check.cpp", "if (n < 0 || __builtin_mul_overflow(count, n, &count)) return false;",
     "if (__builtin_mul_overflow(count, n, &count)) return false;", "snapshot_test", "snapshot_test|fuzz_snapshot", "day"),
    ("probe/snapshot/series_reader.cpp", "if (major < 0 || major > kSeriesMajor)", "if (major < 0)", "snapshot_test", "snapshot_test", "day"),
    ("probe/snapshot/series_reader.cpp", "complete = std::min(complete, rows);", "complete = std::min(complete, t.rows());", "snapshot_test",
     "snapshot_test", "day"),
    ("probe/snapshot/seal.cpp", "hashes.push_back(hash_bytes(buffer.data(), n));", "", "snapshot_test", "snapshot_test", "day"),
    ("probe/snapshot/run_claim.cpp", "lock.l_type = F_WRLCK;", "lock.l_type = F_RDLCK;", "snapshot_test", "snapshot_test", "day"),
    ("probe/snapshot/safetensors.cpp", "at += t.bytes;", "", "snapshot_test", "snapshot_test", "day"),
    # Numbers.
    ("probe/numerics/trend.cpp", "const double flat = trend.slope + 2 * trend.error;", "const double flat = trend.slope;",
     "numerics_format_test", "numerics_format_test", "day"),
    ("probe/numerics/format.cpp", "return result > first_bad ? first_bad : result;", "return result;", "numerics_format_test",
     "numerics_format_test", "day"),
    ("probe/numerics/hash.cpp", "lanes[j ^ 1] += word;", "lanes[j] += word;", "numerics_hash_test", "numerics_hash_test", "day"),
    # The recorded step as a graph.
    ("probe/trace/walk.cpp", "if (origin == SlotOrigin::buffer || origin == SlotOrigin::loss_scale) return true;", "", "trace_test",
     "trace_test", "day"),
    ("probe/trace/walk.cpp", "(c.neg_inf ? kKindNegInf : 0)", "0", "trace_test", "trace_test", "day"),
    # Replay and what it says.
    ("replay/verdict/rehearsal.cpp", 'if (!std::isnan(loss)) sum += loss, ++count;', 'sum += loss, ++count;', "replay_verdict_test",
     "replay_verdict_test", "day"),
    ("replay/verdict/rehearsal.cpp", "if (price.price > dearest.price) dearest = price;", "dearest = price;", "replay_verdict_test",
     "replay_verdict_test", "day"),
    ("replay/share/redact.cpp", "return std::ldexp(std::trunc(digits * kSteps) / kSteps, exponent);", "return value;",
     "nanquest-replay replay_share_test", "replay_share_test", "day"),
    # The viewer.
    ("viewer/model/search.cpp", "if (!wanted() || !words_.in(", "if (!words_.in(", "viewer_model_test", "viewer_model_test", "day"),
    # The Python package.
    ("muted.py", 'return [[each["op"], each["module"]] for each in entries(path)]', "return []", "", "attach.mute_test", "day"),
    ("quarantine.py", "return index if len(kept) == len(index) else kept or None", "return index", "", "attach.quarantine_test", "day"),
    ("bad_steps.py", 'if told["gradients_bad"] or place_in_group()[1] == 1:', "if True:", "", "attach.ddp", "day"),
    ("launcher.py", "return os.WEXITSTATUS(status)", "return 0", "", "attach.launcher_test", "day"),
    ("launcher.py", "os.kill(pid, told.si_signo)", "pass", "", "attach.launcher_signals_test", "day"),
    ("reports.py", 'if any("off" in process or "launched" in process for process in processes)', 'if any("off" in process for process in processes)',
     "", "attach.launcher_report_test", "day"),
    ("sitecustomize.py", 'return os.environ.get("NANQUEST", "").strip().lower() in ("off", "0", "false", "no")', "return False", "",
     "attach.off_test", "day"),
    ("settings.py", 'skip_bad_updates=self.on_incident in WITHHOLDS,', 'skip_bad_updates=False,', "", "attach.fallback_test", "day"),
]
