package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

const (
	deadline = time.Second            // of each call
	every    = 100 * time.Millisecond // a call begins
	before   = 3 * time.Second        // that all is well
	longest  = 3 * time.Minute        // that calls may fail after the packets come again
)

// gone is how long a client's calls failed.
type gone struct {
	Name   string
	Failed int           // calls that began while packets came again
	Until  time.Duration // since packets came again, the end of the first call that returned
}

// outage is what a child is asked.
type outage struct{ Lasts time.Duration }

// vanishing has a child drop all packets for a while, and prints a line for each client.
func vanishing(ctx context.Context, out io.Writer, lasts time.Duration) error {
	p, err := child.Command{Does: vanishes, Alone: true, Asked: outage{lasts}, Limit: lasts + longest + time.Minute}.
		Start(ctx)
	if err != nil {
		return err
	}
	var all []gone
	if err = p.Ask("", &all); err == nil {
		for _, g := range all {
			fmt.Fprintf(out, "%s: all packets dropped for %v: calls failed for %v more, %d of them\n", g.Name, lasts,
				g.Until.Round(10*time.Millisecond), g.Failed)
		}
	}
	return errors.Join(err, p.End())
}

// client is one whose peer vanishes.
type client struct {
	name string
	call func(ctx context.Context) error
}

// vanish is the job of a child: all clients call, each on its own, and the router drops all packets for a while.
func vanish(ctx context.Context, _ child.Stacks, asked outage, lines <-chan []byte, reply func(any) error) (err error) {
	c, err := over(ctx, quiet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	all, err := c.clients()
	if err != nil {
		return err
	}
	results, calling := make([]gone, len(all)), sync.WaitGroup{}
	again := make(chan struct{}) // closed when packets come again
	var came time.Time           // when that was
	for i, one := range all {
		calling.Go(func() { results[i] = one.until(ctx, again, func() time.Time { return came }) })
	}
	<-time.After(before)
	if err = c.network.Lose(1); err == nil {
		<-time.After(asked.Lasts)
		err = c.network.Lose(0)
	}
	came = time.Now()
	close(again)
	calling.Wait()
	if err != nil {
		return err
	}
	for range lines {
		if err := reply(results); err != nil {
			return err
		}
	}
	return nil
}

// quiet is the link before and after an outage.
var quiet = asked{Link: "1ms/100Mbps/0%"}

// until calls until packets come again, and on until a call returns that began since.
func (c client) until(ctx context.Context, again <-chan struct{}, came func() time.Time) gone {
	g := gone{Name: c.name}
	for ticks := time.NewTicker(every); ; <-ticks.C {
		since := false
		select {
		case <-again:
			since = true
		default:
		}
		bounded, cancel := context.WithTimeout(ctx, deadline)
		err := c.call(bounded)
		cancel()
		switch {
		case !since:
			continue
		case err == nil, ctx.Err() != nil, time.Since(came()) > longest:
			g.Until = time.Since(came())
			ticks.Stop()
			return g
		}
		g.Failed++
	}
}

type service struct {
	userservicegrpc.UnimplementedUserServiceServer
}

func (service) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	u.Id = "1000000"
	return &userv1.CreateUserResponse{Code: 200, Message: "OK", User: u}, nil
}

// clients are those of gRPC and HTTP, each as its library has it and with what ends a dead connection.
func (c *connected) clients() (all []client, err error) {
	for _, one := range []struct {
		name    string
		options []grpc.DialOption
	}{
		{"gRPC", nil},
		{"gRPC with keepalive of 10s and 2s", []grpc.DialOption{grpc.WithKeepaliveParams(
			keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second})}},
	} {
		call, err := c.grpc(one.options...)
		if err != nil {
			return nil, err
		}
		all = append(all, client{one.name, call})
	}
	for _, one := range []struct {
		name, version string
		http2         *http.HTTP2Config
	}{
		{"HTTP/1.1", "http1", nil},
		{"HTTP/2", "http2", nil},
		{"HTTP/2 with pings of 2s and 2s", "http2", &http.HTTP2Config{SendPingTimeout: 2 * time.Second,
			PingTimeout: 2 * time.Second}},
	} {
		web, address, err := c.web(one.version)
		if err != nil {
			return nil, err
		}
		web.Transport.(*http.Transport).HTTP2 = one.http2
		all = append(all, client{one.name, func(ctx context.Context) error { return post(ctx, web, address) }})
	}
	return all, nil
}

// grpc serves gRPC, and returns a client's call.
func (c *connected) grpc(options ...grpc.DialOption) (call func(context.Context) error, err error) {
	l, err := c.listen()
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	userservicegrpc.RegisterUserServiceServer(s, service{})
	go s.Serve(l)
	conn, err := grpc.NewClient(l.Addr().String(), append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		s.Stop()
		return nil, err
	}
	c.ends = append(c.ends, func() error { s.Stop(); return nil }, conn.Close)
	stub := userservicegrpc.NewUserServiceClient(conn)
	return func(ctx context.Context) error {
		_, err := stub.CreateUser(ctx, &userv1.User{Email: "anna.10@example.com", Name: "Anna10", Password: "pw-10"})
		return err
	}, nil
}
