package netwrap_test

import (
	"context"
	"testing"
	"time"
	"strings"
	"fmt"

	"github.com/stretchr/testify/require"
	"github.com/stretchr/testify/assert"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/netwrap"
)

func TestScratch(t *testing.T) {
	for _, st := range []rpcbench.Stack{grpcprotobuf.New(), httpjson.New()} {
		for i := range 30 {
		t.Run(fmt.Sprint(st.Name, i), func(t *testing.T) {
			gate, tap := new(netwrap.Gate), new(netwrap.Tap)
			f, err := rpcbench.Start(t.Context(), st, rpcbench.Config{WrapServer: gate.Wrap, WrapClient: tap.Wrap})
			require.NoError(t, err)
			u := func(n string) rpcbench.User { return rpcbench.User{Email: n + "@example.com", Name: n, Password: "secretsecret"} }
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			call := func(n string) error {
				c, err := f.Client.Prepare(u(n))
				require.NoError(t, err)
				return c(ctx)
			}
			require.NoError(t, call("alicealice"))
			require.NoError(t, call("alicealice"))
			assert.True(t, strings.Contains(string(tap.Conns()[0].Sent()), "alicealice"))
			before := len(tap.Conns()[0].Received())
			require.NoError(t, call("alicealice"))
			after := len(tap.Conns()[0].Received())
			held := gate.Hold([]byte("bobbybobby"))
			r := start(func() (string, error) { return "", call("bobbybobby") })
			wait(t, held)
			assert.Empty(t, r)
			gate.Release()
			require.NoError(t, wait(t, r).err)
			tap.SetFilter(netwrap.Replace([]byte("alicealice"), []byte("bobbybobby")))
			err = call("alicealice")
			if i == 0 { t.Log("replace", err) }
			require.Error(t, err)
			tap.SetFilter(nil)
			require.NoError(t, call("alicealice"))
			held = gate.Hold([]byte("bobbybobby"))
			r = start(func() (string, error) { return "", call("bobbybobby") })
			wait(t, held)
			gate.Drop()
			err = wait(t, r).err
			if i == 0 { t.Log("drop", err) }
			require.Error(t, err)
			if err := call("alicealice"); err != nil { t.Log("next after drop", err)}
			tap.SetFilter(netwrap.Cut((after-before)/2))
			err = call("alicealice")
			if i == 0 { t.Log("cut", err) }
			assert.Error(t, err)
			if err := call("alicealice"); err != nil { t.Log("next after cut", err)}
			tap.SetFilter(nil)
			last := tap.Conns()[len(tap.Conns())-1].Received()
			tap.SetFilter(netwrap.Replay(last[len(last)-(after-before):]))
			ctx2, cancel2 := context.WithTimeout(t.Context(), time.Second)
			c, _ := f.Client.Prepare(u("carolcarol"))
			err = c(ctx2)
			cancel2()
			if i == 0 { t.Log("replay", err) }
			require.Error(t, err)
			tap.SetFilter(nil)
			if err := call("alicealice"); err != nil { t.Log("next after replay", err)}
			if err := f.Close(); err != nil { t.Log("close", err)}
		})
		}
	}
}
