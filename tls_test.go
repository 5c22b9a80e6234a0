package rpcbench_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/stacks"
)

// TestHandshakesAreEqual: every stack's clients shake hands as crypto/tls does by default, in full at each connection.
func TestHandshakesAreEqual(t *testing.T) {
	type handshake struct {
		version, cipher uint16
		group           tls.CurveID
		resumed         bool
	}
	var want handshake
	for _, stack := range stacks.All() {
		f := start(t, stack, rpcbench.Config{TLS: true})
		shaken := func() handshake {
			s, ok := f.TLS()
			require.True(t, ok, stack.Name)
			key, ok := s.PeerCertificates[0].PublicKey.(*ecdsa.PublicKey)
			require.True(t, ok && key.Curve == elliptic.P256() && len(s.PeerCertificates) == 1, stack.Name)
			return handshake{s.Version, s.CipherSuite, s.CurveID, s.DidResume}
		}
		first := shaken()
		if want == (handshake{}) {
			want = first
		}
		require.Equal(t, want, first, stack.Name)
		require.False(t, first.resumed)
		again, err := f.Dial()
		require.NoError(t, err)
		_, err = again.(rpcbench.Users).CreateUser(t.Context(), rpcbench.Sample(0, 0))
		require.NoError(t, err, stack.Name)
		require.NoError(t, again.Close())
		require.Equal(t, first, shaken(), "%s: a second connection", stack.Name)
	}
}

func TestCertificateIsOfOneFixture(t *testing.T) {
	start := func() (*rpcbench.Fixture, rpcbench.ClientConfig) {
		var dialed rpcbench.ClientConfig
		stack := grpcprotobuf.New()
		dial := stack.Dial
		stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			dialed = config
			return dial(config)
		}
		return start(t, stack, rpcbench.Config{TLS: true}), dialed
	}
	one, client := start()
	other, _ := start()

	state, ok := one.TLS()
	require.True(t, ok)
	otherState, ok := other.TLS()
	require.True(t, ok)
	cert := state.PeerCertificates[0]
	require.False(t, cert.Equal(otherState.PeerCertificates[0]), "each fixture makes its own")
	require.NotEqual(t, cert.PublicKey, otherState.PeerCertificates[0].PublicKey, "and its own key")
	require.True(t, cert.NotAfter.After(time.Now().Add(12*time.Hour)), "it lasts as long as a run: %v", cert.NotAfter)
	require.True(t, cert.NotBefore.Before(time.Now().Add(-time.Minute)), "clocks that are set back do no harm: %v", cert.NotBefore)
	require.EqualValues(t, tls.VersionTLS13, client.TLS.MinVersion)

	create := func(addr string) error {
		config := client
		config.Addr = addr
		c, err := grpcprotobuf.New().Dial(config)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.(rpcbench.Users).CreateUser(context.Background(), rpcbench.Sample(0, 0))
		return err
	}
	require.NoError(t, create(one.Addr))
	err := create(other.Addr)
	require.Equal(t, rpcbench.Unavailable, rpcbench.CodeOf(err), "a client of one fixture refuses the other's server: %v", err)
	require.ErrorContains(t, err, "certificate")
}
