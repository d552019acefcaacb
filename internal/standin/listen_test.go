package standin_test

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// A stranger's HTTP/2 preface counts for no request, and does not reach the answer.
func TestAStrayClientIsNoRequest(t *testing.T) {
	s := standin.Listen(t, func(http.ResponseWriter, *http.Request) { t.Error("the answer was asked for") })
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	require.NoError(t, err)
	answer := make([]byte, 12)
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 505", string(answer))
	require.Zero(t, s.Requests())
}
