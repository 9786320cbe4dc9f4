import copy
import pickle
import re

import pytest

from jaccard_eval.patterns import pattern


def test_a_pattern_is_what_the_standard_library_compiles() -> None:
    ours, theirs = (
        pattern(r"(?P<n>\d+)x", re.ASCII | re.IGNORECASE),
        re.compile(r"(?P<n>\d+)x", re.ASCII | re.IGNORECASE),
    )
    assert (ours.pattern, ours.flags, dict(ours.groupindex)) == (theirs.pattern, theirs.flags, dict(theirs.groupindex))
    found = ours.search("ab 12X")
    assert found is not None
    assert found["n"] == "12"
    assert ours.sub("-", "1x2x") == theirs.sub("-", "1x2x") == "--"
    assert repr(ours) == repr(theirs)
    assert pattern(rb"<box").search(b"<a><box>")


def test_a_pattern_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_text = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or compile_text(*given))
    one = pattern("a+")
    assert not compiled
    assert one.fullmatch("aa")
    assert one.fullmatch("aaa")
    assert compiled == [("a+", 0)]


def test_patterns_are_copied_and_pickled() -> None:
    for one in (copy.copy(pattern("a+")), copy.deepcopy(pattern("a+")), pickle.loads(pickle.dumps(pattern("a+")))):
        assert one.fullmatch("aa")
