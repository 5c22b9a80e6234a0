package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

// insides are calls that stay in one process, with the direct form of the same that goes over loopback. They are no
// stacks: nothing is on a wire, so nothing there can be proved.
var insides = []struct {
	name           string
	direct, inside func(tb testing.TB, dial dialFunc, asked []rpcbench.User) create
}{
	{"connectinprocess", directConnectRPC2, connectInProcess},
	{"responserecorder", directHTTPJSON, recorded},
	{"bufconn", directGRPCProtobuf, grpcInMemory},
}

// BenchmarkInProcess compares a call in one process with the same over loopback, as BenchmarkOverhead compares a stack:
// ns/op is the time of the one, and direct-ns/op of the other. What lies between is the kernel's, and HTTP's but for
// bufconn, whose calls are still grpc-go's HTTP/2. Of connectinprocess it is encoding too, since client and server pass
// copies of messages.
func BenchmarkInProcess(b *testing.B) {
	for _, c := range insides {
		b.Run("call="+c.name, func(b *testing.B) {
			overhead(b, inTurn(b, c.direct(b, bare(), sample())), inTurn(b, c.inside(b, nil, sample())))
		})
	}
}

// recorded calls the handler of directHTTPJSON as net/http/httptest has it.
func recorded(_ testing.TB, _ dialFunc, asked []rpcbench.User) create {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", createUser(rules(&rpcbench.User{}, "ID")))
	return func(ctx context.Context, i int) error {
		data, err := json.Marshal(&asked[i])
		if err != nil {
			return err
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/users", bytes.NewReader(data))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			return errors.New(w.Body.String())
		}
		got := new(rpcbench.Response)
		if err := json.Unmarshal(w.Body.Bytes(), got); err != nil {
			return err
		}
		return rpcbench.CheckUser(&asked[i], got)
	}
}

// TestInProcess: a call in one process does what the call over loopback does, without a connection.
func TestInProcess(t *testing.T) {
	asked := append(sample(), rpcbench.SampleUser(1, 100_000), rpcbench.SampleUser(0, 0))
	broken := len(asked) - 1
	asked[broken].Email = ""
	for _, c := range insides {
		t.Run(c.name, func(t *testing.T) {
			direct := c.direct(t, bare(), asked)
			inside := c.inside(t, func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("a connection")
			}, asked)
			for i := range broken {
				require.NoError(t, direct(t.Context(), i))
				require.NoError(t, inside(t.Context(), i))
			}
			require.ErrorContains(t, direct(t.Context(), broken), "'Email' failed on the 'required' tag")
			require.ErrorContains(t, inside(t.Context(), broken), "'Email' failed on the 'required' tag")
		})
	}
}
