"""What every SDK test gets: the binary under test and the ground it runs on."""

import pathlib

import ground as grounds
import pytest
import scripted as scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--binary", default=str(ROOT / "target/release/streamgate"), help="the streamgate to test")


@pytest.fixture(scope="session")
def binary(request):
    path = pathlib.Path(request.config.getoption("--binary")).resolve()
    assert path.is_file(), f"{path} is not there; build it first"
    return str(path)


@pytest.fixture(scope="session")
def ground(binary):
    made = grounds.Ground(binary)
    yield made
    made.close()


@pytest.fixture(scope="session")
def scripted(binary):
    made = scripts.ScriptedGround(binary)
    yield made
    made.close()


@pytest.fixture
def request_id(request):
    """An id of the test's own for its one named request."""
    return request.node.name.replace("[", "-").replace("]", "")


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """A skipped test has tested nothing."""
    skipped = len(terminalreporter.stats.get("skipped", []))
    assert not skipped, f"{skipped} tests were skipped"
