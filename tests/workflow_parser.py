"""What GitHub's runner makes of a line of output: ``ActionCommand.TryParseV2`` of actions/runner, in Python."""

from dataclasses import dataclass

COMMANDS = ("error", "warning", "notice")


@dataclass(frozen=True)
class Command:
    name: str
    properties: dict[str, str]
    message: str


def parse_command(line: str) -> Command | None:
    text = line.lstrip()
    end = text.find("::", 2)
    if not text.startswith("::") or end < 0:
        return None
    name, _, given = text[2:end].partition(" ")
    if name not in COMMANDS:
        return None
    pairs = [one.split("=", 1) for one in given.strip().split(",") if one]
    properties = {pair[0]: unescape(pair[1], ":", ",") for pair in pairs if len(pair) == 2 and all(pair)}
    return Command(name, properties, unescape(text[end + 2 :]))


def parse_log(text: str) -> list[Command]:
    return [command for line in text.split("\n") if (command := parse_command(line)) is not None]


def unescape(text: str, *also: str) -> str:
    for character in ("\r", "\n", *also, "%"):
        text = text.replace(f"%{ord(character):02X}", character)
    return text
