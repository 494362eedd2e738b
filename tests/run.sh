#!/usr/bin/env bash
# Runs every check of the project, from any folder; installs only what is missing, below target/ where it can.
#
#   bash tests/run.sh
#
# Needs Rust, a C compiler, Python 3 and the package registries. Each step runs even where one before it failed, so that
# one run tells all that is wrong; the exit code is 0 only where every step passed.
set -uo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root" || exit 1

target=${CARGO_TARGET_DIR:-$root/target}
binary=$target/release/streamgate
tools=$target/tests
venv=$tools/venv
host=$(rustc -vV | sed -n 's/^host: //p')
nextest_version=0.9.143
fuzz_seconds=60

passed=()
failed=()

# step NAME COMMAND...: runs a command and keeps its outcome for the summary.
step() {
  local name=$1 start=$SECONDS
  shift
  printf '\n=== %s\n' "$name"
  if "$@"; then
    passed+=("$name ($((SECONDS - start)) s)")
  else
    failed+=("$name ($((SECONDS - start)) s)")
    printf '=== FAILED: %s\n' "$name"
  fi
}

# Debian keeps some of Python's and Node's parts in packages of their own.
apt_install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    printf '%s is missing and this is not root on Debian: install it and run again\n' "$*" >&2
    return 1
  fi
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q --yes --no-install-recommends "$@"
}

install_nextest() {
  cargo nextest --version 2>/dev/null && return
  # without the part that updates itself, which is half of its dependencies
  cargo install cargo-nextest --version "$nextest_version" --locked --no-default-features --features default-no-update
}

# libFuzzer is C++.
install_cxx() {
  command -v c++ >/dev/null || apt_install g++
}

# Makes the virtual environment again where the pinned versions are no longer those it was made from.
install_python_sdks() {
  local made=$venv/made-from
  if cmp --silent "$made" tests/sdk/requirements.txt; then
    return
  fi
  rm -rf "$venv"
  mkdir -p "$tools"
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv || return
  python3 -m venv "$venv" || return
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/sdk/requirements.txt || return
  cp tests/sdk/requirements.txt "$made"
}

# The Node.js of the virtual environment runs it: it is new enough, whatever the machine has.
install_npm_sdk() {
  local folder=$tools/node
  if cmp --silent "$folder/made-from" tests/sdk/package-lock.json; then
    return
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  cp tests/sdk/package.json tests/sdk/package-lock.json "$folder" || return
  (cd "$folder" && PATH="$venv/bin:$PATH" npm ci --silent --no-audit --no-fund) || return
  cp tests/sdk/package-lock.json "$folder/made-from"
}

# The tests find the server by this variable.
start_postgres() {
  STREAMGATE_TEST_POSTGRES=$(bash tests/postgres.sh start) && export STREAMGATE_TEST_POSTGRES
}

# The fuzzed crate is a workspace of its own.
format() {
  cargo fmt --check && cargo fmt --manifest-path tests/fuzz/Cargo.toml --check
}

lint() {
  cargo clippy --release --locked --all-targets -- -D warnings &&
    cargo clippy --release --locked --manifest-path tests/fuzz/Cargo.toml --target-dir "$target/fuzz" -- -D warnings
}

test_configs() {
  local file found=0
  for file in conf/*.toml; do
    [ -f "$file" ] || continue
    found=1
    if ! "$binary" -t -c "$file"; then
      printf '%s does not pass\n' "$file" >&2
      return 1
    fi
  done
  [ "$found" = 1 ]
}

# What `cargo fuzz build --sanitizer none` asks rustc for; for that alone cargo-fuzz need not be built. A stable toolchain
# will do: broken rules and overflows are panics. With a target named, what runs at build time is left as it is.
build_fuzz() {
  local flags=(--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0)
  RUSTFLAGS="${flags[*]}" cargo build --release --locked --manifest-path tests/fuzz/Cargo.toml \
    --target "$host" --target-dir "$target/fuzz"
}

# What it finds is kept for the next run; an input that breaks a rule is named in the output and lies beside.
fuzz_streams() {
  local corpus=$tools/fuzz/corpus found=$tools/fuzz/found/
  mkdir -p "$corpus" "$found"
  timeout $((fuzz_seconds + 60)) "$target/fuzz/$host/release/stream" "$corpus" tests/fuzz/corpus/stream \
    -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=1024 -dict=tests/fuzz/stream.dict \
    -artifact_prefix="$found" -print_final_stats=1 -verbosity=0 2>&1 | grep --invert-match '# Uses: '
}

test_sdks() {
  "$venv/bin/python" -B -m pytest tests/sdk --binary "$binary"
}

trap 'bash tests/postgres.sh stop' EXIT

step 'install cargo-nextest' install_nextest
step 'a C++ compiler' install_cxx
step 'install the Python SDKs' install_python_sdks
step 'install the npm SDK' install_npm_sdk
step 'format' format
step 'clippy' lint
step 'build' cargo build --release --locked
step 'start PostgreSQL' start_postgres
step 'tests' cargo nextest run --release --locked
step 'every file in conf/' test_configs
step 'the official SDKs' test_sdks
step 'build the fuzz target' build_fuzz
step "scanner and meters fuzzed for $fuzz_seconds s" fuzz_streams

printf '\n=== summary\n'
for name in "${passed[@]}"; do printf 'passed  %s\n' "$name"; done
for name in "${failed[@]}"; do printf 'FAILED  %s\n' "$name"; done
printf 'steps: %d passed, %d failed\n' "${#passed[@]}" "${#failed[@]}"
[ "${#failed[@]}" = 0 ]
