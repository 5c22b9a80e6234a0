package conform

import (
	"bytes"
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/users"
)

const cantReplace = "compressed bytes can't be replaced one by one; the uncompressed variant of the same code is checked"

// change is what becomes of a reply on its way to the client.
type change struct {
	held   string                           // by the changed reply
	filter func(before []byte) relay.Filter // is given the reply to another user of equal length
	wait   time.Duration                    // for the Call to fail; 0 is the suite's patience
	breaks bool                             // the connection, which a client may well leave to its owner
}

func replaced(held, old, with string) change {
	return change{held: held, filter: func([]byte) relay.Filter { return relay.Replace([]byte(old), []byte(with)) }}
}

// changes are those that keep a reply's length and framing.
func changes(asked, other rpcbench.User) []change {
	return []change{
		replaced("the name of the call before", asked.Name, other.Name),
		replaced("the email of the call before", asked.Email, other.Email),
		replaced("the password of the call before", asked.Password, other.Password),
		replaced("an id with one byte changed", rpcbench.UserID, "1000001"),
		replaced("the message KO", rpcbench.OKMessage, "KO"),
	}
}

// changedByte makes another letter of one in the middle of a reply, which base64 carries as well as raw bytes do.
func changedByte() change {
	return change{held: "one changed byte of the payload", filter: func(before []byte) relay.Filter {
		seen, done := 0, false
		return func(_ *relay.TapConn, p []byte) ([]byte, error) {
			for i, b := range p {
				if seen++; seen > len(before)/2 && !done && (b >= 'a' && b < 'z' || b >= 'A' && b < 'Z') {
					p[i], done = b+1, true
				}
			}
			return p, nil
		}
	}}
}

// refuses makes a call whose reply is changed on its way. The call must fail, without asking again, and if the change has left the
// connection whole, the same call must succeed afterwards. before is a call for another user of equal length.
func (f *session) refuses(c change, before rpcbench.Call, asked form) {
	request, reply, err := f.record(context.Background(), before)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.wait, f.s.patience()))
	defer cancel()
	var hits atomic.Int64
	filter := c.filter(reply)
	f.tap.SetFilter(func(conn *relay.TapConn, p []byte) ([]byte, error) {
		in := bytes.Clone(p)
		out, err := filter(conn, p)
		if err != nil || !bytes.Equal(in, out) {
			hits.Add(1)
		}
		return out, err
	})
	sent, _, err := f.record(ctx, asked.call)
	f.tap.SetFilter(nil)
	failIf(hits.Load() == 0, "%s: the reply does not hold what was to be changed: it does not come over the connection, or not as itself", c.held)
	failIf(err == nil && 2*len(sent) > 3*len(request), "the %s succeeded although the reply held %s: it asked again, and sent %d bytes where a request has %d",
		asked.name, c.held, len(sent), len(request))
	failIf(err == nil, "the %s succeeded although the reply held %s: the reply is not compared, or not the one that came", asked.name, c.held)
	if !c.breaks {
		_, _, err := f.record(context.Background(), asked.call)
		must(err, "the %s after one whose reply held %s", asked.name, c.held)
	}
}

// changedReplies: a Call must fail when its reply was changed, and CreateUser return what came.
func changedReplies(s Subject) {
	skipIf(s.Stack.Traits.Compression != "", cantReplace)
	tamper := func(avatar int, all ...change) {
		watched(func(f *session) {
			before, asked := f.prepare(users.Sample(1, avatar)), users.Sample(2, avatar)
			for _, c := range all {
				f.refuses(c, before, form{"Call", f.prepare(asked)})
				if !c.breaks {
					f.refuses(c, before, form{"CreateUser", f.create(asked)})
				}
			}
		})(s)
	}
	tamper(0, changes(users.Sample(2, 0), users.Sample(1, 0))...)
	tamper(10_000, changedByte())
	tamper(0, change{held: "only its first half", filter: func(before []byte) relay.Filter { return relay.Cut(len(before) / 2) }, breaks: true})
	// HTTP/2's clients wait for a reply to this request when they get the one before.
	tamper(0, change{held: "the bytes of the reply before", filter: relay.Replay, wait: 250 * time.Millisecond, breaks: true})
}
