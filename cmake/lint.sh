#!/usr/bin/env bash
# ruff over the Python sources (settings in pyproject.toml), in an environment of its own in the cache.
#
#   cmake/lint.sh         # says what is wrong
#   cmake/lint.sh --fix   # and mends what can be mended
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache="${NANQUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nanquest}"
tools="$cache/lint-$(sha256sum <cmake/requirements-lint.txt | cut -c1-12)"
if [ ! -x "$tools/bin/ruff" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/python" -m pip --disable-pip-version-check --quiet install -r cmake/requirements-lint.txt
fi
if [ "${1:-}" = --fix ]; then
  "$tools/bin/ruff" check --no-cache --fix .
  "$tools/bin/ruff" format --no-cache .
else
  "$tools/bin/ruff" check --no-cache --output-format concise .
  "$tools/bin/ruff" format --no-cache --check .
fi
