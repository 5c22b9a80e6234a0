#!/usr/bin/env bash
# Measures JSON and gRPC through nginx, and directly before and after, for docs/stacks.md: eight minutes.
#
#   study/proxied.sh FOLDER [PROCESSES [PORT]]
#
# Makes FOLDER with a row for each way, load and stack in each of 8 processes, or else none. Servers and nginx listen on
# free ports of loopback, or on those from PORT on, and end with the script. Configurations are in study/proxied.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'proxied: %s\n' "$*" >&2; exit 2; }
out=${1-} processes=${2-8} port=${3-0}
[ -n "$out" ] || fail "name a folder for the results"
[ ! -e "$out" ] || fail "$out is there already: name another folder"
PATH=$PATH:/usr/sbin
type nginx >/dev/null 2>&1 || fail "nginx is not installed: apt-get install nginx-light, or your system's package"
GOTOOLCHAIN=$(tail -n 1 .ci/releases)
export GOTOOLCHAIN
windows=$((processes > 1 ? 3 : 1))

scratch=$(mktemp -d)
chmod 755 "$scratch" # nginx's workers have another user if root starts it
started=()
ends() { # processes that were started
  kill "$@" 2>/dev/null || true
  wait "$@" 2>/dev/null || true
}
trap 'ends "${started[@]}"; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
go build -o "$scratch/rpcbench" ./cmd/rpcbench
go -C study build -o "$scratch/proxied" ./proxied

said=$scratch/said
reason() { # what a program has said that failed: the line, without the program's name
  grep -m 1 . "$said" | sed -E 's/^(rpcbench|proxied): //' || echo 'a call took a minute'
}
"$scratch/rpcbench" serve -port "$port" httpjson grpcprotobuf >"$scratch/served" 2>"$said" &
server=$! started+=($!)
until grep -qs '^# Next' "$scratch/served"; do
  kill -0 $server 2>/dev/null || fail "$(reason)"
  sleep 0.1
done
addresses=$(head -n 1 "$scratch/served")
declare -A direct addr proxies
for stack in httpjson grpcprotobuf; do
  direct[$stack]=$(tr , '\n' <<<"$addresses" | sed -n "s/^$stack=//p")
done
[ "$port" = 0 ] || port=$((port + 2)) # behind those of the servers

listens() { # sets listen to an address that is free
  if [ "$port" != 0 ]; then
    listen=127.0.0.1:$port port=$((port + 1))
    return
  fi
  while listen=127.0.0.1:$((20000 + RANDOM % 12000)) && (exec 3<>"/dev/tcp/${listen/://}") 2>/dev/null; do :; done
}
proxy() { # a stack, and the site that has nginx stand before it
  local folder=$scratch/$2 file nginx
  listens
  mkdir "$folder"
  for file in nginx "$2"; do
    sed "s|@folder@|$folder|; s|@listen@|$listen|; s|@server@|${direct[$1]}|" "study/proxied/$file.conf" \
      >"$folder/${file/$2/site}.conf"
  done
  nginx -e "$folder/error.log" -p "$folder" -c "$folder/nginx.conf" 2>"$said" &
  nginx=$! started+=($!)
  until [ -s "$folder/nginx.pid" ] && proxies[$1]="$nginx $(cat /proc/$nginx/task/*/children)" &&
    [[ ${proxies[$1]} == *' '[0-9]* ]]; do
    kill -0 $nginx 2>/dev/null || fail "$(reason)"
    sleep 0.1
  done
  addr[$1]=$listen
}
way() { # measures it, by the addresses in addr and the processes in proxies
  local row stack
  for _ in $(seq "$processes"); do
    for row in $(shuf -e {2000,0}:{httpjson,grpcprotobuf}); do
      stack=${row#*:}
      timeout 60 "$scratch/proxied" -way "$1" -stack "$stack" -addr "${addr[$stack]}" -rate "${row%:*}" \
        -windows $windows -server $server -proxy "${proxies[$stack]-}" >>"$scratch/rows.txt" 2>"$said" ||
        fail "$1: $(reason)"
    done
  done
}
directly() { # measures the way without a proxy, by a name
  local stack
  proxies=()
  for stack in "${!direct[@]}"; do addr[$stack]=${direct[$stack]}; done
  way "$1"
}

{
  "$scratch/rpcbench" version | sed 's/^/# /'
  printf '# nginx=%s\n' "$(nginx -v 2>&1 | sed 's|.*/||')"
} >"$scratch/rows.txt"
directly direct-before
for kind in '' -default; do
  proxies=()
  proxy httpjson json$kind
  proxy grpcprotobuf grpc$kind
  way "nginx$kind"
  ends "${started[@]:1}"
  started=("$server")
done
directly direct-after
mkdir -p "$(dirname "$out")"
mkdir "$out"
cp "$scratch/rows.txt" "$out/rows.txt"
