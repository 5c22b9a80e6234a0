package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

var long = flag.Bool("long", false, "measure also what takes a minute: programs of another module, from run to report")

// asMain in the environment makes the test's program the command. The test holds its standard input open.
const asMain = "RPCBENCH_TEST_MAIN"

// TestMain is also the process that the commands start.
func TestMain(m *testing.M) {
	program := stacks.All
	if os.Getenv(odd.Variable) != "" {
		program = knownStacks
	}
	if odd.Answer(knownAnswer) {
		return
	}
	if os.Getenv(child.Variable) != "" {
		Main(nil, program())
		return
	}
	if os.Getenv(asMain) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test that started this process
			os.Exit(3)
		}()
		Main(nil, program())
		return
	}
	os.Exit(m.Run())
}

// ours is cmd/rpcbench, but for modules, which TestModule makes.
func ours() program {
	none := func(context.Context, Messages, string, string) (Module, error) {
		return Module{}, errors.New("no module")
	}
	return program{stacks: stacks.All(), make: none, main: "github.com/rpcbench/rpcbench/cmd/rpcbench"}
}

// typed runs the command as main does, without a terminal.
func typed(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = ours().run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), err
}

func TestBadInputIsOneLine(t *testing.T) {
	unknown := `unknown workload "tiny": there are small-load, structured-load-tls, small-saturated, `
	const sizes = "-request-size 100B -reply-size 2kB"
	for _, test := range []struct {
		why, args, want string
	}{
		{"no such command", "verses", `no command "verses": rpcbench -h lists them`},
		{"no such flag",
			"run --bass httpjson", "run: flag provided but not defined: -bass: rpcbench run -h shows its flags"},
		{"a flag after a stack", "run httpxml -time 10s", "run: -time comes after httpxml: flags come first"},
		{"no such base", "run --base httpjsno@HEAD -out x httpxml", `unknown stack "httpjsno"`},
		{"fewer than two stacks", "run -out x httpjson", "run: nothing to compare with httpjson: name another stack"},
		{"a stack named twice", "run -out x httpxml httpxml", "run: httpxml is named twice: once is enough"},
		{"too few processes", "run -out x --processes 5 httpxml",
			"run: 5 processes are too few for a verdict: -processes 6 or more"},
		{"no build after the sign", "run -out x httpxml@ httpjson", "run: httpxml@ names no build"},
		{"one build alone", "run -out x httpjson@HEAD", "run: nothing to compare with httpjson@HEAD: name another stack"},
		{"no time", "run -out x --time 1s httpxml",
			"run: 1s over 8 processes leave less than 5 turns of 45ms in each: give -time 1.8s or more"},
		{"a release of Go without its last number", "run -out x httpxml@go1.26 httpjson",
			"run: go1.26 is no release of Go: name one in full, go1.26.0 say"},
		{"what children are told as a build", "run -out x httpxml@RPCBENCH_CHILD=1 httpjson",
			"run: RPCBENCH_CHILD=1: variables that begin with RPCBENCH_ are for rpcbench itself"},
		{"no folder for a run", "run", "run: -out names the folder for what is measured"},
		{"no such workload", "run -out x -workloads tiny", unknown},
		{"a report of nothing", "report", "report: name one folder of rpcbench run"},
		{"a report of two", "report x y", "report: name one folder"},
		{"an explanation of nothing", "explain", "explain: name a stack of rpcbench list, a CPU profile or its URL"},
		{"neither stack nor profile", "explain httpjsno", `explain: "httpjsno" is neither a profile nor a stack`},
		{"no such workload to explain", "explain -workload tiny httpjson", unknown},
		{"too short to explain", "explain -time 1s httpjson", "explain: -time 1s is too short: give 4s or more"},
		{"more than the cores to explain", "explain -gomaxprocs 4096 httpjson",
			"explain: -gomaxprocs 4096 is not from 0 to "},
		{"a caller on a stream to explain", "explain -workload stream -callers 2 rawtcp",
			"explain: a workload's Stream has one caller of valid users: it goes with TLS, Link and Payload alone"},
		{"fewer callers than none to explain", "explain -callers -3 rawtcp",
			"explain: a workload's Callers lies between 0 and 1000: -3 does not"},
		{"a profile to keep that is there", "explain -keep x " + aProfile,
			"explain: -callers, -conns and -keep are for stacks, and " + aProfile + " is none"},
		{"connections of a profile", "explain -conns 3 " + aProfile, "explain: -callers, -conns and -keep are for"},
		{"two profiles in a file", "explain -keep x rawtcp rawtcp",
			"explain: -keep has one profile of a stack: name each stack once"},
		{"a folder to keep profiles in that is there", "explain -keep .. rawtcp",
			"explain: -keep needs the name of a new folder: mkdir ..: "},
		{"a service beside a stack", "explain rawtcp " + aService,
			"explain: " + aService + " is a service's, whose calls nobody counted: give it alone"},
		{"a folder to explain", "explain ..", "explain: .. is no file: give a file or a URL"},
		{"ratios of stacks", "explain -ratios x rawtcp",
			"explain: -ratios is for the profile of a service, and rawtcp is a stack"},
		{"a time of a first answer", "run -out x -quick -time 9s",
			"run: -quick says how long: leave -time and -processes out"},
		{"a workload named twice", "run -out x -workloads small,small", "run: small is named twice: once is enough"},
		{"a gate that lets nothing pass", "run -out x -max 1 httpxml",
			"run: -max 1 is no gate: give more than 1, such as 1.05"},
		{"a gate that is no number", "run -out x -max NaN httpxml", "run: -max NaN is no gate"},
		{"a gate by a variable that is not set", "run -out x -max= httpxml", `run: invalid value "" for flag -max`},
		{"counts that let nothing pass", "run -max-counts 0.98 httpxml", "run: -max-counts 0.98 is no gate"},
		{"counts that do not repeat", "run -max-counts 1.02 -workloads small-load,cold-4g httpxml",
			"run: -max-counts compares counts of one caller without a link: name such a workload, small say"},
		{"a folder for counts", "run -max-counts 1.02 -out x httpxml",
			"run: -max-counts alone measures no time: leave -out, -time and -processes out, or give -max"},
		{"counts elsewhere", "run -max-counts 1.02 -server httpjson=h:1,rawtcp=h:2 -workloads small rawtcp",
			"run: -max-counts: calls of servers elsewhere are not counted: leave -server out"},
		{"a proof of nothing", "run -out x -prove httpxml", "run: -prove is of -max and of one stack: give both"},
		{"a proof of two", "run -out x -prove -max 1.05 httpxml rawtcp", "run: -prove is of -max and of one stack"},
		{"a proof of counts", "run -out x -prove -max 1.05 -max-counts 2 rawtcp", "run: -prove is of -max and of one stack"},
		{"no margin", "run -out x -equal 0 httpxml", "run: -equal 0 is no margin: give percent, such as 2"},
		{"a folder that is there", "run -out ../ -workloads small",
			"run: -out ..: it is there already: name another"},
		{"a payload without a unit", "run -out x -payload 100", `run: -payload: "100" is no size: write 100B, 1kB or 1MB`},
		{"fewer callers than none", "run -out x -callers -3",
			"run: -callers lies between 0 and 1000: -3 does not"},
		{"a size where a file belongs", "run -out x -request 100B -reply 2kB",
			"run: -request 100B: no such file; a size is -request-size 100B"},
		{"a size of one side, and a file of the other", "run -out x -request-size 100B -reply main.go",
			"run: -request-size and -reply-size make both messages: give both, and no file beside them"},
		{"sizes of a .proto", "init -out x -proto x.proto " + sizes, "init: -request-size and -reply-size make both"},
		{"one size", "run -out x -request-size 100B", "run: -request-size and -reply-size make both messages: give both"},
		{"a size without a unit", "run -out x -request-size 100", `run: -request-size: "100" is no size: write 100B, 1kB or`},
		{"two descriptions", "run -out x -proto x -protoset x", "run: -proto and -protoset both describe the call: leave"},
		{"a method of no .proto", "run -out x -call a/B -reply main.go", "run: -call and -I are of a .proto: -proto"},
		{"imports of no .proto", "run -out x -I lib -reply main.go", "run: -call and -I are of a .proto: -proto names its"},
		{"no reply", "run -out x -proto x -call a/B -request main.go", "run: -reply names the samples of replies; without"},
		{"no method", "init -out x -proto x -reply main.go", "init: -call names the method, such as shop.v1.Orders/Get"},
		{"a .proto without a name", "run -proto", "run: flag needs an argument: -proto: rpcbench run -h shows its flags"},
		{"a payload of one's own", "run -out x -payload 1kB " + sizes, "run: -payload and -message are for create-user"},
		{"a stream of one's own", "run -out x -stream " + sizes + " httpprotobuf",
			"run: -stream: none of httpjson, httpprotobuf has streams: leave it out"},
		{"stacks without streams", "run -out x -stream -base httpprotobuf httpxml",
			"run: -stream: none of httpprotobuf, httpxml has streams: leave it out"},
		{"a folder that is there for one's own", "run -out .. " + sizes, "run: -out ..: it is there already: name another"},
		{"a workload of users for one's own", "run -out x -workloads small " + sizes, `unknown workload "small": there are call-`},
		{"a stack without types of one's own", "run -out x " + sizes + " httpxml",
			`unknown stack "httpxml": there are httpjson, httpjsoniter, httpprotobuf, grpcprotobuf, connectrpc`},
		{"no folder for a module", "init " + sizes, "init: -out names the folder for the module"},
		{"a folder for a module that is there", "init -out ../ " + sizes, "init: -out ../: it is there already: name"},
		{"a folder below none", "init -out none/x " + sizes, "init: -out none/x: make the folder none first"},
		{"a number that is none", "run -out x -conns many", `run: -conns: "many" is no number of connections`},
		{"a link that does not exist", "run -out x -link 5g", `run: "5g" is no link`},
		{"two ways to say a workload", "run -out x -workloads small -tls",
			"run: -workloads names workloads, and the flags make one, tls: leave one"},
		{"no server of the contestant", "run -out x -server httpjson=h:1 httpxml",
			"run: -server names no server of httpxml; a build has none"},
		{"no server of the base", "run -out x -server httpxml=h:1 httpxml", "-server names no server of httpjson;"},
		{"a server named twice", "run -out x -server httpjson=h:1,httpjson=h:2 httpxml",
			"run: -server: httpjson is named twice: once is enough"},
		{"a server of an unknown stack", "run -out x -server httpjsno=h:1 httpxml", `unknown stack "httpjsno"`},
		{"a server without a port", "run -out x -server httpjson=h httpxml",
			`run: -server: "httpjson=h" is no stack=host:port, as rpcbench serve prints it`},
		{"servers by a variable that is not set", "run -out x -server= httpxml", `run: -server: "" is no stack=host:port`},
		{"a build elsewhere", "run -out x -server httpjson=h:1 httpjson@HEAD httpjson",
			"run: -server names no server of httpjson@HEAD; a build has none"},
		{"a rate that is too low", "run -out x -rate 100 httpxml",
			"run: 100 calls a second are too few for a window of a thousand: give 500 or more"},
		{"no rate", "run -out x -rate many httpxml", `run: -rate: "many" is no rate: give calls a second, or auto`},
		{"no rate alone", "run -out x -rate saturated httpxml", `run: -rate: "saturated" is no rate: give calls a second`},
		{"two lists", "run -out x -rate 1000,2000 -callers 1,2 httpxml", "run: -callers and -rate are lists: one flag may"},
		{"a value of a list that can't be", "run -out x -callers 1,x httpxml", `run: -callers: "x" is no number of callers`},
		{"a value twice", "run -out x -conns 1,2,1 httpxml", "run: -conns: 1 is there twice: once is enough"},
		{"a value that stands for another", "run -out x -gomaxprocs 0,1 httpxml", `run: -gomaxprocs: "0" is no number of GOMAXPROCS`},
		{"an empty value", "run -out x -gomaxprocs 1, httpxml", `run: -gomaxprocs: "" is no number of GOMAXPROCS`},
		{"a rate elsewhere", "run -out x -server httpjson=h:1,rawtcp=h:2 -rate 1000 rawtcp",
			"run: rate.1000: -server is for"},
		{"another process elsewhere", "run -out x -server httpjson=h:1,rawtcp=h:2 -apart rawtcp",
			"run: apart: -server is for"},
		{"a Unix socket elsewhere", "run -out x -server httpjson=h:1,rawtcp=h:2 -unix rawtcp", "run: unix: -server is for"},
		{"a workload at a rate, and one over TLS, elsewhere",
			"run -out x -server httpjson=h:1,rawtcp=h:2 -workloads small,cold-tls,small-1000-per-second rawtcp",
			"run: cold-tls, small-1000-per-second: -server is for workloads without TLS"},
		{"an unknown stack to serve", "serve httpjsno", `unknown stack "httpjsno": rpcbench list names them`},
		{"a stack served twice, which -server refuses", "serve httpjson rawtcp httpjson",
			"serve: httpjson is named twice: once is enough"},
		{"more stacks than ports", "serve -port 65535 httpjson rawtcp",
			"serve: -port 65535 is too high: stacks to serve: 2, last port: 65535"},
		{"a port that wraps around", "serve -port 18446744073709551615 rawtcp", "-port 18446744073709551615 is too high"},
		{"all interfaces by a variable that is not set", "serve -addr= rawtcp",
			`serve: -addr "" names no host: leave -addr out for loopback, or name 0.0.0.0`},
		{"an address with a port", "serve -addr 127.0.0.1:http rawtcp",
			"serve: -addr 127.0.0.1:http: name a host without port and brackets, as 127.0.0.1 or ::1"},
		{"brackets", "serve -addr [::1] rawtcp", "serve: -addr [::1]: name a host without port and brackets"},
	} {
		t.Run(test.why, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // or one that serves would never end
			defer cancel()
			var out bytes.Buffer
			err := ours().run(ctx, strings.Fields(test.args), &out, &out)
			require.ErrorContains(t, err, test.want)
			require.Regexp(t, "^rpcbench: .*$", err.Error())
			require.NotContains(t, err.Error(), "\n")
			require.ErrorAs(t, err, new(wrongUse), "exit status 2 is for the command line")
			require.Empty(t, out.String(), "main prints the error")
		})
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	progress(file)("x", time.Second, 2*time.Second)
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

// saved is the folder of a run that has measured.
func saved(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := report.Summary{Release: report.Release, Base: "httpjson", Answers: []report.Answer{
		{Workload: "small", Stack: "rawtcp", Result: versus.Result{Processes: 1, Planned: 8}}}}
	require.NoError(t, s.Save(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), nil, 0o600))
	return dir
}

// process is the command in a process of its own, which is killed after a while: one that waits would never end.
func process(t *testing.T, stdout *os.File, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd, stderr = odd.Again(t, asMain+"=1", args...), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stderr
}

// TestOutputIsHeard: what nobody could read has failed. Above all, addresses that nobody was told are not served.
func TestOutputIsHeard(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range []string{"", "-h", "run -h", "serve rawtcp", "list", "version", "report -out NEW RUN"} {
		t.Run(args, func(t *testing.T) {
			cmd, stderr := process(t, full, strings.Fields(strings.NewReplacer("NEW", t.TempDir(), "RUN",
				saved(t)).Replace(args))...)
			require.Error(t, cmd.Run())
			require.Equal(t, 1, cmd.ProcessState.ExitCode())
			require.Regexp(t, `^rpcbench: .*no space left on device\n$`, stderr.String())
		})
	}
}

func TestOneLine(t *testing.T) {
	require.Equal(t, "rpcbench: write /dev/stdout: no space", oneLine(errors.New("write /dev/stdout: no space")))
	several := errors.Join(errors.New("rpcbench: run: a\n\tb\n"), errors.New("rpcbench: c"))
	require.Equal(t, "rpcbench: run: a; b; c", oneLine(several))
}

// list names whatever can be typed, and version what a bug report needs.
func TestListAndVersion(t *testing.T) {
	stdout, _, err := typed(t, "list")
	require.NoError(t, err)
	for _, s := range stacks.All() {
		require.Regexp(t, "(?m)^"+regexp.QuoteMeta(s.Name)+" +(none|[12]\\S*) ", stdout)
	}
	for _, w := range workload.All() {
		require.Regexp(t, "(?m)^"+w.Name+" +"+regexp.QuoteMeta(w.Title), stdout)
	}
	stdout, _, err = typed(t, "version")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^go=go1\.\d+`, stdout)
	require.Regexp(t, `(?m)^google.golang.org/grpc@v1\.\d+`, stdout)
}

// A program may have workloads and a method of its own, but no two of a name.
func TestOwnWorkloads(t *testing.T) {
	own := func(names ...string) (all []rpcbench.Workload) {
		for _, name := range names {
			all = append(all, rpcbench.Workload{Name: name, Title: "hers", Callers: 30, TLS: true, Payload: 2000})
		}
		return all
	}
	method := httpjson.New()
	method.Method = "shop.v1.Orders/Get"
	listed := func(p program) []string { return namesOf(p.workloads()) }
	create, serves := []rpcbench.Stack{httpjson.New(), rawtcp.New()}, []rpcbench.Stack{method}
	all := listed(program{stacks: create})
	require.Len(t, all, len(workload.All()))
	require.Equal(t, append(all, "busy"), listed(program{stacks: create, own: own("busy")}), "hers come after the others")
	require.Equal(t, []string{"call-load", "call-saturated", "call", "call-load-tls", "call-saturated-tls", "call-tls",
		"call-cold-tls", "call-apart"},
		listed(program{stacks: serves}))
	require.Equal(t, []string{"busy"}, listed(program{stacks: serves, own: own("busy")}), "hers replace those of a method")

	p := program{stacks: create, own: own("busy")}
	require.NoError(t, p.check(nil))
	c := comparison{program: p, out: filepath.Join(t.TempDir(), "out"), processes: 8, time: 8 * time.Second}
	require.NoError(t, c.take([]string{"rawtcp"}, "small,busy", false, map[string]bool{"workloads": true}))
	require.Equal(t, 30, c.workloads[1].Callers)
	var out bytes.Buffer
	require.NoError(t, p.run(t.Context(), []string{"list"}, &out, io.Discard))
	require.Regexp(t, `(?m)^busy +hers$`, out.String())

	for want, p := range map[string]program{
		`this program has two stacks named rawtcp: give each a name of its own`: {stacks: append(create, rawtcp.New())},
		`this program has no stacks: its main function gives them to cli.Main`:  {},
		`two workloads named small`:              {stacks: create, own: own("small")},
		`two workloads named busy`:               {stacks: create, own: own("busy", "busy")},
		`workload "a b" needs a Name of letters`: {stacks: create, own: own("a b")},
		`workload "x": a workload's Callers lies`: {stacks: create, own: []rpcbench.Workload{{Name: "x", Title: "x",
			Callers: -1}}},
		`workload "x": 10 calls a second are too`:   {stacks: create, own: []rpcbench.Workload{{Name: "x", Title: "x", Rate: 10}}},
		`this program's workload "y" needs a Name `: {stacks: create, own: []rpcbench.Workload{{Name: "y"}}},
	} {
		require.ErrorContains(t, p.check(nil), want)
	}
	t.Setenv(child.Variable, "measure")
	require.NoError(t, p.check(nil), "a child")
	require.EqualError(t, p.check([]string{"list"}),
		"rpcbench: RPCBENCH_CHILD is set, which is for processes that rpcbench starts: unset it")
	c = comparison{program: program{stacks: []rpcbench.Stack{rawtcp.New(), method}}}
	require.ErrorContains(t, c.names([]string{"rawtcp"}),
		"httpjson serves shop.v1.Orders/Get, and rawtcp create-user: stacks of one method are compared")
}

// The manual is the package comment: its examples run, up to the point where they would measure, and it names every
// flag.
func TestManual(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../cmd/rpcbench/main.go", nil, parser.ParseComments)
	require.NoError(t, err)
	manual := (*ast.File)(file).Doc.Text()
	_, examples, ok := strings.Cut(manual, "Examples:")
	require.True(t, ok)
	n := 0
	for line := range strings.Lines(examples) {
		if args := strings.Fields(line); len(args) > 0 {
			n++
			_, _, err := typed(t, slices.Insert(args[1:], 1, "-time", "1s")...)
			require.ErrorContains(t, err, "1s over 8 processes leave less than", "the last of the checks: %s", line)
		}
	}
	require.Equal(t, 3, n)
	require.NotRegexp(t, `(?m)^\[`, manual, "a synopsis is code to the end of its last line")
	for _, command := range []string{"run", "init", "report", "explain", "serve", "list", "version"} {
		names := flag.NewFlagSet(command, flag.ContinueOnError)
		help, _, err := typed(t, command, "-h")
		require.NoError(t, err)
		require.Contains(t, help, "example: rpcbench "+command)
		if command == "run" {
			runCommand(ours(), nil, nil).setup(names)
		}
		names.VisitAll(func(f *flag.Flag) {
			require.Regexp(t, "(?m)^  -"+f.Name+"( |\t|$)", help, "each flag is in a group")
		})
		for _, flag := range regexp.MustCompile(`(?m)^  -[a-z]+`).FindAllString(help, -1) {
			require.Contains(t, manual, strings.TrimSpace(flag))
		}
	}
}
