package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// Whatever was recorded, reading it is an error or gives messages whose bodies are no longer than the recording.
func FuzzRead(f *testing.F) {
	preface := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for _, seed := range [][2]string{
		{"", ""},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"POST /users HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nuntil the end"},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "220 smtp\r\n"},
		{"\x16\x03\x01", ""},
		{http2.ClientPreface[:9], ""},
		{preface, "\x00\x00\x00\x04\x01\x00\x00\x00\x00"},
		{preface + "\x00\x00\x03\x01\x05\x00\x00\x00\x01\x82\x86\x84",
			"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88\x00\x00\x02\x00\x01\x00\x00\x00\x01ok"},
		{preface + "\x00\x00\x03\x01\x04\x00\x00\x00\x01\x82\x86\x84" +
			"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08", ""},
		{preface + "\xff\xff\xff\x01\x04\x00\x00\x00\x01", ""},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, sent, received []byte) {
		requests, responses, err := Read(sent, received)
		if err != nil {
			require.Empty(t, requests)
			require.Empty(t, responses)
			require.True(t, strings.HasPrefix(err.Error(), "wire: "), err)
			return
		}
		of := func(messages []Message) (bytes int) {
			for _, m := range messages {
				require.NotEmpty(t, m.Version)
				bytes += len(m.Body)
			}
			return bytes
		}
		require.LessOrEqual(t, of(requests), len(sent))
		require.LessOrEqual(t, of(responses), len(received))
	})
}
