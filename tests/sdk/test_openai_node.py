"""The official `openai` npm SDK: its tests are in the files beside this one and run here against the same grounds."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from ground import KEY, OTHER_KEY

HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(sys.prefix)


@pytest.mark.parametrize("file, named", [("openai.test.mjs", "ground"), ("openai_apis.test.mjs", "scripted")])
def test_the_npm_sdk_streams_leaves_and_gets_typed_errors(file, named, request):
    ground = request.getfixturevalue(named)
    env = {
        **os.environ,
        "BASE_URL": ground.openai_url,
        "ACME_KEY": KEY,
        "OTHER_KEY": OTHER_KEY,
        "SDK_FOLDER": str(VENV.parent / "node"),
    }
    line = [str(VENV / "bin/node"), "--test", "--test-reporter=tap", str(HERE / file)]
    ran = subprocess.run(line, env=env, capture_output=True, text=True, timeout=120)
    told = ran.stdout + ran.stderr
    assert ran.returncode == 0, told
    counts = {name: int(n) for name, n in re.findall(r"(?m)^# (pass|fail|skipped) (\d+)$", told)}
    assert counts["pass"] > 0 and counts["fail"] == counts["skipped"] == 0, told
