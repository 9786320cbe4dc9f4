"""The help: short for each command, whole on request, and about topics, commands and findings."""

import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from command_line import run_here, write_pair

import jaccard_eval
from jaccard_eval.cli import COMMAND_TABLE, GROUPS, run
from jaccard_eval.cli.options import ListedCommand, SectionOption
from jaccard_eval.codes import CODES
from jaccard_eval.data.known_protocols import IOU_TYPES
from jaccard_eval.data.known_protocols import RULES as PROTOCOLS
from jaccard_eval.data.known_tools import TOOLS
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.errors import ExitCode
from jaccard_eval.formats import format_names

CONTEXT = click.Context(COMMAND_TABLE)
COMMANDS = {name: COMMAND_TABLE.get_command(CONTEXT, name) for name in COMMAND_TABLE.list_commands(CONTEXT)}
Shown = Callable[..., str]
PACKAGE = Path(jaccard_eval.__file__).parent
# How a fix names an option: whole, or without its side.
SIDES_OF = {"missing": ("",), "of_side": ("", "gt_", "pred_")}


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a command line that succeeds prints, on 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run_here(*argv: str) -> str:
        assert run.run(argv) == 0
        output = capsys.readouterr()
        assert output.err == ""
        return output.out

    return run_here


def listed_options(text: str) -> set[str]:
    """The options that stand at the beginning of a line, each by its first long name."""
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_at_most_60_lines_of_80_columns(name: str, shown: Shown) -> None:
    lines = shown(name, "--help").splitlines()
    assert len(lines) <= 60
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_lists_the_basic_options_and_the_whole_help_all_of_them(name: str, shown: Shown) -> None:
    command = COMMANDS[name]
    assert isinstance(command, ListedCommand)
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    assert all(isinstance(option, SectionOption) for option in options)
    long_names = {option: next(text for text in option.opts if text.startswith("--")) for option in options}
    basic = {text for option, text in long_names.items() if isinstance(option, SectionOption) and option.basic}
    assert listed_options(shown(name, "--help")) == basic | {"--help"}
    assert listed_options(shown(name, "--help-all")) == {*long_names.values(), "--help"}


def test_evaluate_has_about_thirty_basic_options(shown: Shown) -> None:
    assert 20 <= len(listed_options(shown("evaluate", "--help"))) <= 32


def test_every_command_is_listed_once_in_a_group_with_a_whole_sentence(shown: Shown) -> None:
    text = shown("--help")
    assert re.findall(rf"^({'|'.join(GROUPS)}):$", text, re.MULTILINE) == list(GROUPS)
    for name, command in COMMANDS.items():
        assert isinstance(command, ListedCommand)
        rest = text.partition(f"\n{command.group}:\n")[2].partition("\n\n")[0]
        (line,) = [line for line in rest.splitlines() if line.split()[0] == name]
        assert line.endswith(".")
    assert "..." not in text.replace("COMMAND [ARGS]...", "")


def test_the_help_of_a_command_can_be_asked_for_by_name(shown: Shown) -> None:
    assert shown("help", "evaluate") == shown("evaluate", "--help")
    assert shown("help") == shown("--help")


def test_the_topic_of_exit_codes_lists_each(shown: Shown) -> None:
    numbers = [line.split()[0] for line in shown("help", "exit-codes").splitlines() if not line.startswith("  ")]
    assert numbers == [*(str(int(code)) for code in ExitCode)]


@pytest.mark.parametrize("topic", ["outputs", "metrics", "protocols", "findings"])
def test_a_topic_of_the_help_fits_the_terminal(topic: str, shown: Shown) -> None:
    lines = shown("help", topic).splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80
    assert "**" not in "".join(lines)


def test_metrics_stand_under_the_command_that_measures_them(shown: Shown) -> None:
    boxes, maps, segments, *_ = re.split(r"\n\n", shown("help", "metrics"))
    assert boxes.startswith("Boxes:\n  AP ")
    assert "'jaccard-eval pixels'" in maps and "mIoU" in maps and "PQ" not in maps
    assert "'jaccard-eval panoptic'" in segments and "PQ_things" in segments and "mIoU" not in segments


@pytest.mark.parametrize("name", [*COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE))])
def test_no_line_of_a_help_is_cut_at_a_hyphen(name: str, shown: Shown) -> None:
    text = shown(name, "--help-all")
    assert not re.findall(r"\w-$", text, re.MULTILINE)
    assert "\N{NON-BREAKING HYPHEN}" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "a", "b", "--top", "x"], "'x' is not a whole number of at least 1"),
        (["evaluate", "a", "b", "--gallery", "300"], "'300' is not a whole number from 0 to 200"),
        (["evaluate", "a", "b", "--bootstrap", "-3"], "'-3' is not a whole number of at least 0"),
        (["pixels", "a", "b", "--background", "sky"], "'sky' is not a whole number\n"),
    ],
)
def test_a_number_that_is_out_of_bounds_is_told_them(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(words) == 2
    assert message in capsys.readouterr().err


def test_every_finding_is_explained_from_the_page_of_findings(shown: Shown) -> None:
    for code in sorted(CODES):
        text = shown("help", code)
        assert text.startswith(f"{code}\n\n")
        assert "\nFix: " in text
        assert f"[{code}]: " in text
        assert "```" not in text
    assert "corners (`xyxy`) read as" in " ".join(shown("help", "box-encoding").split())


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("exit-code", "no help on 'exit-code'. Did you mean 'exit-codes'?"),
        ("box-encodng", "Did you mean 'box-encoding'"),
        ("evalaute", "Did you mean 'evaluate'?"),
        ("exit", "Did you mean 'exit-codes'?"),
        ("zzz", "Topics: outputs, "),
    ],
)
def test_an_unknown_topic_is_refused_with_those_that_are_near(
    word: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["help", word]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "ending"),
    [
        ("--bogus", "No such option '--bogus'."),
        ("--protocl", "No such option '--protocl'. Did you mean --protocol?"),
        ("--per-clas", "No such option '--per-clas'. Did you mean --per-class?"),
        ("--classs", "Did you mean --classes"),
        ("--fail", "Did you mean --fail-under or --fail-over or --fail-drop?"),
        ("-z", "No such option '-z'."),
    ],
)
def test_an_unknown_option_is_compared_without_its_dashes(
    option: str, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["evaluate", "a", "b", option]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert ending in first
    assert ("Did you mean" in first) is ("Did you mean" in ending)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["evaluate", "a", "b", "--iou-thres", "0.5"], "Did you mean --iou?"),
        (["evaluate", "a", "b", "--conf-thres", "0.5"], "Did you mean --score-min?"),
        (["evaluate", "a", "b", "--gt-format", "pascal"], "Did you mean 'voc'?"),
        (["evaluate", "a", "b", "--protocol", "pascal"], "Did you mean 'voc2007' or 'voc2012'?"),
        (["evaluate", "a", "b", "--name", "yolo11n"], "use --title for the page, --names for classes."),
        (["evaluate", "a", "b", "--iou-type", "mask"], "Did you mean 'segm'?"),
        (["evaluate", "a", "b", "-o", "r.xls"], "Did you mean '.xlsx'?"),
        (["explain", "a", "b", "--fail-drop", "AP=0.1"], "It is an option of evaluate, gate, panoptic, pixels."),
    ],
)
def test_words_of_other_tools_and_commands_lead_to_ours(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(argv) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("argv", [["--conf", "0.4"], ["--conf=0.4"], ["--conf"]])
def test_conf_is_refused_with_the_options_to_use_instead(
    command: str, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run([command, "a", "b", "c", *argv]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: --conf means several things; use --score for ")
    assert "--score-min to filter predictions" in message


@pytest.mark.parametrize("rule", ["--fail-under", "--fail-drop", "--fail-inferior"])
def test_a_gate_that_is_given_to_compare_leads_to_the_commands_that_judge_it(rule: str, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    refused = run_here("compare", gt, pred, pred, rule, "AP=0.01")
    assert refused.returncode == 2
    message = " ".join(refused.stderr.split())
    assert f"error: {rule} is a gate" in message
    assert "'jaccard-eval evaluate GT A -o a.npz', then 'jaccard-eval evaluate GT B --baseline a.npz'" in message
    assert run_here("evaluate", gt, pred, "-o", tmp_path / "a.npz").returncode == 0
    judged = run_here("evaluate", gt, pred, "--baseline", tmp_path / "a.npz", "--fail-drop", "AP=0.01")
    assert judged.stdout.endswith("passed 1 gate\n")


@pytest.mark.parametrize("option", ["--score", "--score-min"])
def test_the_options_that_are_named_in_place_of_conf_work(option: str, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    for argv in (["evaluate", gt, pred], ["compare", gt, pred, pred]):
        assert run_here(*argv, option, "0.5").returncode == 0


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_examples_of_the_help_are_command_lines_that_can_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gates.toml").write_text('[[gates.rules]]\nmetric = "AP"\nmin = 0.5\n')
    command = COMMANDS.get(name) or COMMAND_TABLE
    examples = re.findall(r"^  jaccard-eval (.+)$", command.epilog or "", re.MULTILINE)
    assert examples or name in ("formats", "help", "completion")
    for example in examples:
        words = shlex.split(re.split(r" [|>] ", example)[0])
        with COMMAND_TABLE.make_context("jaccard-eval", words) as context:
            found, called, rest = COMMAND_TABLE.resolve_command(context, context._protected_args + context.args)
            assert called is not None
            called.make_context(found, rest, parent=context)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_whole_help_is_ascii_for_terminals_of_any_encoding(name: str, shown: Shown) -> None:
    assert shown(name, "--help-all").isascii()


def test_nothing_to_do_shows_the_help_and_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run([]) == 2
    shown_text = capsys.readouterr()
    assert shown_text.out == ""
    assert shown_text.err.startswith("Usage: jaccard-eval ")
    assert "error:" not in shown_text.err


ULTRALYTICS = [tool.name for tool in TOOLS if tool.name.startswith("Ultralytics")]


@pytest.mark.parametrize(
    ("word", "heads"),
    [
        ("lvis", ["--protocol lvis", "lvis-api 0.5.3"]),
        ("aitod", ["--protocol aitod", "aitodpycocotools"]),
        ("AP-10K", ["--sigmas ap10k"]),
        ("ultralytics", ["--protocol ultralytics", *ULTRALYTICS, "format ultralytics"]),
        ("mmdet", ["--protocol mmdet", "mmdet 3.3.0"]),
        ("widerface", ["--protocol widerface", "WIDER FACE eval_tools (MATLAB)", "format widerface"]),
        ("AP_easy", ["metric AP[subset=easy]"]),
        ("AP_medium", ["metric AP_medium"]),
        ("yolo", ["format yolo"]),
        ("oLRP", ["metric oLRP"]),
        ("ECE", ["metric ECE"]),
        ("fppi", ["metric FPPI"]),
        ("map", ["metric AP"]),
        ("mAP50", ["metric AP50"]),
        ("recall", ["metric recall"]),
        ("iou", ["metric IoU", "option --iou"]),
        ("obb", ["--iou-type obb"]),
        ("score-min", ["option --score-min"]),
    ],
)
def test_any_name_is_explained_from_the_list_that_has_it(word: str, heads: list[str], shown: Shown) -> None:
    text = shown("help", word)
    assert re.findall(r"^(\S.*?)  ", text, re.MULTILINE) == heads


def test_every_protocol_metric_format_kind_and_option_has_an_answer(shown: Shown) -> None:
    options = [name.lstrip("-") for option in COMMANDS["evaluate"].params for name in option.opts if name[:2] == "--"]
    for word in (*PROTOCOLS, *METRICS, *format_names(), *IOU_TYPES, *options):
        assert shown("help", word)


def test_a_size_is_explained_with_its_ends(shown: Shown) -> None:
    assert "1,024 to 9,216 px²" in " ".join(shown("help", "AP_medium").split())


def test_all_protocols_are_named_where_all_options_are(shown: Shown) -> None:
    whole, short = (" ".join(shown("evaluate", option).split()) for option in ("--help-all", "--help"))
    assert f"All of them: {', '.join(PROTOCOLS)}." in whole
    assert "All of them" not in short


def test_a_name_of_a_size_and_of_subsets_is_explained_as_both(shown: Shown) -> None:
    text = " ".join(shown("help", "AP_medium").split())
    assert "1,024 to 9,216 px² by coco, or AP[subset=medium] by crowdpose, widerface" in text


def test_every_option_that_a_fix_names_is_one_of_a_command() -> None:
    known = {
        name.lstrip("-").replace("-", "_")
        for command in COMMANDS.values()
        for option in command.params
        if not getattr(option, "hidden", False)
        for name in (*option.opts, *option.secondary_opts)
    }
    named = {
        (path.name, keyword.arg)
        for path in sorted(PACKAGE.rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "Fix" and call.func.attr in SIDES_OF
        for keyword in call.keywords
        if keyword.arg not in (None, "command")
        and not any(f"{side}{keyword.arg}" in known for side in SIDES_OF[call.func.attr])
    }
    assert len(known) > 150
    assert named == set()
