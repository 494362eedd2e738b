#!/usr/bin/env bash
# A PostgreSQL server for the tests: installed where it is missing, on a port of its own, its files below target/.
#
#   bash tests/postgres.sh start    starts it where it does not run, and prints its URL
#   bash tests/postgres.sh stop     ends it and removes its files
#
# Whoever needs it may call `start`, also several at once. Ten minutes after the last such call it ends by itself, once
# nobody is connected.
# The user `streamgate` may do anything in it; `guarded` must show the password `secret`.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$root/target}/tests/postgres
idle_minutes=10

say() { printf 'tests/postgres.sh: %s\n' "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

# The folder of the server's programs, the newest version's.
programs() {
  local found
  found=$(find /usr/lib/postgresql /usr/pgsql-* -path '*/bin/postgres' 2>/dev/null | sort -V | tail -n 1)
  if [ -n "$found" ]; then
    dirname -- "$found"
  elif command -v postgres >/dev/null; then
    dirname -- "$(command -v postgres)"
  else
    return 1
  fi
}

install_server() {
  programs >/dev/null && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    fail 'PostgreSQL is missing and this is not root on Debian: install its server and try again'
  fi
  # Debian would set up and start a cluster of its own, which nobody asked for
  mkdir -p /etc/postgresql-common/createcluster.d
  printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.d/streamgate-tests.conf
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -q --yes --no-install-recommends postgresql >&2
}

# The server refuses to run as root.
user() {
  if [ "$(id -u)" != 0 ]; then
    id -un
  elif id postgres >/dev/null 2>&1; then
    printf 'postgres\n'
  else
    printf 'nobody\n'
  fi
}

as_user() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && runuser -u "$(user)" -- "$@")
  else
    "$@"
  fi
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

url() { printf 'postgres://streamgate@127.0.0.1:%s/postgres\n' "$(cat "$folder/port")"; }

# The server's pid, where it runs. One that is dead and not buried yet runs no more.
pid() {
  local pid
  pid=$(head -n 1 "$(cat "$folder/place" 2>/dev/null)/data/postmaster.pid" 2>/dev/null) &&
    kill -0 "$pid" 2>/dev/null && ! grep -qs '^State:.*Z' "/proc/$pid/status" && printf '%s\n' "$pid"
}

# Where the server's user cannot get to target/, its files lie in the system's folder for such.
make_place() {
  mkdir -p "$folder"
  local place=$folder/server
  mkdir -p "$place" && chown "$(user)" "$place"
  if ! as_user test -w "$place" 2>/dev/null; then
    place=$(mktemp -d "${TMPDIR:-/tmp}/streamgate-postgres.XXXXXX")
    chown "$(user)" "$place"
  fi
  printf '%s\n' "$place" >"$folder/place"
}

configure() {
  local data=$1 port=$2
  install -o "$(user)" -m 600 "$root/tests/support/tls/server.key" "$data/server.key"
  install -o "$(user)" -m 644 "$root/tests/support/tls/server.pem" "$data/server.crt"
  cat >>"$data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
ssl = on
max_connections = 200
CONF
  cat >"$data/pg_hba.conf" <<HBA
host all guarded 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
HBA
}

launch() {
  local bin place port
  bin=$(programs)
  make_place
  place=$(cat "$folder/place")
  as_user "$bin/initdb" --pgdata "$place/data" --username streamgate --auth trust --encoding UTF8 --locale C \
    --no-sync >"$folder/initdb.log" 2>&1 || fail "initdb failed, see $folder/initdb.log"
  for _ in 1 2 3 4 5; do
    port=$(free_port)
    configure "$place/data" "$port"
    if as_user "$bin/pg_ctl" --pgdata "$place/data" --log "$place/log" --wait start >/dev/null 2>&1 </dev/null 9>&-; then
      printf '%s\n' "$port" >"$folder/port"
      as_user "$bin/psql" --quiet --no-psqlrc "$(url)" --command "CREATE ROLE guarded LOGIN PASSWORD 'secret'" >&2 &&
        return
      stop
      fail 'the server cannot be used'
    fi
  done
  fail "the server does not start, see $place/log"
}

in_use() {
  local others="SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
  [ -n "$(find "$folder/used" -mmin "-$idle_minutes" 2>/dev/null)" ] ||
    [ "$(as_user "$(programs)/psql" --no-psqlrc --tuples-only --no-align "$(url)" --command "$others")" != 0 ]
}

# Ends the server once nobody has used it for a while.
watch() {
  while pid >/dev/null; do
    sleep 20
    in_use || stop
  done
}

start() {
  mkdir -p "$folder"
  exec 9>"$folder.lock"
  flock 9
  touch "$folder/used"
  if ! pid >/dev/null; then
    remove
    mkdir -p "$folder"
    touch "$folder/used"
    install_server
    launch
    setsid bash "${BASH_SOURCE[0]}" watch >/dev/null 2>&1 </dev/null 9>&- &
  fi
  url
}

remove() {
  local place
  place=$(cat "$folder/place" 2>/dev/null) && rm -rf -- "${place:?}"
  rm -rf -- "${folder:?}"
}

stop() {
  local server
  if server=$(pid); then
    kill -INT "$server"
    for _ in $(seq 200); do
      pid >/dev/null || break
      sleep 0.05
    done
    kill -QUIT "$server" 2>/dev/null || true
  fi
  remove
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  watch) watch ;;
  *) fail 'say start or stop' ;;
esac
