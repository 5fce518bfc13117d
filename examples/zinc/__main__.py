"""Starts a cluster of processes with a page each, and kills the host whenever you press Enter."""

import argparse
import contextlib
import select
import signal
import subprocess
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NAMES = ("Ann", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo")


class Process:
    """A member of the cluster."""

    def __init__(self, name: str, join: str) -> None:
        self.name = name
        self.is_host = not join
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.member", "--name", name, "--join", join],
            cwd=ROOT,
            stdin=subprocess.PIPE,  # the member ends when this closes
            stdout=subprocess.PIPE,
            bufsize=0,  # select() does not see lines that are in a buffer
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout
        line = self.output.readline().decode().split()
        if len(line) != 2:
            raise SystemExit(f"{name} did not start")
        self.address, self.url = line

    def kill(self) -> None:
        """Kills it without warning, as a power cut would."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.zinc", description=__doc__)
    parser.add_argument(
        "--members", type=int, default=7, help=f"2 to {len(NAMES)} processes (default: 7)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the URLs only")
    arguments = parser.parse_args()
    if not 2 <= arguments.members <= len(NAMES):
        parser.error(f"--members takes 2 to {len(NAMES)}, not {arguments.members}")
    # When `kill` ends the demo, it ends its processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        members: list[Process] = []
        for name in NAMES[: arguments.members]:
            members.append(Process(name, members[0].address if members else ""))
            stack.callback(members[-1].end)
            print(f"{name:5} {members[-1].url}", flush=True)
        if not arguments.no_browser:
            for member in (members[0], members[-1]):
                webbrowser.open(member.url)
        with contextlib.suppress(KeyboardInterrupt):
            run(members)
    return 0


def run(members: list[Process]) -> None:
    """Kills a host for each line of stdin, until none is left or stdin ends."""
    print("Enter kills the host, Ctrl-C ends all.", flush=True)
    while members:
        ready, _, _ = select.select([sys.stdin, *(member.output for member in members)], [], [])
        for member in [member for member in members if member.output in ready]:
            # The first host reports itself, too, and later ones that only were thought dead may end.
            if not member.output.readline():
                members.remove(member)
            elif not member.is_host:
                for other in members:
                    other.is_host = other is member
                print(f"{member.name} is the host now.", flush=True)
        if sys.stdin in ready:
            if not sys.stdin.readline():
                return
            for member in [member for member in members if member.is_host]:
                member.kill()
                members.remove(member)
                print(f"{member.name} was killed.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
