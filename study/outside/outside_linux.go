// Command outside checks rpcbench's figures with code of its own: it imports only the library's generated messages and
// gRPC stub. It compares the CPU time of gRPC with protobuf to that of JSON over HTTP/1.1, without TLS, on Linux. -h
// names the flags. This command makes structured calls in a closed loop:
//
//	go -C study run ./outside -message structured -rate 0
//
// Each protocol has a server in a process of its own. Each pair of windows measures both in random order, with new
// clients: gRPC has one connection, JSON up to one for each caller. The CPU time of client and server is read when a
// window opens and closes, and divided by the calls that end in between. The client's CPU time includes its callers'
// timers. Latencies count from planned starts. No server validates. Each client's first reply is compared.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

const (
	serves   = "RPCBENCH_OUTSIDE" // the environment variable in which a server finds its protocol
	limit    = 10 * time.Minute   // of the whole program
	longLead = 300 * time.Millisecond
)

var (
	message   = flag.String("message", "small", "")
	rate      = flag.Float64("rate", 5000, "")
	callers   = flag.Int("callers", 100, "")
	pairs     = flag.Int("pairs", 36, "")
	processes = flag.Int("processes", 6, "")
	window    = flag.Duration("window", 400*time.Millisecond, "")
	seed      = flag.Uint64("seed", 1, "")

	protocols = []string{"JSON", "gRPC"}
	failed    sync.Mutex
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("outside: ")
	if protocol := os.Getenv(serves); slices.Contains(protocols, protocol) {
		serve(protocol)
		return
	}
	flag.CommandLine.Init("", flag.ContinueOnError)
	flag.CommandLine.SetOutput(io.Discard)
	err := flag.CommandLine.Parse(os.Args[1:])
	if err != nil || flag.NArg() > 0 || *message != "small" && *message != "structured" ||
		*rate != 0 && !(*rate >= 1 && *rate <= 1e6) || *callers < 1 || *callers > 10000 || *processes < 1 ||
		*pairs < max(2, *processes) || *window <= 0 || float64(*pairs)*(*window+longLead).Seconds() > 280 {
		log.Print("want -message small or structured, -rate 0 (closed loop) or 1 to 1e6 (calls/s), -callers 1 to 10000, ",
			"-processes from 1, -pairs from 2 and from processes, -window over 0s, pairs*(window+300ms) up to 280s, -seed")
		os.Exit(2)
	}
	time.AfterFunc(limit, func() { check(fmt.Errorf("%v are over", limit)) })
	run(os.Stdout)
}

// check ends the program if there is an error. The servers end with it.
func check(err error) {
	if err != nil {
		failed.Lock() // for good: one line is printed if several callers fail
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func decode[T any](data []byte, v T) T {
	check(json.Unmarshal(data, v))
	return v
}

type (
	user struct {
		ID       string `json:"id,omitempty"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	response struct {
		Code    int32  `json:"code"`
		Message string `json:"message"`
		User    *user  `json:"user"`
	}
	entry struct {
		Key   string `json:"key,omitempty"`
		Value int64  `json:"value,omitempty"`
	}
	flex struct {
		Double   float64  `json:"double,omitempty"`
		Float    float32  `json:"float,omitempty"`
		Int32    int32    `json:"int32,omitempty"`
		Int64    int64    `json:"int64,omitempty"`
		Uint32   uint32   `json:"uint32,omitempty"`
		Uint64   uint64   `json:"uint64,omitempty"`
		Sint32   int32    `json:"sint32,omitempty"`
		Sint64   int64    `json:"sint64,omitempty"`
		Fixed32  uint32   `json:"fixed32,omitempty"`
		Fixed64  uint64   `json:"fixed64,omitempty"`
		Sfixed32 int32    `json:"sfixed32,omitempty"`
		Sfixed64 int64    `json:"sfixed64,omitempty"`
		Bool     bool     `json:"bool,omitempty"`
		String   string   `json:"string,omitempty"`
		Bytes    []byte   `json:"bytes,omitempty"`
		Message  *entry   `json:"message,omitempty"`
		First    []*entry `json:"first,omitempty"`
		Second   []*entry `json:"second,omitempty"`
		Optional *entry   `json:"optional,omitempty"`
	}
)

// requests returns what callers send in turn, as plain structs and as generated ones: what the library sends, byte for
// byte. A small user has 66 bytes as JSON (its reply 116) and 36 as protobuf, a message flex.2kB 2018 and 1007.
func requests() (plain, generated []any) {
	for i := range 16 {
		var p, g any = &user{Email: fmt.Sprintf("anna.%02d@example.com", i), Name: fmt.Sprintf("Anna%02d", i),
			Password: fmt.Sprintf("pw-%02d", i)}, new(userv1.User)
		if *message == "structured" {
			f := &flex{3.141592653589793, 2.7182817, -42, 1 << 40, 7, 1 << 50, -7, -1 << 33, 1<<20 + uint32(i), 1 << 45,
				-99, -1 << 41, true, "hello, flex", []byte{0, 1, 2, 0xfe, 0xff}, &entry{"a", 1}, []*entry{{"b", 2}},
				[]*entry{{"c", 3}}, &entry{"d", 4}}
			for k := range 44 {
				f.First = append(f.First, &entry{fmt.Sprintf("field-%05d", k), int64(k) * 7919})
			}
			p, g = f, new(messagepb.Flex)
		}
		plain = append(plain, p)
		generated = append(generated, decode(must(json.Marshal(p)), g)) // g's fields have the same keys
	}
	return plain, generated
}

type service struct {
	userservicegrpc.UnimplementedUserServiceServer
}

func (service) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	u.Id = "1000000"
	return &userv1.CreateUserResponse{Code: 200, Message: "OK", User: u}, nil
}

func (service) Echo(_ context.Context, f *messagepb.Flex) (*messagepb.Flex, error) { return f, nil }

func create(u *user) any {
	u.ID = "1000000"
	return &response{200, "OK", u}
}

func handle[Q any](answer func(*Q) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := decode(must(io.ReadAll(r.Body)), new(Q))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(must(json.Marshal(answer(request)))) // fails if the client is gone
	}
}

// serve serves until standard input ends, as it does with the parent.
func serve(protocol string) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr())
	if protocol == "gRPC" {
		server := grpc.NewServer(grpc.ConnectionTimeout(10*time.Second),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: limit}))
		userservicegrpc.RegisterUserServiceServer(server, service{})
		go server.Serve(listener)
	} else {
		mux := http.NewServeMux()
		mux.Handle("POST /small", handle(create))
		mux.Handle("POST /structured", handle(func(f *flex) any { return f }))
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: limit}
		go server.Serve(listener)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// start starts a server in a process of its own.
func start(protocol string) (addr string, pid int, end func()) {
	server := exec.Command("/proc/self/exe")
	server.Env, server.Stderr = append(os.Environ(), serves+"="+protocol), os.Stderr
	in, out := must(server.StdinPipe()), must(server.StdoutPipe())
	check(server.Start())
	must(fmt.Fscan(out, &addr))
	return addr, server.Process.Pid, func() { check(in.Close()); check(server.Wait()) }
}

// dial makes a client, whose call sends request i and returns the reply.
func dial(protocol, addr string) (call func(i int) any, end func()) {
	plain, generated := requests()
	if protocol == "gRPC" {
		conn := must(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))
		stub := userservicegrpc.NewUserServiceClient(conn)
		return func(i int) any {
			if u, ok := generated[i%len(generated)].(*userv1.User); ok {
				return must(stub.CreateUser(context.Background(), u))
			}
			return must(stub.Echo(context.Background(), generated[i%len(generated)].(*messagepb.Flex)))
		}, func() { check(conn.Close()) }
	}
	transport := &http.Transport{MaxIdleConnsPerHost: *callers, DisableCompression: true}
	client := &http.Client{Transport: transport}
	return func(i int) any {
		body := bytes.NewReader(must(json.Marshal(plain[i%len(plain)])))
		reply := must(client.Post("http://"+addr+"/"+*message, "application/json", body))
		defer reply.Body.Close()
		data := must(io.ReadAll(reply.Body))
		if reply.StatusCode != http.StatusOK {
			check(fmt.Errorf("JSON: %s: %q", reply.Status, data))
		}
		if *message == "small" {
			return decode(data, new(response))
		}
		return decode(data, new(flex))
	}, transport.CloseIdleConnections
}

// clocks returns the CPU time of this process and of the server's, in µs.
func clocks(pid int) (client, server float64) {
	var own unix.Rusage
	var other unix.Timespec
	check(unix.Getrusage(unix.RUSAGE_SELF, &own))
	check(unix.ClockGettime(int32(^pid<<3|2), &other)) // as clock_getcpuclockid(3) does
	return float64(own.Utime.Nano()+own.Stime.Nano()) / 1000, float64(other.Nano()) / 1000
}

// figures are of the calls that end in a window: CPU times per call and the median latency, in µs.
type figures struct{ calls, client, server, p50 float64 }

// measure makes calls with a new client during a lead-in and a window.
func measure(protocol, addr string, pid int, plan uint64, lead time.Duration) figures {
	call, end := dial(protocol, addr)
	defer end()
	want, _ := requests()
	if u, ok := want[0].(*user); ok {
		want[0] = create(u)
	}
	if got := must(json.Marshal(call(0))); !bytes.Equal(got, must(json.Marshal(want[0]))) {
		check(fmt.Errorf("%s: the reply is not of what was sent: %s", protocol, got))
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var open atomic.Bool
	var calls atomic.Int64
	latencies, gap := make([][]float64, *callers), float64(*callers)*float64(time.Second) / *rate
	for c := range latencies {
		running.Go(func() {
			random, due := rand.New(rand.NewPCG(plan, uint64(c))), time.Now()
			for i := c; ctx.Err() == nil; i++ {
				if *rate == 0 {
					due = time.Now()
				} else if due = due.Add(time.Duration(gap * random.ExpFloat64())); due.After(time.Now()) {
					select {
					case <-time.After(time.Until(due)):
					case <-ctx.Done():
						return
					}
				}
				call(i)
				if open.Load() {
					calls.Add(1)
					latencies[c] = append(latencies[c], float64(time.Since(due))/1000)
				}
			}
		})
	}
	<-time.After(lead)
	client, server := clocks(pid)
	open.Store(true)
	for calls.Load() == 0 { // a window without a call goes on
		<-time.After(*window)
	}
	open.Store(false)
	clientEnd, serverEnd := clocks(pid)
	n := float64(calls.Load())
	stop()
	running.Wait()
	return figures{n, (clientEnd - client) / n, (serverEnd - server) / n, median(slices.Concat(latencies...))}
}

func median(values []float64) float64 { return stats.Sample{Xs: values}.Quantile(0.5) }

// run prints a line for each pair and one for all. It returns the pairs, and the ratio of all.
func run(out io.Writer) (all [][2]figures, ratio float64) {
	random := rand.New(rand.NewPCG(*seed, 0))
	var logs []float64
	var cpu [2][]float64
	load, lead := "saturated", 100*time.Millisecond
	if *rate > 0 {
		load, lead = fmt.Sprintf("%g/s", *rate), longLead
	}
	for process := range *processes {
		addrs, pids, ends := [2]string{}, [2]int{}, [2]func(){}
		for i, protocol := range protocols {
			addrs[i], pids[i], ends[i] = start(protocol)
		}
		for len(all) < (process+1)**pairs / *processes {
			pair, plan := [2]figures{}, random.Uint64()
			for _, i := range random.Perm(2) {
				f := measure(protocols[i], addrs[i], pids[i], plan, lead)
				pair[i], cpu[i] = f, append(cpu[i], f.client+f.server)
			}
			j, g := pair[0], pair[1]
			all, logs = append(all, pair), append(logs, math.Log((g.client+g.server)/(j.client+j.server)))
			fmt.Fprintf(out, "pair %d: JSON client %.1f server %.1f p50%.0f; gRPC client %.1f server %.1f p50%.0f µs\n",
				len(all), j.client, j.server, j.p50, g.client, g.server, g.p50)
		}
		ends[0]()
		ends[1]()
	}
	mean, low, high := stats.MeanCI(logs, 0.95)
	fmt.Fprintf(out, "%s, %s: CPU gRPC/JSON %.3f (95%%: %.3f to %.3f), medians JSON %.1f, gRPC %.1f µs a call, %s\n",
		*message, load, math.Exp(mean), math.Exp(low), math.Exp(high), median(cpu[0]), median(cpu[1]), runtime.Version())
	return all, math.Exp(mean)
}
