"""Class names: as text, or from the files that tools write; every name stays the text that was written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog
from jaccard_eval.reading.names import find_names, load_names

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def test_names_separated_by_commas_keep_inner_blanks() -> None:
    assert load_names("cat, traffic light ,dog") == ("cat", "traffic light", "dog")


def test_one_word_is_one_class() -> None:
    assert load_names("person") == ("person",)


@pytest.mark.parametrize("spec", ["", "a,,b", " , ", "a,b,a"])
def test_text_without_a_name_for_each_index_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError, match="class names"):
        load_names(spec)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.yaml", "names: [cat, dog]\n"),
        ("data.yaml", "names:\n  0: cat\n  1: dog\n"),
        ("data.yaml", "nc: 2\nnames:\n  '1': dog\n  '0': cat\n"),
        ("obj.names", "cat\ndog\n"),
        ("classes.txt", "cat\r\ndog\r\n\r\n"),
        ("names.json", '["cat", "dog"]'),
        ("mac.txt", "cat\rdog\r"),
        ("names.json", '{"1": "dog", "0": "cat"}'),
    ],
)
def test_every_file_gives_the_same_names(write: Write, name: str, text: str) -> None:
    assert load_names(str(write(name, text))) == ("cat", "dog")


def test_a_line_that_looks_like_a_comment_is_a_class_and_said_to_be_one(write: Write) -> None:
    log = FindingLog()
    assert load_names(write("classes.txt", "cat\n# pets\ndog\n"), log) == ("cat", "# pets", "dog")
    (warning,) = log.findings()
    assert (warning.code, warning.severity) == ("names-comment", "warning")
    assert "classes.txt:2: '# pets' is read as the name of class 1" in warning.message


def test_yaml_scalars_stay_text(write: Write) -> None:
    path = write("data.yaml", "names: [no, on, 3.10, 012, 1e3, null, ~, true]\n")
    assert load_names(path) == ("no", "on", "3.10", "012", "1e3", "null", "~", "true")


@pytest.mark.parametrize(
    "text",
    [
        "train: images\n",
        "names:\n",
        "names: null\n",
        "names: cat\n",
        "names: []\n",
        "names: [cat, [dog]]\n",
        "names: [cat, '']\n",
        "names: {0: cat, 2: dog}\n",
        "names: {cat: 0}\n",
    ],
)
def test_yaml_without_a_list_or_mapping_of_names_is_an_error_about_names(write: Write, text: str) -> None:
    with pytest.raises(DataError, match="names"):
        load_names(write("data.yaml", text))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("names:\n\t- cat\n", ":2"),
        ("- cat\n", "expected keys and values"),
        ("names: !!python/object/apply:os.system [id]\n", "tag"),
        ("names: !mine [cat]\n", "tag"),
        ("names: [cat]\nnames: [dog]\n", ":2.*duplicate key 'names'"),
        ("names:\n  0: cat\n  0: dog\n", ":3.*duplicate key '0'"),
        ("a: &a [x]\nb: [" + "*a, " * 11 + "]\nnames: [cat]\n", "aliases"),
        ("names: " + "[" * 30 + "]" * 30, "deeper"),
    ],
)
def test_yaml_that_is_broken_or_more_than_plain_is_refused(write: Write, text: str, what: str) -> None:
    with pytest.raises(DataError, match=what):
        load_names(write("data.yaml", text))


def test_a_tag_for_plain_text_is_allowed(write: Write) -> None:
    assert load_names(write("data.yaml", "names: [!!str 1, dog]\n")) == ("1", "dog")


def test_what_a_data_set_says_to_download_is_never_run(write: Write, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = write("data.yaml", f"names: [cat]\ndownload: |\n  open({str(marker)!r}, 'w')\n")
    assert load_names(path) == ("cat",)
    assert not marker.exists()


def test_a_count_that_contradicts_the_names_is_a_warning(write: Write) -> None:
    log = FindingLog()
    load_names(write("data.yaml", "nc: 3\nnames: [cat, dog]\n"), log)
    assert [finding.code for finding in log.findings()] == ["names-count"]
    assert "nc is '3', but there are 2 names" in str(log.findings()[0])


@pytest.mark.parametrize("count", ["2", "2.0", "'2'"])
def test_a_count_that_fits_in_any_spelling_is_silent(write: Write, count: str) -> None:
    log = FindingLog()
    load_names(write("data.yaml", f"nc: {count}\nnames: [cat, dog]\n"), log)
    assert log.findings() == ()


def test_a_repeated_name_is_a_warning_with_its_indices(write: Write) -> None:
    log = FindingLog()
    assert load_names(write("obj.names", "cat\ndog\ncat\n"), log) == ("cat", "dog", "cat")
    assert "duplicate name 'cat' for classes 0, 2" in str(log.findings()[0])


def test_a_blank_line_between_names_is_an_error_because_it_would_shift_the_indices(write: Write) -> None:
    with pytest.raises(DataError, match=r"names\[1\] is '', not a name"):
        load_names(write("obj.names", "cat\n\ndog\n"))


def test_json_that_names_an_index_twice_is_an_error(write: Write) -> None:
    with pytest.raises(DataError, match="duplicate key '0'"):
        load_names(write("names.json", '{"0": "cat", "0": "dog"}'))


@pytest.mark.parametrize("text", ["[1, 2]", '"cat"', "[", "[" * 100_000])
def test_json_that_is_no_list_of_names_is_an_error(write: Write, text: str) -> None:
    with pytest.raises(DataError):
        load_names(write("names.json", text))


def test_a_path_that_does_not_exist_is_not_taken_for_a_name() -> None:
    with pytest.raises(DataError, match=r"nowhere/data\.yaml: no such file"):
        load_names("nowhere/data.yaml")


def test_names_files_are_found_beside_the_labels_and_two_levels_above(write: Write, tmp_path: Path) -> None:
    labels = tmp_path / "labels" / "val"
    labels.mkdir(parents=True)
    far = write("obj.names", "far\n")
    assert find_names(labels) == far
    near = labels / "classes.txt"
    near.write_text("near\n")
    assert find_names(labels) == near


def test_names_three_levels_above_are_someone_elses(write: Write, tmp_path: Path) -> None:
    write("obj.names", "far\n")
    labels = tmp_path / "a" / "b" / "c"
    labels.mkdir(parents=True)
    assert find_names(labels) is None
