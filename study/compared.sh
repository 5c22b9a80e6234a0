#!/usr/bin/env bash
# Calls the same servers by ghz, by vegeta and by rpcbench, for docs/compared.md: eight minutes.
#
#   study/compared.sh study/results/<folder>/compared
#
# Needs ghz and vegeta in PATH. CPU of the server and of the client is user and system time of their processes.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?name a folder for the results}
mkdir -p "$out"
go build -o "$out/program" ./cmd/rpcbench
"$out/program" serve httpjson grpcprotobuf >"$out/served" &
server=$!
trap 'kill $server; rm -f "$out/program" "$out/served"' EXIT
until grep -q grpcurl "$out/served"; do sleep 0.1; done
addresses=$(head -1 "$out/served")
json=${addresses#httpjson=} grpc=${addresses#*grpcprotobuf=}
json=${json%%,*}

user='{"email":"ann@example.com","name":"Anna","password":"secret"}'
call=rpcbench.user.v1.UserService/CreateUser
target="{\"method\":\"POST\",\"url\":\"http://$json/users\",\"body\":\"$(printf %s "$user" | base64 -w0)\""
target+=',"header":{"Content-Type":["application/json"]}}'
ghz() { command ghz --insecure --call "$call" -d "$user" -c 50 -z 10s "$@" "$grpc"; }
vegeta() { echo "$target" | command vegeta attack -format json -duration 10s "$@" | command vegeta report; }

ticks() { awk '{print $14+$15}' "/proc/$server/stat"; } # hundredths of a second, before Linux says otherwise
beside() {                                             # runs a tool, and says what CPU both sides took
  local before took
  before=$(ticks)
  printf '\n$ %s\n' "$*"
  TIMEFORMAT='client: %U s user, %S s system'
  time "$@"
  took=$(($(ticks) - before))
  printf 'server: %d.%02d s\n' $((took / 100)) $((took % 100))
}
{
  printf '# %s\n' "$("$out/program" version | head -7 | tr '\n' ' ')"
  for tool in ghz vegeta; do go version -m "$(type -P $tool)" | awk '$1 == "mod" {print "#", $2, $3}'; done
  for _ in 1 2 3; do
    beside ghz --rps 2000
    beside vegeta -rate 2000
    beside ghz
    beside vegeta -rate 0 -max-workers 50
  done
} &>"$out/tools.txt"
"$out/program" run -server "$addresses" -callers 50 -out "$out/same-servers"
"$out/program" run -apart -rate 2000,saturated -callers 50 -out "$out/apart"
