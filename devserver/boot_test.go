package devserver

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/primitives"
)

// Where the server would end the process because a port was taken in the last
// moment, launch returns, and the next attempt succeeds.
func TestPortTakenInTheLastMoment(t *testing.T) {
	db, err := openDatabase(t.Context(), "", &Options{InMemory: true})
	require.NoError(t, err)
	defer db.close()
	want := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	log := &serverLog{to: slog.New(slog.DiscardHandler)}
	for _, s := range services {
		ports, err := choosePorts(want)
		require.NoError(t, err)
		thief, err := net.ListenTCP("tcp", ports[s])
		require.NoError(t, err)
		_, err = launch(serverConfig(ports, db, nil), nil, log, newOwnerGuard(false))
		require.Error(t, err)
		assert.True(t, isListenError(err), "%s: %v", s, err)
		log.reset()
		require.NoError(t, thief.Close())
	}
	i, addr, err := boot(want, db, nil, log, newOwnerGuard(false))
	require.NoError(t, err)
	assert.NotEmpty(t, addr)
	assert.NoError(t, i.stop())
}

// The HTTP port is for Nexus. A page in a browser can't use the server's API by it.
func TestTheHTTPPortIsForNexusAlone(t *testing.T) {
	o := &Options{InMemory: true, Nexus: true}
	db, err := openDatabase(t.Context(), "", o)
	require.NoError(t, err)
	defer db.close()
	ports, err := choosePorts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	i, err := launch(serverConfig(ports, db, o), o, &serverLog{to: slog.New(slog.DiscardHandler)}, newOwnerGuard(false))
	require.NoError(t, err)
	defer func() { assert.NoError(t, i.stop()) }()
	for path, closed := range map[string]bool{"/api/v1/namespaces/default/workflows/x": true, "/nexus/endpoints/none/services/none/none": false} {
		answer, err := http.Post("http://"+ports[nexusPort].String()+path, "text/plain", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, closed, answer.StatusCode == http.StatusForbidden, "%s: %s", path, answer.Status)
	}
}

func TestPortsDiffer(t *testing.T) {
	ports, err := choosePorts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	seen := make(map[int]primitives.ServiceName)
	for s, addr := range ports {
		assert.NotContains(t, seen, addr.Port)
		seen[addr.Port] = s
	}
	assert.Len(t, seen, 5, "of four services, and for HTTP")
}

// Every socket of this process that listens does so on 127.0.0.1.
func TestListensOnLoopbackOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	ForTest(t)
	const loopback, listen = "0100007F", "0A"
	ours := socketsOfThisProcess(t)
	listening := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != listen || !ours[f[9]] {
				continue
			}
			listening++
			assert.Equal(t, loopback, strings.Split(f[1], ":")[0], line)
		}
	}
	assert.GreaterOrEqual(t, listening, 4)
}

// socketsOfThisProcess returns the inodes of its sockets.
func socketsOfThisProcess(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	inodes := make(map[string]bool)
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}
