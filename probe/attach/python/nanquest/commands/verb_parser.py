"""The parser of the verbs: a wrong word is told in one line, with the nearest option and the command that lists them all."""

from __future__ import annotations

import argparse
import difflib


class VerbParser(argparse.ArgumentParser):
    """Also the class of its verbs' parsers. Ends the program with argparse's code 2 on a wrong word."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help lists what there is\n")

    def parse_known_args(self, args=None, namespace=None):
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._told(unknown[0]))
        return options, unknown

    def _told(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected word {word}"
        known = [option for action in self._actions for option in action.option_strings]
        nearest = difflib.get_close_matches(word.partition("=")[0], known, 1)
        return f"unknown option {word}" + (f"; did you mean {nearest[0]}?" if nearest else "")
