#!/usr/bin/env bash
# Measures what README.md, docs/ and study/ publish, in parts of a quarter of an hour or less, with the newest Go release.
# Needs Go, git and a quiet machine.
#
#   study/measure.sh study/results/<folder>          every part of the hour that is not there: 80 minutes
#   study/measure.sh study/results/<folder> PART…    these parts alone, also of the second line
#   study/measure.sh -check [PART…]                  begins each part: two minutes, and nothing stays
#
# Each part has a folder and a line in state.txt, and is committed when it is done. A part with a line is not measured
# again. All parts are of one state of all files that are no .md, outside of docs/, study/pages/, study/figures/ and
# study/results/. State.txt keeps its hash.
set -euo pipefail
cd "$(dirname "$0")/.."
GOTOOLCHAIN=$(tail -n 1 .ci/releases)
export GOTOOLCHAIN
fail() { printf 'measure: %s\n' "$*" >&2; exit 2; }
out=${1-} checks='' # or 1
[ "$out" != -check ] || checks=1
[[ -n $checks || $out == study/results/* ]] || fail "name a folder, such as study/results/$(date -u +%F)-epyc-2vcpu"
shift

# The hour that pages are made from: each part and its minutes, about.
hour=(run:2 rates-small:8 rates-structured:8 rates-etcd:8 asked:1 conns-small:3 conns-structured:4 conns-1-5000:1
  conns-5-5000:1 conns-20-5000:1 conns-100-5000:1 jsoniter:5 list:5 list-127:4 workloads-1:7 workloads-2:7 stacks:3
  variants:5 cores:3 codecs:8)
# Kept from the hour in which their code last changed.
second=(pools:6 h2c:4 price:8 inprocess:2 proxied:8 rates-floor:2 rates-default:5 rates-windows:9 rates-tuned:5
  rates-direct:2 windows:7 flow:1 steps:1 more:8 vt:2 connect-gzip:1 unix:1 sonic:1 rows:1 servers:2 network:30 peers:11 own:8
  grpc-go:10 go-json:6 go-grpc:6 why:10 apart:2 calibration:120)
# Each working day, on whatever machine there is, quiet or not, in a folder of its own: what another day does.
daily=(again:8)

others="grpcservehttp connectrpc connectrpc2 httpprotobuf httpmsgpack httpxml rawtcp httpjson.h2c"
cores=small-load,structured-load-tls,small-saturated,structured-saturated-tls,small-apart,small-1000-per-second
cores+=,small-load-one-core,small-load-wait,small-saturated-wait,drawn-load
core=small,structured-2kB,cold-tls,mixed,structured-18kB,bytes-800B,bytes-1kB,bytes-10kB,bytes-100kB,stream,cold
core+=,cold-4g,headers
samples=study/results/2026-11-26-epyc-2vcpu-morning/list-samples
list() { rpcbench run -request $samples/request.json -reply $samples/reply.json "$@"; } # 1,000 small records
rpcbench() { begins go run ./cmd/rpcbench "$@"; }
more() { begins go -C stacks/more run ./cmd/bench "$@"; }
bench() { GOMAXPROCS=1 rows "$tests" -test.run '^$' -test.benchmem "$@"; }
calls() { bench -full -test.bench "^BenchmarkCall\$/$1" -test.benchtime "$2" -stacks "$3"; } # workloads, how long, stacks
codec() { # a codec, how long, and perhaps a pattern of messages
  [ -e "$tests.codecs" ] || go -C study test -c -o "$tests.codecs" ./codecs
  GOMAXPROCS=1 rows "$tests.codecs" -test.run '^$' -test.benchmem -test.benchtime "$2" -full \
    -test.bench "^BenchmarkCodec\$/codec=$1\$${3-}"
}
rounds() { seq "${checks:-$1}"; }
rows() { # of a test's program: a pattern that matches no benchmark is no error of its own
  local all
  all=$("$@" ${checks:+-test.benchtime 1x}) || fail "${*:2} fails: $all"
  grep -q ^Benchmark <<<"$all" || fail "no row matches ${*:2}"
  printf '%s\n' "$all"
}
# A command that measures for long. -check ends it once it has begun: rpcbench run then says how long it will take,
# rpcbench explain has started a process, and so has the program of go test.
begins() {
  [ -n "$checks" ] || { "$@"; return; }
  local pid limit=$((SECONDS + 120))
  [ "$1 $2 $3" != "go run ./cmd/rpcbench" ] || set -- "$scratch/rpcbench" "${@:4}"
  : >"$scratch/said" # of the command before, which this one may open too late
  "$@" 2>>"$scratch/said" &
  pid=$! program=$! # which is below go
  trap 'kill ${program:-$pid}' EXIT
  until
    [ "$1" != go ] || program=$(below $pid)
    case $* in
    *' explain '* | *' test '* | *' ./network '*) [ -n "$(below $program)" ] ;;
    *) [ -n "$program" ] && grep -q ' left of about ' "$scratch/said" ;;
    esac
  do
    if ! kill -0 $pid 2>/dev/null; then
      trap - EXIT
      wait $pid && return
      fail "$(grep -v '^exit status' "$scratch/said" | tail -n 1): $*"
    fi
    [ $SECONDS -lt $limit ] || fail "$* has not begun in two minutes"
    sleep 0.1
  done
  kill $program
  trap - EXIT
  wait $pid || true
}
below() { # the processes that processes have started, of which Linux may miss some at times
  for parent; do cat /proc/"$parent"/task/*/children 2>/dev/null || true; done
}

rates() { # a folder and stacks: at rates and saturated in two processes, and for one caller on two cores
  mkdir "$1"
  local messages payload
  for messages in small structured; do
    payload=()
    [ $messages = small ] || payload=(-payload flex.2kB)
    rpcbench run "${payload[@]}" -rate 1000,2000,5000,10000,saturated -apart -time 3s -out "$1/$messages" "${@:2}"
    rpcbench run "${payload[@]}" -gomaxprocs 2 -time 3s -out "$1/$messages-one-caller" "${@:2}"
  done
}

apis=internal/scaffold/testdata/public
public() { # a public API's folder, file and call, and flags of run
  local imports
  dir() { go -C $apis list -m -f '{{.Dir}}' "$1"; }
  go -C $apis mod download
  imports=$scratch/imports
  [ -e "$imports" ] || { # etcd's files import each other below etcd/api
    mkdir -p "$imports/etcd/etcd"
    ln -s "$(dir go.etcd.io/etcd/api/v3)" "$imports/etcd/etcd/api"
    ln -s "$(dir cel.dev/expr)/proto" "$imports/cel"
    ln -s "$(dir k8s.io/cri-api)/pkg/apis/runtime/v1" "$imports/cri"
  }
  rpcbench run -I "$imports/$1" -proto "$2" -call "$3" -request $apis/"$1"/request.json -reply $apis/"$1"/reply.json \
    "${@:4}"
}

namespaces() { # which -check does without, where a system has none
  go -C study run ./network can && return
  [ -n "$checks" ] || fail 'no network can be made here'
  return 1
}

measure() { # a part, and the folder to make
  case $1 in
  run) rpcbench run -out "$2" ;;
  rates-small)
    rpcbench run -rate 1000,2000,5000,10000,20000,saturated -apart -time 5s -out "$2" grpcprotobuf
    ;;
  rates-structured)
    rpcbench run -payload flex.2kB -rate 1000,2000,5000,10000,saturated -apart -time 5s -out "$2" grpcprotobuf
    ;;
  rates-default) rates "$2" grpcprotobuf httpjson.default ;;
  rates-windows) rates "$2" grpcprotobuf grpcprotobuf.windows ;;
  rates-tuned) rates "$2" grpcprotobuf.tuned ;;
  rates-direct)
    rpcbench run -rate 2000,5000,10000 -apart -time 3s -base grpcprotobuf -out "$2" grpcprotobuf.windows
    ;;
  rates-etcd)
    public etcd etcd/api/etcdserverpb/rpc.proto etcdserverpb.KV/Txn -rate 1000,2000,5000,10000,saturated -apart \
      -time 5s -out "$2" grpcprotobuf
    ;;
  asked) # what README's command prints of the three core stacks
    mkdir "$2"
    rows go test -run '^$' -bench '^Benchmark(GRPCProtobuf|HTTPJSON|HTTPJSONIter)$' -benchmem -count 6 . >"$2/rows.txt"
    ;;
  pools) # gRPC's callers on one, four and sixteen connections
    mkdir "$2"
    for callers in 100 1000; do
      rpcbench run -callers $callers -conns 1,4,16 -apart -time 3s -base grpcprotobuf -out "$2/$callers" \
        grpcprotobuf.windows
    done
    ;;
  h2c) # JSON over HTTP/2, whose connection takes 250 calls, and HTTP/1.1; and what connections hold at rest
    mkdir "$2"
    rpcbench run -callers 1,8,64,200 -apart -time 3s -out "$2/callers" httpjson.h2c
    rpcbench idle -out "$2/idle" 1000 httpjson.h2c grpcprotobuf
    ;;
  price) # what is added to a call, by stacks that add it, and by workloads in ten processes each, in random order
    mkdir "$2"
    more run -thorough -time 3s -workloads small -out ../../"$2"/json httpjson.gzip httpjson.h2c httpjson.chain \
      httpjson.otel httpjson.otel.unsampled
    more run -thorough -time 3s -workloads small -base grpcprotobuf -out ../../"$2"/grpc grpcprotobuf.gzip \
      grpcprotobuf.chain grpcprotobuf.otel grpcprotobuf.otel.unsampled
    for _ in $(rounds 10); do
      for row in $(shuf -e {small,tls,headers,deadline,cold,cold-tls}:{httpjson,grpcprotobuf}); do
        calls "^workload=${row%:*}\$" 300ms "${row#*:}"
      done
    done >"$2/rows.txt"
    ;;
  proxied) study/proxied.sh "$2" ${checks:+1} ;; # through nginx, and directly
  rates-floor) # the least that a call at a rate takes: hardly more than our loop and the kernel
    rpcbench run -rate 1000,2000,5000 -apart -time 3s -out "$2" rawtcp
    ;;
  flow) # two mechanisms of HTTP/2, in ten processes each
    mkdir "$2"
    go -C study test -c -o "$tests.flow" ./flow
    for _ in $(rounds 10); do
      GOMAXPROCS=1 rows "$tests.flow" -test.run '^$' -test.bench '^BenchmarkHeader$' -test.benchtime 300ms
    done >"$2/header.txt"
    rows "$tests.flow" -test.run '^$' -test.bench '^BenchmarkHeld$' -test.benchtime 1x >"$2/held.txt"
    ;;
  steps) # counts of payloads on both sides of 1,024 bytes
    mkdir "$2"
    for payload in 950B 1kB; do
      rpcbench count -payload $payload grpcprotobuf >"$2/$payload.txt"
    done
    ;;
  windows) # what the two options of tuned are worth, and what a fixed window does over a link and to large messages
    mkdir "$2"
    rpcbench run -thorough -time 3s -workloads small -base grpcprotobuf.windows -out "$2/workers" grpcprotobuf.tuned
    rpcbench run -thorough -time 3s -workloads small -base grpcprotobuf -out "$2/one-core" grpcprotobuf.windows
    rpcbench run -payload 1MB -link 40ms/100Mbps -processes 6 -base grpcprotobuf -out "$2/link" grpcprotobuf.windows
    rpcbench run -payload 100kB -callers 100 -apart -base grpcprotobuf -out "$2/callers" grpcprotobuf.windows
    rpcbench run -payload 1MB -link 40ms/100Mbps -new-connections -processes 6 -out "$2/first" grpcprotobuf \
      grpcprotobuf.windows
    ;;
  conns-small) rpcbench run -callers 100 -conns 1,5,20,100 -apart -time 5s -out "$2" grpcprotobuf ;;
  conns-structured)
    rpcbench run -payload flex.2kB -callers 100 -conns 1,5,20,100 -apart -time 5s -out "$2" grpcprotobuf
    ;;
  conns-*-5000)
    conns=${1#conns-} conns=${conns%-5000}
    rpcbench run -callers 100 -conns "$conns" -rate 5000 -apart -time 5s -out "$2" grpcprotobuf
    ;;
  jsoniter)
    rpcbench run -thorough -time 5s -out "$2" httpjsoniter \
      -workloads small,mixed,structured-2kB,structured-saturated-tls,structured-load-tls
    ;;
  list) list -workloads call -time 4s -base httpjson@go1.26.8 -out "$2" httpjson@go1.27.4 ;;
  list-127) list -workloads call,call-saturated -time 3s -out "$2" grpcprotobuf ;;
  workloads-1) rpcbench run -thorough -time 3s -workloads "$cores" -out "$2" grpcprotobuf ;;
  workloads-2) rpcbench run -thorough -time 4s -workloads "$core" -out "$2" grpcprotobuf ;;
  stacks) rpcbench run -thorough -time 3s -workloads small -out "$2" httpjsoniter $others ;;
  cores) rpcbench run -thorough -time 3s -workloads small-apart -out "$2" $others ;;
  variants)
    rpcbench run -thorough -time 3s -workloads small -out "$2" grpcprotobuf.tuned grpcprotobuf.vt grpcprotobuf.gzip \
      grpcservehttp.vt connectrpc.vt connectrpc.gzip connectrpc.h2c connectrpc.grpc connectrpc.grpcweb \
      connectrpc.json httpjson.decoder httpjson.tuned httpjson.gzip httpjson.v2 httpjsoniter.fastest
    ;;
  more)
    more run -thorough -time 5s -workloads small,small-apart -out ../../"$2" \
      grpcprotobuf.pooled fasthttpjson drpc grpcgateway grpcgateway.proxy httpjson.otel \
      httpjson.otel.unsampled grpcprotobuf.otel grpcprotobuf.otel.unsampled connectrpc.otel connectrpc.otel.unsampled \
      httpjson.chain grpcprotobuf.chain
    ;;
  vt) rpcbench run -thorough -workloads small,structured-2kB,structured-18kB -base grpcprotobuf -out "$2" grpcprotobuf.vt ;;
  connect-gzip) rpcbench run -thorough -workloads small,structured-2kB -base connectrpc -out "$2" connectrpc.gzip ;;
  unix) rpcbench run -thorough -unix -gomaxprocs 1 -out "$2" ;;
  sonic) # ten processes for each codec that the tables leave out, in random order
    mkdir "$2"
    for _ in $(rounds 10); do
      for codec in $(shuf -e json sonic sonic.std cbor); do
        codec "$codec" 100ms "/msg=(user|newsfeed)\$"
      done
    done >"$2/rows.txt"
    ;;
  codecs) # ten processes for each codec, in random order
    mkdir "$2"
    for _ in $(rounds 10); do
      for codec in $(shuf -e none protobuf protobuf.append protobuf.delimited protobuf.vt json json.v2 json.stream \
        json.gzip goccy jsoniter xml msgpack.generated); do
        codec "$codec" 40ms
      done
    done >"$2/rows.txt"
    ;;
  rows) # ten processes for each workload and stack, in random order
    mkdir "$2"
    for _ in $(rounds 10); do
      for row in $(shuf -e {small,headers,invalid,deadline}:{httpjson,grpcprotobuf}); do
        calls "^workload=${row%:*}\$" 300ms "${row#*:}"
      done
    done >"$2/rows.txt"
    go tool -modfile=internal/tools/go.mod benchstat -row /workload -col '/stack@(httpjson grpcprotobuf)' \
      -filter '.unit:(sec/op OR cpu-sec/op OR sent-B/op OR p50-sec)' "$2/rows.txt" >"$2/tables.txt"
    ;;
  servers) # six processes for each server or stack, in random order
    mkdir "$2"
    for _ in $(rounds 6); do
      for row in $(shuf -e cross echo); do
        if [ "$row" = cross ]; then
          bench -test.benchtime 500ms -full -test.bench '^BenchmarkCross$'
        else
          calls '^workload=(empty|mixed)(-50x20)?$' 500ms grpcprotobuf,connectrpc.grpc,grpcservehttp
        fi >>"$2/$row.txt"
      done
    done
    ;;
  network) # packets that are lost, beneath the kernel's own TCP
    namespaces || return 0
    mkdir "$2"
    over() { # a folder, a link, and what else
      rpcbench run -apart -link "$2" -processes 6 -out "$folder/$1" "${@:3}"
    }
    folder=$2
    over 20ms-1 20ms/100Mbps/1% -rate 500 grpcprotobuf httpjson.h2c
    over 20ms-0 20ms/100Mbps/0% -rate 500 grpcprotobuf httpjson.h2c
    over 20ms-1-four 20ms/100Mbps/1% -rate 500 -conns 4 -base grpcprotobuf httpjson.h2c
    over 20ms-1-tls 20ms/100Mbps/1% -rate 500 -tls grpcprotobuf
    over 0ms-1 0ms/100Mbps/1% -rate 500 grpcprotobuf
    over 0ms-0 0ms/100Mbps/0% -rate 500 grpcprotobuf
    for loss in 0 0.1; do
      over 20ms-$loss-100kB 20ms/100Mbps/$loss% -payload 100kB -callers 8 grpcprotobuf
    done
    over 20ms-0.1 20ms/100Mbps/0.1% -rate 1000 -time 72s grpcprotobuf
    ;;
  peers) # what run can't ask: HTTP/3, another timer, and a peer that vanishes
    namespaces || return 0
    mkdir "$2"
    lossy() { begins go -C study run ./network "$@"; }
    lossy http3 3 15 >"$2/http3.txt"
    lossy rto 3 22 >"$2/rto.txt"
    lossy vanish 1 60 >"$2/vanish.txt"
    ;;
  again) # the leading comparisons, short
    mkdir "$2"
    rpcbench run -rate 2000,saturated -apart -time 3s -out "$2/small" grpcprotobuf
    rpcbench run -payload flex.2kB -rate 2000,saturated -apart -time 3s -out "$2/structured" grpcprotobuf
    rpcbench run -callers 100 -conns 100 -apart -time 3s -out "$2/conns" grpcprotobuf
    rpcbench run -workloads small,structured-2kB,bytes-10kB -time 3s -out "$2/one-core" grpcprotobuf
    ;;
  own) # three public APIs, whose .proto files come with Go modules
    mkdir "$2"
    public etcd etcd/api/etcdserverpb/rpc.proto etcdserverpb.KV/Txn -thorough -time 5s -out "$2/etcd"
    public cel cel/expr/conformance/conformance_service.proto cel.expr.conformance.ConformanceService/Check \
      -thorough -time 5s -out "$2/cel"
    public cri api.proto runtime.v1.RuntimeService/ListContainers -thorough -time 5s -out "$2/cri"
    ;;
  grpc-go)
    rpcbench run -workloads small,structured-18kB -base grpcprotobuf -out "$2" \
      grpcprotobuf@google.golang.org/grpc@v1.7{4.2,6.0,9.3} grpcprotobuf@google.golang.org/grpc@v1.8{2.1,4.0}
    ;;
  go-json) rpcbench run -workloads small,structured-18kB -out "$2" httpjson@go1.26.8 httpjson@go1.27.4 ;;
  go-grpc) rpcbench run -workloads small,structured-18kB -out "$2" grpcprotobuf@go1.26.8 grpcprotobuf@go1.27.4 ;;
  why)
    mkdir "$2"
    explain() { rpcbench explain -time "$1" -workload "$2" "${@:4}" >"$folder/$3.txt"; }
    folder=$2
    explain 60s small servehttp grpcservehttp grpcprotobuf
    explain 40s small http2 httpjson.h2c httpjson
    explain 40s small gzip connectrpc.gzip connectrpc
    explain 40s small one-caller -gomaxprocs 0 grpcprotobuf httpjson
    explain 30s bytes-10kB bytes httpjson grpcprotobuf
    explain 30s structured-18kB structured httpjson grpcprotobuf
    explain 40s small core grpcprotobuf httpjson
    ;;
  apart)
    mkdir "$2"
    rpcbench run -thorough -workloads small-apart -base grpcprotobuf -out "$2/run" grpcservehttp
    for stack in grpcprotobuf grpcservehttp; do
      rpcbench explain -time 12s -workload small-apart "$stack" >"$2/$stack.txt"
    done
    ;;
  inprocess) # ten processes for each call that stays in one process, in random order
    mkdir "$2"
    go test -c -o "$tests.direct" ./internal/suite/direct
    for _ in $(rounds 10); do
      for call in $(shuf -e bufconn connectinprocess responserecorder); do
        GOMAXPROCS=1 rows "$tests.direct" -test.run '^$' -test.bench "^BenchmarkInProcess\$/^call=$call\$" \
          -test.benchtime 2s
      done
    done >"$2/rows.txt"
    ;;
  calibration)
    begins go -C study test ./calibration -run '^TestCalibration$' -v -timeout 0 -calibrate "${2#study/}" \
      -only replication,same
    ;;
  *) fail "there is no part $1" ;;
  esac
}

# How busy the machine is beside us: of three seconds' CPU time, what was used, and what the host took.
busy() {
  head -n 1 /proc/stat
  sleep 3
  head -n 1 /proc/stat
}
beside() {
  busy | awk '{ for (i = 2; i <= 9; i++) all[NR] += $i; idle[NR] = $5 + $6; host[NR] = $9 }
    END { all[0] = all[2] - all[1]; host[0] = host[2] - host[1]; used = all[0] - host[0] - (idle[2] - idle[1])
      printf "used %.0f %%, host %.0f %%", 100 * used / all[0], 100 * host[0] / all[0] }'
}
# How far the base varied in the answers of a part: the median and the largest.
moved() {
  find "$1" -name summary.json -exec grep -ho '"base_varied": [0-9.e-]*' {} + | awk '{ print 100 * $2 }' | sort -n |
    awk '{ m[NR] = $1 } END { if (NR) printf ", base varied by %.0f %%, at most %.0f %%", m[int((NR + 1) / 2)], m[NR] }'
}
done_is() { grep -q "^$1 " "$out/state.txt" 2>/dev/null; }
check() { # begins each part, and names those that can't
  local failed='' out
  export TMPDIR=$scratch                     # of programs that are ended
  out=$(realpath --relative-to . "$scratch") # as a folder of results is named
  for part in "${parts[@]%:*}"; do
    printf 'measure: %s\n' "$part"
    [ "$part" != proxied ] || PATH=$PATH:/usr/sbin type nginx >/dev/null 2>&1 || {
      printf 'measure: proxied is left out: nginx is not installed\n'
      continue
    }
    set +e
    (set -e; measure "$part" "$out/$part") >"$scratch/printed" 2>&1
    [ $? = 0 ] || {
      failed+=" $part"
      grep -vE "^(Benchmark|#)" "$scratch/printed" | tail -n 8 | sed -E "s/^(measure: )?/measure: $part: /" >&2
    }
    set -e
  done
  [ -z "$failed" ] || fail "these parts can't be measured:$failed"
}
state() { git ls-files -s | grep -vE '\s(docs|study/(pages|results))/|\.md$' | git hash-object --stdin | cut -c 1-12; }

[ -n "$checks" ] || [ -z "$(git status --porcelain -- . ":!$out")" ] ||
  fail "commit or remove what git status shows: a figure is of a commit"
parts=("${hour[@]}" ${checks:+"${second[@]}" "${daily[@]}"})
if [ $# -gt 0 ]; then
  parts=()
  for name; do
    for known in "${hour[@]}" "${second[@]}" "${daily[@]}"; do [ "${known%:*}" = "$name" ] && parts+=("$known"); done
  done
  [ ${#parts[@]} -eq $# ] || fail "the parts are ${hour[*]%:*}, and ${second[*]%:*} ${daily[*]%:*}"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tests=$scratch/tests
go test -c -o "$tests" .
if [ -n "$checks" ]; then
  go build -o "$scratch/rpcbench" ./cmd/rpcbench
  check
  exit
fi
mkdir -p "$out"
exclude=$(git rev-parse --git-path info/exclude)
mkdir -p "$(dirname "$exclude")"
for i in "${!parts[@]}"; do
  part=${parts[i]%:*}
  done_is "$part" && continue
  was=$(awk 'NR == 1 { print $2 }' "$out/state.txt" 2>/dev/null || true)
  [ -z "$was" ] || [ "$was" = "$(state)" ] ||
    fail "$out is of state $was, and the files here are $(state): take another folder, or check that state out"
  left=0
  for later in "${parts[@]:i}"; do done_is "${later%:*}" || left=$((left + ${later#*:})); done
  printf 'measure: %s, about %d minutes; %d minutes left\n' "$part" "${parts[i]#*:}" "$left" >&2
  rm -rf "${out:?}/$part"
  grep -qsx "/$out/" "$exclude" || echo "/$out/" >>"$exclude" # for git results are then no changes of the program
  before=$(beside) start=$SECONDS began=$(date -u +%H:%M)
  measure "$part" "$out/$part"
  [ -n "$was" ] || printf 'state %s of all files but docs, and pages and results of study, at commit %s\n' "$(state)" \
    "$(git rev-parse --short HEAD)" >"$out/state.txt"
  printf '%-12s %s %s UTC, %d s; before: %s; after: %s%s\n' "$part" "$(date -u +%F)" "$began" $((SECONDS - start)) \
    "$before" "$(beside)" "$(moved "$out/$part")" | tee -a "$out/state.txt" >&2
  find "$out" -name report.html -delete # which rpcbench report makes again
  git add -f "$out"
  git commit -qm "Results: $part" -- "$out"
done
