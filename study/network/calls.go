package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	random "math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

const (
	callers = 100
	rate    = 500 // calls a second
	host    = "network.test"
)

// asked is what a child measures.
type asked struct {
	Protocol string
	Link     string
	Least    string // tcp_rto_min_us; "" is the machine's
	Seed     uint64
	Window   time.Duration
}

// found is what it has found, for each call but the percentiles.
type found struct {
	Calls               int64
	P50, P95, P99, P999 time.Duration
	CPU                 time.Duration // of client and server
	Allocs              float64
	TCP                 tcp.Counters // of the whole window
	Router              tcp.Router
}

// compare has children measure in rounds, in random order within each, and prints a row for each.
func compare(ctx context.Context, out io.Writer, rounds int, window time.Duration, all []asked) error {
	order := random.New(random.NewPCG(1, 0))
	for round := range rounds {
		for _, i := range order.Perm(len(all)) {
			one := all[i]
			one.Seed, one.Window = uint64(round), window
			f, err := measure(ctx, one)
			if err != nil {
				return fmt.Errorf("%s: %w", one.Protocol, err)
			}
			f.print(out, one)
		}
	}
	return nil
}

// print prints a row of a benchmark.
func (f found) print(out io.Writer, one asked) {
	link, _, _ := strings.Cut(one.Link, "/")
	name := fmt.Sprintf("BenchmarkNetwork/protocol=%s/link=%s", one.Protocol, link)
	if one.Least != "" {
		name += fmt.Sprintf("/least=%sus", one.Least)
	}
	n := float64(f.Calls)
	fmt.Fprintf(out, "%s\t%d\t%d p50-ns\t%d p95-ns\t%d p99-ns", name, f.Calls, f.P50, f.P95, f.P99)
	if f.P999 > 0 {
		fmt.Fprintf(out, "\t%d p999-ns", f.P999)
	}
	fmt.Fprintf(out, "\t%d cpu-ns/op\t%.1f allocs/op\t%.4f resent/op\t%.4f probes/op\t%.4f timeouts/op\t%d late-ns\n",
		f.CPU, f.Allocs, float64(f.TCP.Again)/n, float64(f.TCP.Probes)/n, float64(f.TCP.Timeouts)/n, f.Router.Late)
}

func measure(ctx context.Context, one asked) (f found, err error) {
	p, err := child.Command{Does: calls, Alone: true, Asked: one, Limit: one.Window + time.Minute}.Start(ctx)
	if err != nil {
		return f, err
	}
	err = p.Ask("", &f)
	return f, errors.Join(err, p.End())
}

// connected is a client, and what ends it and its server.
type connected struct {
	network *network.Network
	secure  *tls.Config // of the server
	trusts  *tls.Config // of clients
	ends    []func() error
}

func (c *connected) Close() (err error) {
	for i := range c.ends {
		err = errors.Join(err, c.ends[len(c.ends)-1-i]())
	}
	return err
}

// over makes the network of a child.
func over(ctx context.Context, one asked) (*connected, error) {
	link, err := tap.FindLink(one.Link)
	if err != nil {
		return nil, err
	}
	settings := tcp.Settings{}
	if one.Least != "" {
		settings["tcp_rto_min_us"] = one.Least
	}
	c := &connected{}
	if c.secure, c.trusts, err = certified(); err != nil {
		return nil, err
	}
	if c.network, err = network.Make(ctx, network.Spec{Link: link, Seed: one.Seed, Settings: settings}); err != nil {
		return nil, err
	}
	c.ends = append(c.ends, c.network.Close)
	return c, nil
}

// listen listens for connections on the servers' side.
func (c *connected) listen() (l net.Listener, err error) {
	err = c.network.There(func() (err error) {
		l, err = net.Listen("tcp", network.Server+":0")
		return err
	})
	return l, err
}

// certified are a server and clients who trust it.
func certified() (server, client *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	if leaf, err = x509.ParseCertificate(der); err != nil {
		return nil, nil, err
	}
	roots.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots, ServerName: host}, nil
}

type user struct {
	ID       string `json:"id,omitempty"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Password string `json:"password"`
}

// handler answers a user with it.
var handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var u user
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&u); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	u.ID = "1000000"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(u) // fails if the client is gone
})

// post makes a call, and fails unless the reply is right.
func post(ctx context.Context, client *http.Client, address string) error {
	body, err := json.Marshal(user{Email: "anna.10@example.com", Name: "Anna10", Password: "pw-10"})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	reply, err := client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	var u user
	data, err := io.ReadAll(reply.Body)
	if err == nil {
		err = json.Unmarshal(data, &u)
	}
	if err == nil && u.ID != "1000000" {
		err = fmt.Errorf("another reply: %s %q", reply.Status, data)
	}
	return err
}

// web serves HTTP in a version, and returns a client and the address of calls.
func (c *connected) web(version string) (*http.Client, string, error) {
	if version == "http3" {
		return c.quic()
	}
	l, err := c.listen()
	if err != nil {
		return nil, "", err
	}
	var of http.Protocols
	of.SetHTTP1(version == "http1")
	of.SetHTTP2(version == "http2")
	s := &http.Server{Handler: handler, Protocols: &of, TLSConfig: c.secure.Clone(), ReadHeaderTimeout: time.Minute,
		IdleTimeout: time.Hour}
	go s.ServeTLS(l, "", "")
	t := &http.Transport{Protocols: &of, TLSClientConfig: c.trusts.Clone(), MaxIdleConnsPerHost: callers,
		DisableCompression: true,
		DialContext: func(ctx context.Context, proto, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, proto, l.Addr().String())
		}}
	c.ends = append(c.ends, s.Close, func() error { t.CloseIdleConnections(); return nil })
	return &http.Client{Transport: t}, "https://" + host + "/users", nil
}

// quic serves HTTP/3.
func (c *connected) quic() (*http.Client, string, error) {
	var there net.PacketConn
	err := c.network.There(func() (err error) {
		there, err = net.ListenPacket("udp", network.Server+":0")
		return err
	})
	if err != nil {
		return nil, "", err
	}
	here, err := net.ListenPacket("udp", network.Client+":0")
	if err != nil {
		return nil, "", errors.Join(err, there.Close())
	}
	s := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(c.secure.Clone()),
		QUICConfig: &quic.Config{MaxIncomingStreams: 10 * callers}}
	go s.Serve(there)
	own := &quic.Transport{Conn: here}
	t := &http3.Transport{TLSClientConfig: c.trusts.Clone(), DisableCompression: true,
		Dial: func(ctx context.Context, _ string, secure *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return own.DialEarly(ctx, there.LocalAddr(), secure, config)
		}}
	c.ends = append(c.ends, here.Close, there.Close, own.Close, s.Close, t.Close)
	return &http.Client{Transport: t}, "https://" + host + "/users", nil
}

// call is the job of a child: planned calls over a network.
func call(ctx context.Context, _ child.Stacks, one asked, lines <-chan []byte, reply func(any) error) (err error) {
	c, err := over(ctx, one)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	client, address, err := c.web(one.Protocol)
	if err != nil {
		return err
	}
	rounds := make([][]func(context.Context) error, callers)
	for i := range rounds {
		rounds[i] = []func(context.Context) error{func(ctx context.Context) error { return post(ctx, client, address) }}
	}
	const lead = time.Second
	figures := loop.NewFigures(true)
	l := loop.New(loop.Spec{Rounds: rounds, Figures: figures, Patient: true,
		Plan: loop.Plan(callers, rate, int(2*rate*(lead+one.Window).Seconds()), one.Seed, false)})
	if err := l.Start(2); err != nil {
		return err
	}
	var f found
	var before, after runtime.MemStats
	var counting error
	_, err = l.During(ctx, lead, one.Window, func(open bool) {
		used, _ := cpu.Time()
		counted, err := c.network.Counters()
		counting = errors.Join(counting, err)
		if open {
			runtime.ReadMemStats(&before)
			f.CPU = -used
			f.TCP.Sub(counted)
			return
		}
		f.CPU += used
		f.TCP.Add(counted)
		runtime.ReadMemStats(&after)
	})
	if err = errors.Join(err, counting); err != nil {
		return err
	}
	f.Calls = figures.Latency.Count()
	f.CPU /= time.Duration(f.Calls)
	f.Allocs = float64(after.Mallocs-before.Mallocs) / float64(f.Calls)
	f.P50, _ = figures.Latency.Quantile(0.5)
	f.P95, _ = figures.Latency.Quantile(0.95)
	f.P99, _ = figures.Latency.Quantile(0.99)
	f.P999, _ = figures.Latency.Quantile(0.999)
	if f.Router, err = c.network.Router(); err != nil {
		return err
	}
	for range lines {
		if err := reply(f); err != nil {
			return err
		}
	}
	return nil
}
