"""The real binary before its own simulator, for tests by official SDKs. Standard library only."""

import hashlib
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

KEY = "sk-test-acme-0001"
OTHER_KEY = "sk-test-other-0002"

PATIENCE_S = 15

# below the range outgoing connections take theirs from: nothing grabs one before its owner binds it
_ports = itertools.count(os.getpid() * 199)


def free_addr():
    """127.0.0.1 with a port that nobody has now."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", 10000 + next(_ports) % 22000))
                return "127.0.0.1:%d" % probe.getsockname()[1]
            except OSError:
                continue


def wait_until(what, look):
    """Polls until look() is true and gives its value, or fails saying what was awaited."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.01)


def get(url, key=None):
    """Status and body of a GET; nothing where nobody listens yet."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return None


class Running:
    """A process of the binary, ended with its owner."""

    def __init__(self, binary, folder, name, *args):
        self.log = pathlib.Path(folder, f"{name}.log")
        with self.log.open("ab") as out:
            self.process = subprocess.Popen([binary, *args], stdout=out, stderr=out, cwd=folder)

    def up(self, url):
        def look():
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.log.read_text()}"
            answer = get(url)
            return answer and answer[0] == 200

        try:
            wait_until(url, look)
        except BaseException:
            self.end()
            raise
        return self

    def end(self):
        self.process.kill()
        self.process.wait()


class Ground:
    """A simulator with fast tokens, and a gateway before it."""

    def __init__(self, binary):
        self.folder = tempfile.mkdtemp(prefix="streamgate-sdk-")
        self.sim_addr, self.public, admin = free_addr(), free_addr(), free_addr()
        flags = ["--prefill-ms", "5", "--prefill-ms-per-token", "0", "--decode-ms", "10"]
        self.sim = Running(binary, self.folder, "sim", "sim", "--listen", self.sim_addr, *flags)
        self.sim.up(f"http://{self.sim_addr}/health")
        config = pathlib.Path(self.folder, "streamgate.toml")
        config.write_text(self._config(admin))
        try:
            self.gateway = Running(binary, self.folder, "gateway", "-c", str(config)).up(f"http://{admin}/readyz")
        except BaseException:
            self.sim.end()
            raise

    def _config(self, admin):
        hashes = [hashlib.sha256(key.encode()).hexdigest() for key in (KEY, OTHER_KEY)]
        return f"""
[server]
threads = 1
data_dir = "{self.folder}/data"
pid_file = "{self.folder}/streamgate.pid"
upgrade_sock = "{self.folder}/upgrade.sock"
[[listen]]
addr = "{self.public}"
[admin]
addr = "{admin}"
[log]
access = "{self.folder}/access.log"
[[tenant]]
name = "acme"
keys = [{{ sha256 = "{hashes[0]}" }}]
[[tenant]]
name = "other"
keys = [{{ sha256 = "{hashes[1]}" }}]
max_streams = 1
models = ["m"]
[[pool]]
name = "p"
models = ["m", "n"]
backends = [{{ addr = "{self.sim_addr}" }}]
stream = {{ heartbeat = "100ms" }}
"""

    @property
    def url(self):
        return f"http://{self.public}"

    @property
    def openai_url(self):
        return f"{self.url}/v1"

    def record(self, request_id, key=KEY):
        answer = get(f"{self.url}/generations/{request_id}", key)
        return json.loads(answer[1]) if answer and answer[0] == 200 else None

    def ended(self, request_id, key=KEY):
        """The record of a request once it has ended."""

        def look():
            record = self.record(request_id, key)
            return record if record and record["ended_at"] else None

        return wait_until(f"{request_id} to end", look)

    def close(self):
        self.gateway.end()
        self.sim.end()
        shutil.rmtree(self.folder, ignore_errors=True)
