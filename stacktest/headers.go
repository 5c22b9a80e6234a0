package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// headers: all of Config.Headers go with every call, each traceparent with one alone; without Config.Headers none does. That
// the protocol has no headers is the one reason to refuse them.
func headers(s subject) error {
	asked := users.Headers()
	var mu sync.Mutex
	var made []string
	another := asked.Traceparent
	asked.Traceparent = func() string {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, another())
		return made[len(made)-1]
	}
	sent, err := sentWith(s, asked)
	if errors.Is(err, errors.ErrUnsupported) {
		return skipped("the protocol has no headers")
	}
	if err != nil {
		return fmt.Errorf("with Config.Headers, which Dial may refuse with errors.ErrUnsupported alone: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if sent.requests == nil { // an unknown protocol
		for _, value := range append(made, asked.UserAgent, asked.Authorization) {
			if !bytes.Contains(sent.raw, []byte(value)) {
				return fmt.Errorf("%.60q of Config.Headers was not sent", value)
			}
		}
		return nil
	}
	seen := map[string]bool{}
	for i, h := range sent.requests {
		trace := named(h, "Traceparent")
		switch {
		case !strings.HasPrefix(named(h, "User-Agent"), asked.UserAgent):
			return fmt.Errorf("request %d has the user agent %q, Config.Headers has %q", i, named(h, "User-Agent"), asked.UserAgent)
		case named(h, "Authorization") != asked.Authorization:
			return fmt.Errorf("request %d has the authorization %.60q, Config.Headers has %.60q", i, named(h, "Authorization"), asked.Authorization)
		case !slices.Contains(made, trace) || seen[trace]:
			return fmt.Errorf("request %d has the traceparent %q: it must be one that Config.Headers has made for it alone", i, trace)
		}
		seen[trace] = true
	}
	return noHeaders(s, asked)
}

// noHeaders: a client that is given none sends none.
func noHeaders(s subject, others *rpcbench.Headers) error {
	sent, err := sentWith(s, nil)
	if err != nil {
		return err
	}
	for i, h := range sent.requests {
		if named(h, "Authorization") != "" || named(h, "Traceparent") != "" || strings.HasPrefix(named(h, "User-Agent"), others.UserAgent) {
			return fmt.Errorf("request %d has headers of Config.Headers, which is nil: %v", i, h)
		}
	}
	return nil
}

// sent is what one connection carried to the server: the headers of its requests too, if it is HTTP.
type sent struct {
	raw      []byte
	requests []http.Header
}

func sentWith(s subject, h *rpcbench.Headers) (sent, error) {
	tap := new(netwrap.Tap)
	f, err := s.start(rpcbench.Config{WrapClient: tap.Wrap, Headers: h})
	if err != nil {
		return sent{}, err
	}
	defer f.Close()
	for i := range users.Round {
		if _, err, callErr := both(context.Background(), f, users.Sample(i, 0)); err != nil || callErr != nil {
			return sent{}, errors.Join(err, callErr)
		}
	}
	if err := callAtOnce(f, 4, 4, 0); err != nil {
		return sent{}, err
	}
	raw, received := recorded(tap)
	requests, _, err := wire.Read(raw, received)
	if err != nil && !errors.Is(err, wire.ErrNotHTTP) {
		return sent{}, err
	}
	if err == nil && len(requests) < 2*users.Round {
		return sent{}, fmt.Errorf("%d calls took %d requests", 2*users.Round, len(requests))
	}
	out := sent{raw: raw}
	for _, r := range requests {
		out.requests = append(out.requests, r.Header)
	}
	return out, nil
}
